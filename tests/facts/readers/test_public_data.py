"""The public files themselves, where they lie beside the checkout: every file is read, to its known size."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers.head_to_tail import templates
from pytest_kbrel.facts.readers.wikidata import read_patterns
from tests.facts.readers.conftest import found_in

DATA = Path(__file__).resolve().parents[3].parent / "shared" / "public-data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the public files are not here"
)

FKTC = {
    "P17": 930,
    "P20": 953,
    "P27": 966,
    "P30": 975,
    "P37": 966,
    "P101": 696,
    "P103": 977,
    "P108": 383,
    "P127": 575,
    "P176": 982,
    "P178": 592,
    "P264": 429,
    "P740": 936,
    "P1412": 969,
}
PATTERNS = {
    "P17": 3,
    "P20": 8,
    "P27": 9,
    "P30": 4,
    "P37": 9,
    "P101": 13,
    "P103": 4,
    "P108": 4,
    "P127": 4,
    "P176": 12,
    "P178": 16,
    "P264": 17,
    "P740": 14,
    "P1412": 8,
}
TREX = {"P17": 912, "P37": 900, "P178": 588, "P1412": 924}
# (format, file, rows, duplicates)
OTHERS = [
    ("nq-open", "nq-open/NQ-open.dev.jsonl", 3610, 0),
    ("nq-open", "nq-open/NQ-open.efficientqa.test.1.1.first300.jsonl", 300, 0),
    ("triviaqa", "triviaqa/triviaqa_sample.json", 1, 0),
    ("popqa", "popqa/popQA.header-and-1-row.tsv", 1, 0),
    ("popqa", "popqa/popqa_subset_dev1000.json", 1000, 4),
    ("head-to-tail", "head-to-tail/head_to_tail_dbpedia.first400.json", 1200, 0),
    ("qa", "qa-human-check/qa_human_check.part1.json", 500, 0),
]


@pytest.mark.parametrize("name", FKTC)
def test_fktc(name: str) -> None:
    result = found_in("fktc", DATA / "fktc" / f"{name}-subclass.json")
    assert (len(result.facts), result.errors) == (FKTC[name], [])
    assert len(result.relation.frames) == (6 if name in ("P264", "P101") else 7)
    assert {len(fact.negatives) for fact in result.facts} == {5}
    duplicates = sum(bool(fact.duplicate_of) for fact in result.facts)
    assert duplicates == {"P176": 9, "P178": 1}.get(name, 0)
    assert result.relation.label != name


def test_the_whole_of_fktc() -> None:
    result = found_in("fktc", DATA / "fktc")
    assert (len(result.facts), len(result.relations)) == (sum(FKTC.values()), 14)


@pytest.mark.parametrize(
    ("form", "file", "rows", "duplicates"), OTHERS, ids=lambda part: str(part)
)
def test_question_files(form: str, file: str, rows: int, duplicates: int) -> None:
    result = found_in(form, DATA / file)
    assert (len(result.facts), result.errors) == (rows, [])
    assert sum(bool(fact.duplicate_of) for fact in result.facts) == duplicates
    assert len({fact.id for fact in result.facts}) == rows
    assert {fact.relation for fact in result.facts} == set(result.relations)
    assert all(fact.question for fact in result.facts)


def test_popularity_of_popqa() -> None:
    facts = found_in("popqa", DATA / "popqa/popqa_subset_dev1000.json").facts
    known = [fact.popularity for fact in facts if fact.popularity is not None]
    assert (len(known), min(known), max(known)) == (1000, 5, 816653)


def test_buckets_of_head_to_tail() -> None:
    result = found_in(
        "head-to-tail", DATA / "head-to-tail/head_to_tail_dbpedia.first400.json"
    )
    buckets = [fact.bucket for fact in result.facts]
    assert [buckets.count(bucket) for bucket in ("head", "torso", "tail")] == [
        400,
        400,
        400,
    ]
    assert {relation.domain for relation in result.relations.values()} == {"open"}
    # The question is what the template beside the file makes of the subject.
    for fact in result.facts:
        (frame,) = result.relations[fact.relation].frames
        assert frame.split("[X]")[0] in str(fact.question)
    assert (
        sum(1 for _ in templates(DATA / "head-to-tail/dbpedia_question_templates.json"))
        == 435
    )


def test_pararel() -> None:
    result = found_in("pararel", DATA / "pararel")
    counts = {
        name: len(read_patterns(DATA / "pararel/graphs_json" / f"{name}.jsonl"))
        for name in PATTERNS
    }
    assert counts == PATTERNS
    assert set(result.relations) == set(TREX)
    assert all(r.statements and not r.frames for r in result.relations.values())
    for form in ("pararel", "lama"):
        for name, rows in TREX.items():
            one = found_in(form, DATA / "pararel/trex_lms_vocab" / f"{name}.jsonl")
            assert (len(one.facts), one.errors) == (rows, [])
            assert sum(bool(fact.duplicate_of) for fact in one.facts) == (
                name == "P178"
            )
    assert len(result.facts) == sum(TREX.values())


def test_files_that_hold_no_facts_are_refused() -> None:
    with pytest.raises(SuiteError, match="no facts found"):
        found_in("triviaqa", DATA / "triviaqa/sample_predictions.json")
    with pytest.raises(SuiteError, match="no facts found"):
        found_in("head-to-tail", DATA / "head-to-tail/dbpedia_question_templates.json")
