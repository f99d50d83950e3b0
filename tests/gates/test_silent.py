"""A model that says nothing in a whole suite, and who is none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from pytest_kbrel.gates import silent_suites
from pytest_kbrel.records import CaseResult
from tests.gates.tables import answers, case, consistency, decided


def head_to_tail(marks: str, answer: str = "unsure", **more: Any) -> CaseResult:
    return decided(case(slice=more.pop("slice", "a-tail")), answers(marks, answer=answer, **more))


def unseen(marks: str) -> CaseResult:
    rows = consistency([(mark, 0.0) for mark in marks], expected=False)
    return decided(case(probe="reliability", slice="unseen-zero-shot"), rows)


def test_what_is_said_of_a_model_that_says_nothing() -> None:
    results = (
        head_to_tail("?" * 11),
        head_to_tail("?" * 2, answer="I don't know.", slice="b"),
        unseen("???"),
    )
    assert list(silent_suites(results)) == [
        "suites/world.kb.yaml: the model says nothing: none of 16 answers is informative (11 times "
        "'unsure'), although 13 of the questions have an answer; allowed: at least one: prompts, chat "
        "template or max_new_tokens do not suit the model, or it does not answer questions"
    ]


@pytest.mark.parametrize(
    "results",
    [
        (),
        # Of fewer facts an honest model may know none.
        (head_to_tail("?" * 9), unseen("?" * 20)),
        # Nobody can answer these.
        (unseen("?" * 30),),
        (head_to_tail("?" * 30 + "-"),),
        (head_to_tail("?" * 30 + "+"),),
        # It answers what it cannot know.
        (head_to_tail("?" * 30), unseen("??-")),
        # The case has said already what is wrong with these.
        (head_to_tail("?" * 30, answer=""),),
    ],
)
def test_of_others_nothing_is_said(results: tuple[CaseResult, ...]) -> None:
    assert list(silent_suites(results)) == []


def test_answers_of_a_label_too_few_are_told_by_their_rule() -> None:
    # MONITOR's published variant knows right and wrong only; and what a judge did not decide is not said.
    for rule in ("unsure", "none", "repetition", "unparsable"):
        result = head_to_tail("-" * 10, answer="so so", rule=rule)
        assert len(list(silent_suites([dataclasses.replace(result, verdict="pass")]))) == 1
    assert list(silent_suites([dataclasses.replace(head_to_tail("-" * 10), verdict="pass")])) == []


def test_each_suite_is_looked_at_alone_and_long_answers_are_cut() -> None:
    quiet = head_to_tail("?" * 10, answer="unsure " * 100)
    other = dataclasses.replace(quiet, suite="a.kb.yaml")
    third = dataclasses.replace(head_to_tail("?" * 10 + "+"), suite="c.kb.yaml")
    told = list(silent_suites([quiet, other, third]))
    assert [line.partition(":")[0] for line in told] == ["a.kb.yaml", "suites/world.kb.yaml"]
    assert "10 times 'unsure unsure" in told[0]
    assert len(told[0]) < 350
