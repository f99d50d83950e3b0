"""Loading a suite at the edges: seeds and limits of nothing, equal popularities, two things of one name."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes.grading import judged_by_rules
from pytest_kbrel.records import (
    Case,
    Fact,
    ReliabilitySettings,
    Shot,
    settings_of,
)
from pytest_kbrel.suites import load_suite
from pytest_kbrel.suites.expiry import without_expired
from pytest_kbrel.suites.reliability import _majority, _other
from tests.suites.conftest import world_facts
from tests.suites.examples import HEAD

Write = Callable[..., Path]
TODAY = datetime.date(2026, 11, 20)


def loaded(path: Path, **more: Any) -> dict[str, Case]:
    return {
        case.slice: case for case in load_suite(path, **{"today": TODAY, **more}).cases
    }


@pytest.mark.parametrize("limit", ["0", "0.0", "-1", "1.001", "true", "''"])
def test_a_limit_beyond_the_end_of_its_range(limit: str, suite_file: Write) -> None:
    with pytest.raises(
        SuiteError,
        match="limit of monitor must be a whole number from 1 to 1,000,000,000, or a share above 0",
    ):
        load_suite(suite_file(HEAD + f"monitor: {{slices: [P36], limit: {limit}}}\n"))


def test_examples_may_be_none_of_a_kind(suite_file: Write) -> None:
    text = (
        HEAD + "reliability: {slices: [seen-four-shot], shots: {seen: 4, unseen: 0}}\n"
    )
    shots = loaded(suite_file(text))["seen-four-shot"].repository
    assert [shot.answer is None for shot in shots] == [False] * 4
    text = HEAD + "reliability: {slices: [seen-four-shot], shots: {seen: 0}}\n"
    with pytest.raises(
        SuiteError, match="four-shot needs at least 4 examples with an answer, found 0"
    ):
        load_suite(suite_file(text))


def test_a_duplicate_and_a_question_twice_are_no_examples(suite_file: Write) -> None:
    facts = world_facts()[:10]
    facts[0]["duplicate_of"] = "c9"
    for number in (1, 2):
        facts[number]["question"] = "The same?"
    text = HEAD + "reliability: {slices: [seen-four-shot], limit: 1, distractors: 4}\n"
    shots = loaded(suite_file(text, facts))["seen-four-shot"].repository
    seen = [shot for shot in shots if shot.answer is not None]
    assert len(seen) == 8
    assert "Land 0" not in {shot.subject for shot in seen}


@pytest.mark.parametrize("key", ["owner", "reason", "expires"])
def test_a_waiver_says_who_why_and_until_when(key: str, suite_file: Write) -> None:
    keys = {"fact": "c3", "owner": "Ann", "reason": "known", "expires": "2030-12-31"}
    stated = ", ".join(f"{name}: {text}" for name, text in keys.items() if name != key)
    with pytest.raises(SuiteError, match=f"a waiver lacks the key '{key}'"):
        load_suite(suite_file(HEAD + f"monitor:\nwaivers:\n  - {{{stated}}}\n"))


@pytest.mark.parametrize("key", ["count", "as_of", "expires"])
def test_unseen_questions_need_all_three_keys(key: str, suite_file: Write) -> None:
    keys = {"count": "5", "as_of": "2026-11-01", "expires": "2028-01-01"}
    stated = ", ".join(f"{name}: {text}" for name, text in keys.items() if name != key)
    with pytest.raises(SuiteError, match=f"unseen lacks the key '{key}'"):
        load_suite(suite_file(HEAD + f"reliability:\n  unseen: {{{stated}}}\n"))
    same = {**keys, "expires": "2026-11-01"}
    stated = ", ".join(f"{name}: {text}" for name, text in same.items())
    with pytest.raises(SuiteError, match="expires must be later than as_of"):
        load_suite(suite_file(HEAD + f"reliability:\n  unseen: {{{stated}}}\n"))


def test_unseen_questions_are_for_a_later_day_until_that_day(suite_file: Write) -> None:
    path = suite_file(
        HEAD
        + "reliability:\n  unseen: {count: 5, as_of: 2026-11-01, expires: 2028-01-01}\n"
    )
    days = [
        datetime.date(2026, 10, 31),
        datetime.date(2026, 11, 1),
        datetime.date(2028, 1, 1),
    ]
    assert [len(load_suite(path, today=day).warnings) for day in days] == [1, 0, 0]
    assert (
        "expired on 2028-01-01"
        in load_suite(path, today=datetime.date(2028, 1, 2)).warnings[0]
    )


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


def test_a_shuffled_question_has_another_subject_and_another_answer() -> None:
    one = fact("a", aliases=("alias",))
    refused = [
        fact("b", subject="S-A"),
        fact("c", object="O-A"),
        fact("d", object="ALIAS"),
        fact("e", aliases=("o-a",)),
        fact("f", aliases=("Alias",)),
    ]
    assert _other(one, {"R": refused}, 0) is None
    assert _other(one, {"R": [*refused, fact("g")]}, 0) == fact("g")
    # Of another relation only where its own has none, and there in the order of their names.
    assert _other(one, {"R": refused, "T": [fact("t")], "S": [fact("s")]}, 0) == fact(
        "s"
    )
    assert _other(one, {"R": [fact("r")], "A": [fact("s")]}, 0) == fact("r")
    assert _other(one, {}, 0) is None


SETTINGS = ReliabilitySettings(prompt="four-shot-2")
SHOTS = tuple(
    Shot(question=f"q{n}", answer=None, valid_until="2027-01-01" if n else "")
    for n in range(4)
)


def remaining(
    today: datetime.date, *facts: Fact, shots: tuple[Shot, ...] = ()
) -> tuple[list[str], int, list[str]]:
    case = Case(
        id="c", suite="s", probe="reliability", slice="unseen-four-shot-2", facts=facts, relations=(),
        settings=SETTINGS, gates=(), repository=shots,
    )  # fmt: skip
    (case_after,), warnings = without_expired([case], Path("t.kb.yaml"), today)
    return (
        [one.id for one in case_after.facts],
        len(case_after.repository),
        list(warnings),
    )


def test_a_question_is_left_out_from_its_day_on_and_only_one_without_an_answer() -> (
    None
):
    day = datetime.date(2027, 1, 1)
    unseen = fact("u", object=None, question="q", valid_until="2027-01-01")
    others = (
        fact("never", object=None, question="q"),
        fact("seen", valid_until="2027-01-01"),
    )
    assert remaining(day - datetime.timedelta(1), unseen, *others) == (
        ["u", "never", "seen"],
        0,
        [],
    )
    assert remaining(day, unseen, *others) == (
        ["never", "seen"],
        0,
        [
            "t.kb.yaml:0: left out 1 question of the kind R: since 2027-01-01 it may have an answer"
        ],
    )
    later = fact("later", object=None, question="q", valid_until="2027-01-02")
    with pytest.raises(
        SuiteError,
        match=r"all 2 questions of c may have an answer by now \(the first since 2027-01-01",
    ):
        remaining(datetime.date(2028, 1, 1), later, unseen)


def test_examples_are_left_out_while_enough_are_left() -> None:
    day, answered = (
        datetime.date(2027, 1, 1),
        Shot(question="a", answer="b", valid_until=""),
    )
    enough = (*SHOTS[:1], Shot(question="z", answer=None), *SHOTS[1:], answered)
    assert remaining(day - datetime.timedelta(1), fact("f"), shots=enough)[1:] == (
        6,
        [],
    )
    assert remaining(day, fact("f"), shots=enough)[1:] == (
        3,
        [
            't.kb.yaml:0: left out 3 examples answered "unsure": since 2027-01-01 they may have an answer'
        ],
    )
    early = Shot(question="e", answer=None, valid_until="2026-12-31")
    assert [
        told[told.index("since") :]
        for told in remaining(day, fact("f"), shots=(*enough, early))[2]
    ] == [
        "since 2026-12-31 it may have an answer",
        "since 2027-01-01 they may have an answer",
    ]
    with pytest.raises(
        SuiteError, match='c shows 2 examples answered "unsure", and 1 of those'
    ):
        remaining(day, fact("f"), shots=(*SHOTS, answered))


def test_a_fact_alone_cannot_be_asked_about_another_subject(suite_file: Write) -> None:
    text = HEAD + "reliability: {controls: asked, relations: [P50], distractors: 4}\n"
    facts = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[15:]]
    with pytest.raises(
        SuiteError,
        match=r"fact 'b5' cannot be asked about another subject: found no other",
    ):
        load_suite(suite_file(text, facts))
    both = [{**one, "negatives": ["w", "x", "y", "z"]} for one in world_facts()[14:]]
    case = loaded(suite_file(text, both))["seen-zero-shot"]
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


@pytest.mark.parametrize(
    "written", ["German", "de_DE", "d", "7", "'de '", "[de]", "no", "''"]
)
def test_what_is_no_language_tag_is_refused(suite_file: Write, written: str) -> None:
    with pytest.raises(SuiteError, match=r"t\.kb\.yaml:3: language must be .*, found"):
        load_suite(
            suite_file(HEAD + f"language: {written}\nmonitor: {{slices: [P36]}}\n")
        )


def test_the_probes_judge_in_the_facts_language_beside_the_suites_own_patterns(
    suite_file: Write,
) -> None:
    path = suite_file(
        HEAD + "language: de\nuninformative: mine.yaml\nmonitor: {slices: [P36]}\n"
    )
    (path.parent / "mine.yaml").write_text(
        "unsure: ['unsicher bin ich']\n", encoding="utf-8"
    )
    (case,) = load_suite(path).cases
    fact = dataclasses.replace(case.facts[0], object="Lima", aliases=())
    for answer in (
        "Das weiß ich nicht.",
        "unsure",
        "I don't know.",
        "Unsicher bin ich!",
    ):
        assert judged_by_rules(case, fact, answer).label == "uninformative", answer
    assert (
        judged_by_rules(case, fact, "Die Hauptstadt ist nicht Lima.").label == "wrong"
    )
    english = dataclasses.replace(fact, language="en")
    assert (
        judged_by_rules(case, english, "Die Hauptstadt ist nicht Lima.").label
        == "correct"
    )
