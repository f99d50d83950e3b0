"""The smallest drop of a rate that a gate would find, before anything is asked."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.records import AggregateCase, Gate, HeadToTailSettings, Suite
from pytest_kbrel.session.plan import power_of_gates
from pytest_kbrel.stats import Flips, sidak
from pytest_kbrel.stats.paired_rates import rate_mde
from tests.probes.conftest import NORWAY, make_case

DROP = Gate(metric="accuracy", rule="max_drop", bound=0.08)


def facts(n, answers=10**6):
    return [
        dataclasses.replace(
            NORWAY, id=f"F{at}", subject=f"Land {at}", object=f"City {at % answers}"
        )
        for at in range(n)
    ]


def drop(changed):
    flips = Flips(n=200, down=changed, up=0, both=0)
    return rate_mde(flips, sidak(1), 0.04)


def power(*gates, n=200, answers=10**6, pooled=False, paired=True, **settings):
    case = make_case(HeadToTailSettings(**settings), *facts(n, answers))
    case = dataclasses.replace(case, gates=() if pooled else gates)
    over = AggregateCase(
        id="pooled[overall]",
        suite=case.suite,
        probe="pooled",
        slice="overall",
        members=(case.id,),
        gates=gates,
    )
    suite = Suite(
        name="s",
        path=case.suite,
        cases=(case,),
        aggregates=(over,) if pooled else (),
    )
    return power_of_gates([suite], [case], paired=paired)


def test_the_drop_of_a_rate_is_that_of_a_run_in_which_a_tenth_of_the_facts_change():
    (found,) = power(DROP)
    assert (found.n, found.drop) == (200, drop(20))
    expected = Gate(metric="as_expected", rule="max_drop", bound=0.08)
    (over_all,) = power(expected, pooled=True)
    assert (over_all.n, over_all.drop) == (200, found.drop)
    (reworded,) = power(DROP, wordings=3)
    # The gate finds the loss of all of six facts.
    assert [of.drop for n in (6, 3) for of in power(DROP, n=n)] == [1.0, None]
    # .2 + .8 / 3 of the variance is left.
    assert reworded.drop == drop(9)


def test_facts_that_share_their_answers_count_as_fewer():
    (alone,), (shared,), (few,) = (power(DROP, answers=of) for of in (200, 20, 5))
    assert shared.drop > alone.drop
    assert (few.is_planned, few.drop) == (True, None)


@pytest.mark.parametrize(
    ("gate", "paired"),
    [
        (Gate(metric="accuracy_f1", rule="max_drop", bound=0.1), True),
        (Gate(metric="accuracy", rule="recovery", bound=0.9), True),
        (Gate(metric="accuracy", rule="min", bound=0.9), True),
        # A paper tells no single facts.
        (DROP, False),
    ],
)
def test_what_is_no_paired_rate_is_not_planned(gate, paired):
    (found,) = power(gate, paired=paired)
    assert (found.is_planned, found.drop) == (False, None)
