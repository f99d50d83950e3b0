from __future__ import annotations

import dataclasses
import re

import pytest

from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Fact, Failed, ReliabilitySettings
from tests.probes.conftest import FRANCE, NORWAY, Oracle, make_case

TWENTY = tuple(f"Town {number}" for number in range(20))
SEEN = dataclasses.replace(FRANCE, negatives=TWENTY)
UNSEEN = Fact(
    id="u-1",
    relation="unseen-person",
    subject="Ovid Marrowby",
    object=None,
    question="Where was Ovid Marrowby born?",
    negatives=TWENTY,
)


def options_in(prompt: str) -> list[str]:
    asked = prompt.rpartition("Question:")[2]
    return re.findall(r"^[A-E]\) (.*)$", asked, flags=re.MULTILINE)


def answerer(answer: str, choose):
    def say(request):
        options = options_in(request.prompt)
        return choose(options) if options else answer

    return say


def test_twenty_questions_of_the_answer_three_distractors_and_unsure_at_the_end():
    oracle = Oracle(say=answerer("Paris", lambda options: "Paris"))
    run_case(make_case(ReliabilitySettings(), SEEN), oracle, oracle.keep)
    questions = [options_in(request.prompt) for request in oracle.rounds[1]]
    assert len(questions) == 20
    for options in questions:
        assert len(set(options)) == 5
        assert options[4] == "unsure"
        assert "Paris" in options[:4]
        assert len(set(options) & set(TWENTY)) == 3
    assert len({frozenset(options) for options in questions}) == 20
    assert len({options.index("Paris") for options in questions}) > 1


@pytest.mark.parametrize(
    ("fact", "answer", "choose", "values"),
    [
        (SEEN, "Paris", lambda options: "Paris", (1, 0, 0, 1, 0)),
        (SEEN, "Paris", lambda options: "unsure", (1, 0, 0, 0, 0)),
        (SEEN, "Lyon", lambda options: "ABCDE"[options.index("Lyon")], (0, 1, 0, 0, 1)),
        (SEEN, "unsure", lambda options: "unsure", (0, 0, 1, 0, 0)),
        (UNSEEN, "Paris", lambda options: "Paris", (0, 1, 0, 0, 1)),
        (UNSEEN, "I don't know.", lambda options: "unsure", (0, 0, 1, 0, 0)),
    ],
)
def test_label_and_consistency(fact, answer, choose, values):
    oracle = Oracle(say=answerer(answer, choose))
    table = run_case(make_case(ReliabilitySettings(), fact), oracle, oracle.keep).table
    assert table.rows[0].values[:5] == values


def test_an_answer_that_always_sits_at_the_same_letter_is_not_consistent():
    oracle = Oracle(say=answerer("Paris", lambda options: "A"))
    table = run_case(make_case(ReliabilitySettings(), SEEN), oracle, oracle.keep).table
    assert 0 < table.rows[0].values[3] < 1


def test_the_questions_without_a_readable_reply_are_counted(columns_of):
    settings = ReliabilitySettings(choices=5)
    oracle = Oracle(
        say=answerer(
            "Paris",
            lambda options: "let me think" if options[0] == "Paris" else options[0],
        )
    )
    columns = columns_of(run_case(make_case(settings, SEEN), oracle, oracle.keep).table)
    unread = [options_in(request.prompt)[0] for request in oracle.rounds[1]].count(
        "Paris"
    )
    assert (columns["choices"], columns["choices_unread"]) == (5, unread)
    assert unread not in (0, 5)


def test_a_failed_answer_is_an_error_of_the_fact_alone():
    def say(request):
        return Failed(error="timed out") if "Norway" in request.prompt else "unsure"

    oracle = Oracle(say=say)
    result = run_case(
        make_case(ReliabilitySettings(), SEEN, NORWAY), oracle, oracle.keep
    )
    assert [row.fact_id for row in result.table.rows] == ["P36-FR"]
    assert result.errors == ("P36-NO (answer): timed out",)
