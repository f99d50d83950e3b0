"""Probabilities of answers in the tables of outcomes."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.metrics.calibration import PROBABILITIES
from pytest_kbrel.probes import run_case
from pytest_kbrel.records import Generated, HeadToTailSettings, ReliabilitySettings
from tests.probes.conftest import FRANCE, NORWAY, Oracle, make_case

POOL = ("Rome", "Oslo", "Bern", "Lima")


def written(text, probability=0.75, first=0.5):
    return Generated(
        text=text,
        token_ids=(),
        finish="stop",
        prompt_tokens=3,
        prompt_digest="d",
        probability=probability,
        first_probability=first,
    )


@pytest.mark.parametrize(
    ("text", "answered", "error"),
    [("Paris", 1, 0.25**2), ("Lyon", 1, 0.75**2), ("unsure", 0, 0.0)],
)
@pytest.mark.parametrize(
    "settings", [HeadToTailSettings(), ReliabilitySettings(choices=1)]
)
def test_an_answers_probability_is_in_the_table_with_its_squared_error(
    columns_of, settings, text, answered, error
):
    # Without a right or wrong answer there would be no probabilities that mean anything.
    answers = {FRANCE.subject: written(text), NORWAY.subject: written("Oslo")}

    def say(request):
        return next(
            (answer for name, answer in answers.items() if name in request.prompt), "A"
        )

    facts = [dataclasses.replace(fact, negatives=POOL) for fact in (FRANCE, NORWAY)]
    oracle = Oracle(say=say)
    columns = columns_of(
        run_case(make_case(settings, *facts), oracle, oracle.keep).table
    )
    assert columns["answered"] == answered
    assert [columns[name] for name in PROBABILITIES] == pytest.approx(
        [0.75, 0.5, error]
    )


def test_an_answer_to_an_unanswerable_question_has_a_probability_too(columns_of):
    oracle = Oracle(say=lambda request: written("Oslo"))
    fact = dataclasses.replace(NORWAY, object=None, aliases=(), negatives=POOL)
    table = run_case(
        make_case(ReliabilitySettings(choices=1), fact), oracle, oracle.keep
    ).table
    assert columns_of(table)["answer_prob"] == 0.75
