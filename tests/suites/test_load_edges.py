"""Loading a suite at the edges: seeds and limits of nothing, equal popularities, two things of one name."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import (
    Case,
    Fact,
    settings_of,
)
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.dataset import _majority
from tests.suites.conftest import world_facts
from tests.suites.examples import HEAD

Write = Callable[..., Path]
TODAY = datetime.date(2026, 11, 20)


def loaded(path: Path, **more: Any) -> dict[str, Case]:
    return {
        case.slice: case for case in load_suite(path, **{"today": TODAY, **more}).cases
    }


def test_a_duplicate_and_a_question_twice_are_no_examples(suite_file: Write) -> None:
    facts = world_facts()[:10]
    facts[0]["duplicate_of"] = "c9"
    for number in (1, 2):
        facts[number]["question"] = "The same?"
    text = HEAD + "reliability: {slices: [known-four-shot], limit: 1, distractors: 4}\n"
    shots = loaded(suite_file(text, facts))["known-four-shot"].repository
    seen = [shot for shot in shots if shot.answer is not None]
    assert len(seen) == 8
    assert "Land 0" not in {shot.subject for shot in seen}


def fact(name: str, **more: Any) -> Fact:
    return Fact(
        **{
            "id": name,
            "relation": "R",
            "subject": f"s-{name}",
            "object": f"o-{name}",
            **more,
        }
    )


def test_the_majority_is_the_most_frequent_object_and_of_several_the_least() -> None:
    objects = ("rome", "Oslo", "ROME", "oslo", None, "Bern")
    facts = [fact(str(n), object=name, question="q") for n, name in enumerate(objects)]
    for turned in (facts, facts[::-1]):
        # Case apart, and in the least of its spellings.
        assert _majority(turned) == "Oslo"
    assert _majority([*facts, fact("x", object="Rome")]) == "ROME"
    assert _majority(facts[4:5]) == _majority([]) == ""
    assert _majority([fact("y", object="!!!"), fact("z", object="\U0001f3c8")]) == ""


def test_a_fact_alone_cannot_be_asked_about_another_subject(suite_file: Write) -> None:
    text = HEAD + "reliability: {controls: asked, relations: [P50], distractors: 4}\n"
    facts = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[15:]]
    with pytest.raises(
        SuiteError,
        match=r"fact 'b5' cannot be asked about another subject: found no other",
    ):
        load_suite(suite_file(text, facts))
    both = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[14:]]
    case = loaded(suite_file(text, both))["known"]
    assert [control.shuffled for control in case.controls] == [
        "Who wrote Book 5?",
        "Who wrote Book 4?",
    ]


def test_a_suites_language_is_that_of_facts_that_name_none(suite_file: Write) -> None:
    path = suite_file(HEAD + "language: de\nmonitor: {slices: [P36]}\n")
    facts = path.parent / "facts.jsonl"
    lines = [json.loads(line) for line in facts.read_text("utf-8").splitlines()]
    own = next(line for line in lines if line["relation"] == "P36")
    own["language"] = "fr"
    facts.write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    (case,) = load_suite(path).cases
    assert {fact.language for fact in case.facts} == {"de", "fr"}
    assert [fact.language for fact in case.facts if fact.subject == own["subject"]] == [
        "fr"
    ]
    assert dict(settings_of(case))["language"] == "de, fr"
