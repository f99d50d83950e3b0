from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.gates import add_noise_floors, decide_aggregate, measure
from pytest_kbrel.gates.figures import figures_of, figures_over
from pytest_kbrel.gates.noise import noise_floors
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import AggregateCase, Table
from tests.gates.tables import answers, blessed, case, consistency, decided, gate


def noise(first: Table, again: Table, probe: str = "head_to_tail") -> dict[str, float]:
    return noise_floors(figures_of(metrics_for(probe, "world-head", first.columns)), [first], [again])


def test_of_a_rate_it_is_the_share_of_facts_that_changed_whichever_way() -> None:
    actual = noise(answers("++++----??"), answers("+++--+--??"))
    assert actual["accuracy"] == pytest.approx(0.2)
    assert actual["missing"] == 0.0


def test_asked_the_same_nothing_moves() -> None:
    assert set(noise(answers("++--??"), answers("++--??")).values()) == {0.0}


# Steps that are no rounding.
SCORES = st.integers(0, 1000).map(lambda step: step / 1000)
MARKS = st.lists(st.tuples(st.sampled_from("+-?"), SCORES), min_size=3, max_size=8)


@settings(deadline=None)
@given(MARKS, MARKS)
def test_it_is_the_sum_of_what_each_fact_alone_moves(one, other) -> None:
    n = min(len(one), len(other))
    first, again = consistency(one[:n]), consistency(other[:n])
    metrics = metrics_for("reliability", "seen-zero-shot", first.columns)

    def values(table: Table) -> dict[str, float | None]:
        return {value.name: value.value for value in measure(table, metrics)}

    actual = noise_floors(figures_of(metrics), [first], [again])
    plain = values(first)
    moved = [
        values(dataclasses.replace(first, rows=(*first.rows[:k], again.rows[k], *first.rows[k + 1 :])))
        for k in range(n)
    ]
    for name, value in plain.items():
        changes = [of[name] for of in moved]
        if value is None or any(change is None for change in changes):
            assert name not in actual
        else:
            expected = sum(abs(change - value) for change in changes if change is not None)
            assert math.isclose(actual[name], expected, abs_tol=1e-12)


def test_a_blessed_floor_is_known_to_every_metric_that_is_compared() -> None:
    before = answers("+" * 20)
    known = dataclasses.replace(blessed(before), noise=(("accuracy", 0.125),))
    result = decided(case(), answers("+" * 18 + "--"), baseline=known, baseline_asked=True)
    assert {value.name: value.noise for value in result.metrics if value.noise is not None} == {
        "accuracy": 0.125
    }
    assert {value.noise for value in decided(case(), before).metrics} == {None}


def test_no_gate_fails_inside_the_floor() -> None:
    demands = case(gate("accuracy", "max_drop", 0.0))
    before, after = answers("+" * 100), answers("+" * 90 + "-" * 10)
    assert decided(demands, after, before).verdict == "fail"
    known = dataclasses.replace(blessed(before), noise=(("accuracy", 0.11),))
    assert decided(demands, after, baseline=known, baseline_asked=True).verdict == "inconclusive"


def test_asked_again_a_case_has_its_own_floors() -> None:
    first = decided(case(), answers("++++----"))
    result = add_noise_floors(first, answers("+++-----"))
    assert result.again == answers("+++-----")
    assert {value.name: value.noise for value in result.metrics}["accuracy"] == pytest.approx(1 / 8)
    assert result.verdict == first.verdict


def test_the_floors_of_a_slice_are_those_of_its_own_figures() -> None:
    unseen = case(probe="reliability", slice="unseen-zero-shot")
    first, again = (consistency([(mark, 0) for mark in marks], expected=False) for marks in ("???-", "??--"))
    result = add_noise_floors(decided(unseen, first), again)
    assert {value.name: value.noise for value in result.metrics}["ur"] == 0.25


def test_the_floors_of_members_are_added_whichever_of_them_changed() -> None:
    def floors(head: str, tail: str) -> dict[str, float]:
        first = [decided(case(slice=name), answers("++--")) for name in ("a-head", "a-tail")]
        again = [answers(head), answers(tail)]
        return noise_floors(figures_over(first), [of.table for of in first], again)

    changed = [("+---", "++--"), ("++--", "+---"), ("+---", "+---"), ("+-+-", "----")]
    actual = [floors(*marks) for marks in changed]
    # Each of four facts moves its member's accuracy by a quarter, and the mean of the two by an eighth.
    assert [of["gap"] for of in actual] == [0.25, 0.25, 0.5, 1.0]
    assert [of["accuracy"] for of in actual] == [0.125, 0.125, 0.25, 0.5]


def test_cases_over_several_have_floors_where_all_members_were_asked_twice() -> None:
    members = [
        add_noise_floors(decided(case(slice="a-head"), answers("++++")), answers("+++-")),
        add_noise_floors(decided(case(slice="a-tail"), answers("++--")), answers("++--")),
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
    assert (noises["accuracy_head"], noises["accuracy_tail"]) == (0.25, 0.0)
    assert (noises["accuracy"], noises["gap"]) == (0.125, 0.25)
    once = [members[0], dataclasses.replace(members[1], again=Table(columns=(), rows=()))]
    actual = decide_aggregate(overall, once, baseline=None, comparisons=0)
    assert {value.noise for value in actual.metrics} == {None}
