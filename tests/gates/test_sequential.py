"""Looks at a case that may stop early: what decides at each, and how often it errs."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates import all_decided, planned_looks
from pytest_kbrel.records import CaseResult, Gate, Looks
from pytest_kbrel.stats.paired_rates import drop_p, tango
from pytest_kbrel.stats.sequential import boundaries
from tests.gates.tables import answers, case, decided, gate

WORLD = gate("accuracy", "max_drop", 0.08, beyond=0.02)


def at_look(
    number: int, n: int, lost: int, gained: int = 0, *gates: Gate, m: int = 20
) -> CaseResult:
    """Decide the n facts of look ``number`` of 10, of which so many were lost and gained."""
    still = n - lost - gained
    before, after = (
        "+" * lost + "-" * gained + "+" * still,
        "-" * lost + "+" * gained + "+" * still,
    )
    looks = Looks(taken=number, of=10, asked=n, facts=n * 10 // number)
    of = case(*(gates or (WORLD,)))
    return decided(of, answers(after), answers(before), comparisons=m, looks=looks)


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        (120, (12, 24, 36, 48, 60, 72, 84, 96, 108, 120)),
        (101, (11, 21, 31, 41, 51, 61, 71, 81, 91, 101)),
        (35, (12, 24, 35)),
        (19, (19,)),
    ],
)
def test_looks_are_at_equal_shares_of_at_least_ten_facts(
    facts: int, asked: tuple[int, ...]
) -> None:
    looks = planned_looks(case(WORLD), facts)
    assert tuple(look.asked for look in looks) == asked
    assert {(look.of, look.facts) for look in looks} == {(len(asked), facts)}
    assert [look.early for look in looks] == [True] * (len(asked) - 1) + [False]


def test_a_case_that_compares_nothing_is_asked_at_once() -> None:
    (look,) = planned_looks(case(gate("accuracy", "min", 0.5)), 120)
    assert look.asked == 120


def test_nothing_lost_decides_at_the_last_look_only() -> None:
    tight = gate("accuracy", "max_drop", 0.01)
    assert at_look(9, 108, 0, 0, tight).gates[0].verdict == "inconclusive"
    assert at_look(10, 120, 0, 0, tight).gates[0].verdict == "pass"


def test_an_early_pass_lies_within_the_interval_of_its_look() -> None:
    # At look 4 of 10 each end holds at z = 3.367: 200 facts of which 1 was lost are not within 0.08.
    few, many = at_look(4, 200, 4).gates[0], at_look(4, 400, 4).gates[0]
    assert (few.verdict, many.verdict) == ("inconclusive", "pass")
    z = boundaries(0.025, 10)[3]
    assert many.high == pytest.approx(-tango(400, 4, 0, z)[0], abs=1e-9)
    assert many.high is not None
    assert many.high <= 0.08


def test_an_early_failure_has_a_p_below_the_family_level_over_all_looks() -> None:
    result = at_look(4, 160, 40, 1)
    (actual,) = result.gates
    assert actual.verdict == "fail"
    assert actual.p is not None
    assert actual.p_sidak is not None
    assert drop_p(160, 40, 1, 0.02) < actual.p < stats.sidak(20)
    assert actual.p_sidak < 0.05
    # The plain p of fewer lost facts is below the level of a case, and not beyond the boundary of this look.
    weaker = at_look(4, 160, 17, 1).gates[0]
    assert drop_p(160, 17, 1, 0.02) < stats.sidak(20)
    assert weaker.verdict == "inconclusive"


def test_a_case_is_decided_when_all_its_comparisons_are() -> None:
    loose, tight, low = (
        WORLD,
        gate("f1", "max_drop", 0.001),
        gate("accuracy", "min", 0.999),
    )
    assert all_decided(at_look(4, 400, 4, 0, loose).gates)
    assert not all_decided(at_look(4, 400, 4, 0, loose, tight).gates)
    assert all_decided(at_look(4, 400, 4, 0, loose, low).gates)
    assert not all_decided(at_look(4, 400, 4, 0, low).gates)
    broken = dataclasses.replace(at_look(4, 400, 4), gates=())
    assert not all_decided(broken.gates)


def test_a_stopped_case_says_after_how_many_facts() -> None:
    told = at_look(4, 400, 4).gates[0].reason
    assert told.endswith(
        "; decided after 400 of 1000 facts, at look 4 of 10, whose intervals are of 99.92 %"
    )
    assert "undecided after 60 of 120 facts" in at_look(5, 60, 6).gates[0].reason
    assert " at look " not in at_look(10, 120, 0).gates[0].reason
