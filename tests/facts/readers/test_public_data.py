"""The public files themselves, where they lie beside the checkout: every file is read, to its known size."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import found_in

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "public-data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the public files are not here"
)


def test_files_that_hold_no_facts_are_refused() -> None:
    with pytest.raises(SuiteError, match="no facts found"):
        found_in("triviaqa", DATA / "triviaqa/sample_predictions.json")
    with pytest.raises(SuiteError, match="no facts found"):
        found_in("head-to-tail", DATA / "head-to-tail/dbpedia_question_templates.json")


@pytest.mark.parametrize(
    ("form", "file", "rows", "duplicates"),
    [
        ("fktc", "fktc", 11329, 10),
        ("pararel", "pararel", 3324, 1),
        ("lama", "pararel/trex_lms_vocab", 3324, 1),
        ("nq-open", "nq-open/NQ-open.dev.jsonl", 3610, 0),
        ("nq-open", "nq-open/NQ-open.efficientqa.test.1.1.first300.jsonl", 300, 0),
        ("triviaqa", "triviaqa/triviaqa_sample.json", 1, 0),
        ("popqa", "popqa/popQA.header-and-1-row.tsv", 1, 0),
        ("popqa", "popqa/popqa_subset_dev1000.json", 1000, 4),
        ("head-to-tail", "head-to-tail/head_to_tail_dbpedia.first400.json", 1200, 0),
        ("qa", "qa-human-check/qa_human_check.part1.json", 500, 0),
    ],
)
def test_every_row_is_a_fact(form: str, file: str, rows: int, duplicates: int) -> None:
    result = found_in(form, DATA / file)
    assert (len(result.facts), result.errors) == (rows, [])
    assert sum(bool(fact.duplicate_of) for fact in result.facts) == duplicates
    assert len({fact.id for fact in result.facts}) == rows
    assert {fact.relation for fact in result.facts} <= set(result.relations)
    frames = {name: of.frames for name, of in result.relations.items()}
    if form == "fktc":
        assert {len(fact.negatives) for fact in result.facts} == {5}
        assert (len(frames["P37"]), len(frames["P264"]), len(frames["P101"])) == (
            7,
            6,
            6,
        )
    if form == "head-to-tail":
        buckets = [fact.bucket for fact in result.facts]
        assert [buckets.count(name) for name in ("head", "torso", "tail")] == [400] * 3
