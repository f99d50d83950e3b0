"""Suites that name public files in their own formats."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Case
from pytest_kbrel.suites import load_suite

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def cases(tmp_path: Path) -> Callable[[str], tuple[Case, ...]]:
    """Load a suite beside the project's own test files."""
    shutil.copytree(DATA, tmp_path, dirs_exist_ok=True)

    def load(text: str) -> tuple[Case, ...]:
        path = tmp_path / "t.kb.yaml"
        path.write_text("suite: t\n" + text)
        return load_suite(path).cases

    return load


Cases = Callable[[str], tuple[Case, ...]]
QA = "facts: questions.jsonl\nformat: qa\n"


def test_distractors_of_questions_are_of_the_answers_kind(
    cases: Cases, tmp_path: Path
) -> None:
    kinds = {"who wrote book": "Ann Lee{}", "when was work": "19{}"}
    lines = [
        {"question": f"{asked} {n}", "answer": [answer.format(n)]}
        for asked, answer in kinds.items()
        for n in range(10, 20)
    ]
    lines.append({"question": "is it so", "answer": ["Yes"]})
    (tmp_path / "q.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines)
    )
    (case,) = cases(
        "facts: q.jsonl\nformat: nq-open\nreliability: {slices: [known-zero-shot]}\n"
    )
    for fact in case.facts[:20]:
        assert len(fact.negatives) == 9
        assert all(
            name.isdigit() == str(fact.object).isdigit() for name in fact.negatives
        )
    assert case.alike[0][1] == 1.0
    assert case.alike[-1] == (case.facts[-1].id, 0.0)
    assert case.notes == (
        "1 of 21 facts: the data have too few wrong answers of the kind of the right one, so that some "
        "distractors are of another (distractors_alike)",
    )
    # An encoder is given more to choose from, where there are more of the kind.
    text = "facts: q.jsonl\nformat: nq-open\nreliability: {slices: [known-zero-shot], distractors: 4"
    for more, size in (
        ("", 4),
        (", retrieval: hf/x", 9),
        (", retrieval: hf/x, distractors_from: hf/y", 4),
    ):
        assert len(cases(f"{text}{more}}}\n")[0].facts[0].negatives) == size


def test_a_relations_file_comes_on_top(cases: Cases, tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text(
        "P36: {label: seat, domain: places, statements: ['[Y] rules [X].']}\nP9: {label: x, domain: y}\n"
    )
    (case,) = cases(
        "facts: P36-subclass.json\nformat: fktc\nrelations: more.yaml\nmonitor:\n"
    )
    (relation,) = case.relations
    assert (relation.label, relation.domain, relation.statements) == (
        "seat",
        "places",
        ("[Y] rules [X].",),
    )
    assert len(relation.frames) == 3
    (tmp_path / "more.yaml").write_text(
        "P36: {label: seat, domain: places, frames: ['Seat of [X]?']}\n"
    )
    (case,) = cases(
        "facts: P36-subclass.json\nformat: fktc\nrelations: more.yaml\nmonitor:\n"
    )
    assert case.relations[0].frames == ("Seat of [X]?",)


def questions(folder: Path, *more: dict[str, Any]) -> str:
    rows = [{"question": f"Who is {n}?", "answer": f"name {n}"} for n in range(6)]
    (folder / "q.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*rows, *more])
    )
    return "facts: q.jsonl\nformat: qa\n"


def test_own_tables_need_no_format(cases: Cases, tmp_path: Path) -> None:
    (tmp_path / "relations.yaml").write_text(
        "P1: {label: a, domain: b, frames: ['What of [X]?']}\n"
    )
    rows = "".join(f"P1,s{n},o{n}\n" for n in range(4))
    (tmp_path / "f.csv").write_text("relation,subject,object\n" + rows)
    (case,) = cases("facts: f.csv\nmonitor:\n")
    assert [fact.id for fact in case.facts] == [f"P1:s{n}:o{n}" for n in range(4)]
    (tmp_path / "f.csv").write_text("relation,subject,object\nP2,a,b\n")
    with pytest.raises(
        SuiteError,
        match=r"f\.csv:2: unknown relation 'P2'; allowed: P1.*relations\.yaml",
    ):
        cases("facts: f.csv\nmonitor:\n")


def test_several_files_of_own_facts(cases: Cases, tmp_path: Path) -> None:
    (tmp_path / "relations.yaml").write_text(
        "P1: {label: a, domain: b, frames: ['What of [X]?']}\n"
    )
    for name in "ab":
        row = {"relation": "P1", "subject": f"s{name}", "object": f"o{name}"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    (case,) = cases("facts: [a.jsonl, b.jsonl]\nmonitor:\n")
    assert [fact.id for fact in case.facts] == ["P1:sa", "P1:sb"]
    shutil.copy(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    with pytest.raises(
        SuiteError,
        match=r"b\.jsonl:1: id 'P1:sa' stands twice; the first is in .*a\.jsonl:1",
    ):
        cases("facts: [a.jsonl, b.jsonl]\nmonitor:\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "facts: P36-subclass.json\nformat: fktk\n",
            r":3: format must be one of fktc, .*did you mean 'fktc'",
        ),
        (
            "facts: P37-subclass.json\nformat: fktc\n",
            r":2: facts must be a file.*did you mean 'P36-subclass",
        ),
        ("facts: []\n", ":2: facts must be"),
        ("facts: [a.jsonl, a.jsonl]\n", ":2: 'a.jsonl' stands twice in facts"),
        (QA, r"questions\.jsonl:5: unknown key 'anwsers'"),
    ],
)
def test_what_is_wrong_says_where(text: str, message: str, cases: Cases) -> None:
    with pytest.raises(SuiteError, match=message):
        cases(text + "monitor:\n")
