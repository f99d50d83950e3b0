from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates import add_noise_floors, decide_aggregate
from pytest_kbrel.gates.figures import figures_of, figures_over
from pytest_kbrel.gates.noise import noise_floors
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import AggregateCase, Table
from tests.gates.tables import answers, blessed, case, consistency, decided, gate


def noise(first: Table, again: Table, probe: str = "head_to_tail") -> dict[str, float]:
    return noise_floors(
        figures_of(metrics_for(probe, "world-head", first.columns)), [first], [again]
    )


def test_of_a_rate_it_is_the_farther_end_of_the_interval_of_the_difference() -> None:
    actual = noise(answers("++++----??"), answers("+++--+--??"))
    assert actual["accuracy"] == pytest.approx(stats.tango(10, 1, 1)[1])
    assert actual["missing"] == 0.0


def test_of_a_thousand_facts_three_in_a_hundred_that_changed_hide_no_loss_of_five() -> (
    None
):
    """Their share, which was the floor once, would: 30 changed, and what changed both ways cancels out."""
    actual = noise(
        answers("+" * 500 + "-" * 500),
        answers("-" * 15 + "+" * 485 + "+" * 15 + "-" * 485),
    )
    assert actual["accuracy"] == pytest.approx(0.0112, abs=2e-4)


def test_asked_the_same_nothing_moves() -> None:
    assert set(noise(answers("++--??"), answers("++--??")).values()) == {0.0}


def test_a_blessed_floor_is_known_to_every_metric_that_is_compared() -> None:
    before = answers("+" * 20)
    known = dataclasses.replace(blessed(before), noise=(("accuracy", 0.125),))
    result = decided(
        case(), answers("+" * 18 + "--"), baseline=known, baseline_asked=True
    )
    assert {
        value.name: value.noise for value in result.metrics if value.noise is not None
    } == {"accuracy": 0.125}
    assert {value.noise for value in decided(case(), before).metrics} == {None}


def test_no_gate_fails_inside_the_floor() -> None:
    demands = case(gate("accuracy", "max_drop", 0.0))
    before, after = answers("+" * 100), answers("+" * 90 + "-" * 10)
    assert decided(demands, after, before).verdict == "fail"
    known = dataclasses.replace(blessed(before), noise=(("accuracy", 0.11),))
    assert (
        decided(demands, after, baseline=known, baseline_asked=True).verdict
        == "inconclusive"
    )


def test_never_holds_inside_the_floor_too() -> None:
    """Else one more lost fact, which makes a drop sure, would turn a red gate inconclusive."""
    demands = case(gate("accuracy", "max_drop", 0.08, beyond=0.02, never=0.15))
    known = dataclasses.replace(blessed(answers("+" * 100)), noise=(("accuracy", 0.3),))
    for lost in (9, 20):
        after = answers("+" * (100 - lost) + "-" * lost)
        (actual,) = decided(
            demands, after, baseline=known, baseline_asked=True, comparisons=23
        ).gates
        assert actual.verdict == "fail"
        assert "red by never" in actual.reason


def test_asked_again_a_case_has_its_own_floors() -> None:
    first = decided(case(), answers("++++----"))
    result = add_noise_floors(first, answers("+++-----"))
    assert result.again == answers("+++-----")
    assert {value.name: value.noise for value in result.metrics}[
        "accuracy"
    ] == pytest.approx(-stats.tango(8, 1, 0)[0])
    assert result.verdict == first.verdict


def test_the_floors_of_a_slice_are_those_of_its_own_figures() -> None:
    unseen = case(probe="reliability", slice="unseen-zero-shot")
    first, again = (
        consistency([(mark, 0) for mark in marks], expected=False)
        for marks in ("???-", "??--")
    )
    result = add_noise_floors(decided(unseen, first), again)
    assert {value.name: value.noise for value in result.metrics}["ur"] == pytest.approx(
        -stats.tango(4, 1, 0)[0]
    )


def test_the_floors_of_cases_over_several_are_of_their_own_figures() -> None:
    first = [
        decided(case(slice=name), answers("++--" * 9)) for name in ("a-head", "a-tail")
    ]
    again = [answers("+---" + "++--" * 8), answers("++--" * 9)]
    actual = noise_floors(figures_over(first), [of.table for of in first], again)
    # One of the 36 facts of the head, of which the mean of the two has half.
    assert 1 / 36 < actual["accuracy_head"] < 0.2
    assert actual["accuracy_head"] < actual["gap"] * 1.2
    assert 1 / 72 < actual["accuracy"] < actual["accuracy_head"]
    assert actual["accuracy_tail"] == 0.0


def test_cases_over_several_have_floors_where_all_members_were_asked_twice() -> None:
    members = [
        add_noise_floors(
            decided(case(slice="a-head"), answers("++++")), answers("+++-")
        ),
        add_noise_floors(
            decided(case(slice="a-tail"), answers("++--")), answers("++--")
        ),
    ]
    overall = AggregateCase(
        id="head_to_tail[overall]",
        suite=members[0].suite,
        probe="head_to_tail",
        slice="overall",
        members=tuple(member.id for member in members),
        gates=(),
    )
    actual = decide_aggregate(overall, members, baseline=None, comparisons=0)
    noises = {value.name: value.noise for value in actual.metrics}
    assert (noises["accuracy_head"], noises["accuracy_tail"]) == (
        pytest.approx(-stats.tango(4, 1, 0)[0]),
        0.0,
    )
    assert noises["accuracy"] is not None
    assert noises["gap"] is not None
    once = [
        members[0],
        dataclasses.replace(members[1], again=Table(columns=(), rows=())),
    ]
    actual = decide_aggregate(overall, once, baseline=None, comparisons=0)
    assert {value.noise for value in actual.metrics} == {None}
