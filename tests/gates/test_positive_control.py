"""Positive controls: a gate is judged again as if the candidate had lost twice what the gate allows."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest

from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.positive_control import _drawn
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import GateResult, Outcome, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    decided,
    gate,
    outcome,
)

WORLD = gate("accuracy", "max_drop", 0.08, beyond=0.02, never=0.15)
HALF = gate("accuracy", "max_drop", 0.05)


def in_objects(table: Table, objects: int) -> Table:
    """Return the table with its facts shared out to so many objects in turn."""
    rows = (
        dataclasses.replace(row, cluster=f"object {at % objects}")
        for at, row in enumerate(table.rows)
    )
    return Table(columns=table.columns, rows=tuple(rows))


def monitored(anchors: list[float]) -> Table:
    """Return a MONITOR table of facts with so probable anchors."""
    rows: list[Outcome] = [
        outcome(f"Q{at:03}", (1, 0.1, 0.1, 0.2 * (1.2 - p), p, 1, 1), "correct")
        for at, p in enumerate(anchors)
    ]
    return Table(columns=MONITOR, rows=tuple(rows))


def control_of(result: GateResult) -> tuple[bool | None, float | None]:
    return result.positive_control, result.positive_control_drop


@pytest.mark.parametrize(
    ("n", "demand", "fails", "drop"),
    [
        # 64 of 400 are lost: the plan's table has a power of 100 % there.
        (400, WORLD, True, 0.16),
        (120, WORLD, True, 20 / 120),
        (400, HALF, True, 0.1),
        # A drop of 0.1 is found over about 170 facts.
        (60, HALF, False, 0.1),
        (400, gate("accuracy", "recovery", 0.9), True, 0.2),
        (60, gate("hallucination", "max_drop", 0.05), False, 0.1),
    ],
)
def test_twice_the_tolerance_is_lost_on_paper(
    n: int, demand, fails: bool, drop: float
) -> None:
    table = answers("+" * n)
    (actual,) = decided(case(demand), table, table, comparisons=23).gates
    assert actual.verdict == "pass"
    assert control_of(actual) == (fails, pytest.approx(drop))


def test_what_the_candidate_lost_itself_counts() -> None:
    before, after = (
        answers("+" * 100 + "-" * 20),
        answers("-" * 18 + "+" * 92 + "-" * 10),
    )
    (actual,) = decided(case(HALF), after, before).gates
    # 8 of 120 is what it lost itself, and 4 more are lost on paper.
    assert actual.observed == pytest.approx(8 / 120)
    assert actual.positive_control_drop == pytest.approx(12 / 120)


@pytest.mark.parametrize("lost", [12, 30])
def test_a_candidate_that_lost_as_much_itself_has_no_control(lost: int) -> None:
    """Nothing is lost on paper then, and the drop would be its own: that the gate failed is no proof."""
    before, after = (
        answers("+" * 100 + "-" * 20),
        answers("-" * lost + "+" * (100 - lost) + "-" * 20),
    )
    for demand in (HALF, gate("accuracy", "recovery", 0.94)):
        (already,) = decided(case(demand), after, before).gates
        assert already.observed is not None
        assert control_of(already) == (None, None)
    (almost,) = decided(
        case(HALF), answers("-" * 11 + "+" * 89 + "-" * 20), before
    ).gates
    assert almost.positive_control_drop == pytest.approx(12 / 120)


def test_all_facts_are_lost_where_these_are_too_few() -> None:
    table = answers("+" * 10 + "-" * 90)
    (actual,) = decided(case(gate("accuracy", "max_drop", 0.08)), table, table).gates
    assert control_of(actual) == (True, pytest.approx(0.1))


def test_clusters_weaken_the_control_as_they_do_the_gate() -> None:
    table = answers("+" * 120)
    bare = gate("accuracy", "max_drop", 0.08, beyond=0.02)
    fails = [
        decided(case(bare), in_objects(table, objects), table, comparisons=3)
        .gates[0]
        .positive_control
        for objects in (120, 2)
    ]
    assert fails == [True, False]


def test_of_two_clusters_it_is_said_that_no_drop_would_be_found() -> None:
    after, before = answers("-" * 6 + "+" * 114), answers("+" * 120)
    bare = gate("accuracy", "max_drop", 0.08, beyond=0.02)
    few, many = (
        decided(case(bare), in_objects(after, objects), before, comparisons=20)
        for objects in (2, 120)
    )
    assert "; no drop would be found with 80 % power" in few.gates[0].reason
    assert "; a drop of 0.1" in many.gates[0].reason
    assert next(value for value in few.metrics if value.name == "accuracy").mde is None


def test_lost_facts_are_spread_over_the_clusters_as_all_facts_are() -> None:
    table = in_objects(answers("+" * 120), 12)
    figures = {
        of.name: of for of in figures_of(metrics_for("head_to_tail", "a", HEAD_TO_TAIL))
    }
    order = _drawn(figures["accuracy"], [table], {0: {"correct": 0.0}})
    assert sorted(order) == [row.fact_id for row in table.rows]
    clusters = {row.fact_id: row.cluster for row in table.rows}
    sizes = Counter(clusters[fact] for fact in order[:60])
    # Of ten facts of an object five are lost on average; all or none of ten would be 0.06 % each.
    assert len(sizes) == 12
    assert max(sizes.values()) < 10


def test_a_figure_without_worst_values_takes_those_of_its_worst_fact() -> None:
    table = monitored([0.9, 0.8, 0.95, 0.2, *[0.85] * 60])
    tight, loose = (
        decided(
            case(gate("monitor", "max_drop", bound), probe="monitor", slice="P36"),
            table,
            table,
        ).gates[0]
        for bound in (0.02, 0.2)
    )
    assert tight.positive_control is True
    assert tight.positive_control_drop == pytest.approx(0.04, abs=0.02)
    assert loose.positive_control_drop is not None
    assert loose.positive_control_drop == pytest.approx(0.4, abs=0.03)


def test_gates_that_were_not_compared_or_allow_nothing_have_none() -> None:
    table = answers("+" * 50)
    gates = (gate("accuracy", "min", 0.5), gate("accuracy", "max_drop", 0.0), HALF)
    with_baseline = decided(case(*gates), table, table).gates
    assert [control_of(result)[0] is None for result in with_baseline] == [
        True,
        True,
        False,
    ]
    assert all(
        control_of(result) == (None, None)
        for result in decided(case(*gates), table).gates
    )


def test_the_other_gates_of_the_case_lose_the_same_facts() -> None:
    """Two figures that get worse together are red together: by Simes' p no more is needed than of one."""
    table = answers("+" * 150)
    twin = gate("hallucination", "max_drop", 0.05)
    single, *_ = decided(case(HALF), table, table, comparisons=5).gates
    both = decided(case(HALF, twin), table, table, comparisons=5).gates
    assert {result.positive_control for result in both} == {single.positive_control}
