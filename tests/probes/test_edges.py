"""Where a rule of a probe ends: what is just accepted, and the neighbour that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.probes.reliability import with_shots
from pytest_kbrel.records import (
    ReliabilitySettings,
    Shot,
)
from tests.probes.conftest import FRANCE, make_case

FOUR = ReliabilitySettings(prompt="four-shot")


def shot_case(*shots, fact=FRANCE, settings=FOUR):
    return replace(make_case(settings, fact), repository=shots)


def alike(*scores):
    return lambda questions, examples: [scores[: len(examples)] for _ in questions]


def example(number, **more):
    return Shot(
        **({"question": f"What is number {number}?", "answer": f"{number}"} | more)
    )


@pytest.mark.parametrize(
    ("shot", "fact", "given_away"),
    [
        # Subject and answer, in whichever of the two they stand.
        (Shot(question="Where is Paris?", answer="in France"), FRANCE, True),
        (Shot(question="Where is Lyon?", answer="in France"), FRANCE, False),
        (Shot(question="Where is Paris?", answer="in Europe"), FRANCE, False),
        (Shot(question="Where is Parisville?", answer="in France"), FRANCE, False),
        (Shot(question="Who lives there?", answer="x", subject="FRANCE"), FRANCE, True),
        (Shot(question="Who lives there?", answer="x", subject="Paris"), FRANCE, False),
        # Without a subject, nothing but the question itself is.
        (
            Shot(question="Who lives there?", answer="x"),
            replace(FRANCE, subject="", question="Q?"),
            False,
        ),
        (
            Shot(question="q", answer="x"),
            replace(FRANCE, subject="", question="Q?"),
            True,
        ),
        # Where the question is all there is of the subject, the answer decides.
        (
            Shot(question="Other?", answer="PARIS"),
            replace(FRANCE, subject="Q?", question="Q?"),
            True,
        ),
        (
            Shot(question="Other?", answer="Paris Hilton"),
            replace(FRANCE, subject="Q?", question="Q?"),
            False,
        ),
        (
            Shot(question="Q Other?", answer="x"),
            replace(FRANCE, subject="Q?", question="Q?"),
            False,
        ),
    ],
)
def test_which_example_gives_an_answer_away(shot, fact, given_away):
    case = shot_case(shot, *map(example, range(4)), fact=fact)
    ((_, shots),) = with_shots(
        case, lambda questions, result: [[float(q == shot.question) for q in result]]
    ).shots
    assert (shot not in shots) is given_away
