"""Where a rule of a probe ends: what is just accepted, and the neighbour that is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_kbrel.probes import reliability, run_case
from pytest_kbrel.probes.monitor.cells import grid_of
from pytest_kbrel.probes.reliability.distractors import read_distractors
from pytest_kbrel.probes.reliability.shots import with_shots
from pytest_kbrel.records import (
    Control,
    MonitorSettings,
    ReliabilitySettings,
    Shot,
)
from tests.probes.conftest import FRANCE, Oracle, make_case

POOL = tuple(f"Town {number}" for number in range(8))


@pytest.mark.parametrize(
    ("settings", "columns"),
    [
        (MonitorSettings(negatives=1), ()),
        (MonitorSettings(negatives=1, study="full"), ("calls:study", "tokens:study")),
    ],
)
def test_the_columns_of_monitor(settings, columns):
    fact = replace(FRANCE, negatives=("Rome",))
    others = [
        f"cell:{context}:{frame}"
        for context in ("positive", "negative1")
        for frame in (1, 2)
    ]
    assert grid_of(make_case(settings, fact)).columns == (
        *("kept", "pfd", "ird", "term", "anchor", "first_token"),
        *("ablated:0+1+2", "calls:monitor", "tokens:monitor"),
        *columns,
        *(
            "cell:positive:0",
            "cell:none:0",
            "cell:none:1",
            "cell:none:2",
            "cell:negative1:0",
        ),
        *(others if columns else ()),
    )


def test_the_columns_of_reliable_kb():
    own = (
        *(
            "correct",
            "wrong",
            "uninformative",
            "consistency_correct",
            "consistency_wrong",
        ),
        *("repetition", "none", "unsure"),
        *("unparsable", "choices", "choices_unread", "answered"),
    )
    fact = replace(FRANCE, negatives=POOL)
    results = {}
    for name, settings, controls in [
        ("own", {}, ()),
        ("majority", {}, (Control(fact_id=FRANCE.id, majority="Paris"),)),
        ("none", {}, (Control(fact_id=FRANCE.id, shuffled="x"),)),
        ("asked", {"controls": "asked"}, ()),
        ("written", {"distractors_from": "openai/w"}, ()),
    ]:
        case = replace(
            make_case(ReliabilitySettings(choices=1, **settings), fact),
            controls=controls,
        )
        oracle = Oracle(say=lambda request: "unsure")
        results[name] = run_case(case, oracle, oracle.keep).table.columns
    assert results["own"] == results["none"] == own
    # The model has no probabilities.
    assert (*own, "answer_prob", "first_prob", "squared_error") == reliability.COLUMNS
    assert results["majority"] == (*results["own"], "majority")
    assert results["asked"] == (
        *results["own"],
        "shuffled_right",
        "shuffled_correct",
        "shuffled_wrong",
    )
    assert results["written"] == (*results["own"], "distractors", "distractors_written")
    # Of what a model writes nobody knows the kind.
    drawn = ("distractors_drawn", "distractors_alike", "distractors_length")
    for settings, columns in (
        ({}, drawn),
        ({"distractors_from": "openai/w"}, results["written"][-2:]),
    ):
        case = make_case(ReliabilitySettings(choices=1, **settings), fact)
        oracle = Oracle(say=lambda request: "unsure")
        table = run_case(
            replace(case, alike=((FRANCE.id, 1.0),)), oracle, oracle.keep
        ).table
        assert table.columns == (*results["own"], *columns)


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("123) Rome", "Rome"),
        ("1234) Rome", "1234) Rome"),
        ("1 Rome", "1 Rome"),
        ("1)Rome", "Rome"),
        ("(1) Rome", "Rome"),
        ("(1)2", "(1)2"),
        ("(Z) Rome", "Rome"),
        ("z) Rome", "Rome"),
        ("zz) Rome", "zz) Rome"),
        ("z. Rome", "z. Rome"),
        ("-Rome", "-Rome"),
        ("1. 2. Rome", "2. Rome"),
        ("Rome: the city", "Rome: the city"),
        ("Rome:", None),
        ("Question:", None),
        ("question: Rome", "question: Rome"),
    ],
)
def test_what_stands_before_an_option_is_taken_off_once(line, option):
    assert read_distractors(line, "Paris") == (() if option is None else (option,))


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
