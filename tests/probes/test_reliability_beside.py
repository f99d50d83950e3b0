"""What stands beside the papers' columns: kinds of uninformative answers, unread verdicts, controls."""

from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Control, Fact, ReliabilitySettings
from tests.probes.conftest import FRANCE, NORWAY, Oracle, make_case

TWENTY = tuple(f"Town {number}" for number in range(20))
SEEN = dataclasses.replace(FRANCE, negatives=TWENTY)
ASKED = ReliabilitySettings(controls="asked", choices=10)
SHUFFLED = "What is the capital of Peru?"


def with_controls(
    settings: ReliabilitySettings,
    *facts: Fact,
    majority: str = "Rome",
    shuffled: str = "",
):
    controls = tuple(
        Control(fact_id=fact.id, majority=majority, shuffled=shuffled) for fact in facts
    )
    return dataclasses.replace(make_case(settings, *facts), controls=controls)


def options_in(prompt: str) -> list[str]:
    asked = prompt.rpartition("Question:")[2]
    return re.findall(r"^[A-E]\) (.*)$", asked, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("", "none"),
        ("What is the capital of France?", "none"),
        ("unsure", "unsure"),
        ("I don't know.", "unsure"),
        ("la la la la la la", "repetition"),
    ],
)
def test_uninformative_answers_are_counted_by_kind(
    columns_of, answer: str, kind: str
) -> None:
    oracle = Oracle(say=lambda request: answer)
    table = run_case(make_case(ReliabilitySettings(), SEEN), oracle, oracle.keep).table
    columns = columns_of(table)
    assert {name for name in ("repetition", "none", "unsure") if columns[name]} == {
        kind
    }
    assert columns["uninformative"] == 1
    assert table.rows[0].rule == kind


class Judge(Oracle):
    """A model that answers Lyon, and a judge that gives one reply."""

    def __init__(self, reply: str) -> None:
        super().__init__(say=lambda request: "Lyon")
        self.reply = reply

    def __call__(self, requests, to=""):
        former = self.say
        if to:
            self.say = lambda request: self.reply
        try:
            return super().__call__(requests)
        finally:
            self.say = former


@pytest.mark.parametrize(
    ("reply", "column", "choices"),
    [("correct", "correct", 20), ("incorrect", "wrong", 20), ("maybe so", "", 0)],
)
def test_the_judge_decides_and_an_unreadable_verdict_is_neither(
    columns_of, reply, column, choices
) -> None:
    oracle = Judge(reply)
    case = dataclasses.replace(
        make_case(ReliabilitySettings(), SEEN), judge="openai/judge"
    )
    columns = columns_of(run_case(case, oracle, oracle.keep).table)
    names = ("correct", "wrong", "uninformative")
    assert {name for name in names if columns[name]} == ({column} if column else set())
    assert columns["unparsable"] == (not column)
    assert columns["consistency_correct"] + columns["consistency_wrong"] == bool(column)
    assert (
        sum(
            bool(options_in(request.prompt))
            for round_ in oracle.rounds
            for request in round_
        )
        == choices
    )


def test_the_majority_control_needs_no_model(columns_of) -> None:
    oracle = Oracle(say=lambda request: "unsure")
    facts = (SEEN, dataclasses.replace(NORWAY, negatives=TWENTY))
    case = with_controls(ReliabilitySettings(), *facts, majority="City of Paris")
    table = run_case(case, oracle, oracle.keep).table
    assert [columns_of(table, row)["majority"] for row in (0, 1)] == [1, 0]
    assert sum(map(len, oracle.rounds)) == 2


def test_of_unseen_knowledge_no_open_question_is_shuffled(columns_of) -> None:
    unseen = dataclasses.replace(
        SEEN, object=None, aliases=(), question="Where was Ovid Marrowby born?"
    )
    oracle = Oracle(say=lambda request: "Paris")
    case = with_controls(
        ASKED, unseen, majority="", shuffled="Where was Elv Amber born?"
    )
    columns = columns_of(run_case(case, oracle, oracle.keep).table)
    assert len(oracle.rounds[0]) == 1
    assert (columns["shuffled_right"], columns["shuffled_wrong"]) == (0, 1)


def test_controls_leave_a_fact_comparable_and_other_settings_do_not() -> None:
    def digest(settings: ReliabilitySettings, shuffled: str = "") -> str:
        oracle = Oracle(say=lambda request: "Paris")
        case = with_controls(settings, SEEN, shuffled=shuffled)
        return run_case(case, oracle, oracle.keep).table.rows[0].prompt_digest

    plain = digest(ReliabilitySettings())
    assert digest(ReliabilitySettings(controls="asked"), SHUFFLED) == plain
    assert digest(ReliabilitySettings(retrieval="openai/encoder")) == plain
    assert digest(ReliabilitySettings(choices=10)) != plain
