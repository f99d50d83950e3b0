"""What is foreseen of each rule, with and without a blessed run, a waiver and a partner for each fact."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of, pooled_figures
from pytest_kbrel.gates.measurement import measure
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Gate, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    answers,
    consistency,
    gate,
    outcome,
    scores,
)
from tests.gates.test_power import ahead, ids

BEFORE = consistency([("+", 1.0)] * 30 + [("-", 1.0)] * 10)


def of_two(*before: Table | None, facts: int = 20) -> GatePower:
    members = [
        Member(facts=ids(facts, prefix), columns=("as_expected",), before=one)
        for prefix, one in zip("AB", before, strict=True)
    ]
    (result,) = gate_powers(
        "c",
        [gate("as_expected", "max_drop", 0.01)],
        pooled_figures(2),
        members,
        comparisons=1,
        unknown="why",
    )
    return result


def expected(prefix: str, n: int) -> Table:
    return Table(
        columns=("as_expected",),
        rows=tuple(outcome(q, (1,), "correct") for q in ids(n, prefix)),
    )


def test_a_run_counts_where_it_has_all_members_and_then_only_its_facts_do() -> None:
    assert (of_two(None, None).n, of_two(None, None).note) == (40, "why")
    for lacking in (None, Table(columns=("as_expected",), rows=())):
        assert (
            of_two(expected("A", 20), lacking).n,
            of_two(expected("A", 20), lacking).note,
        ) == (40, "why")
    both = of_two(expected("A", 15), expected("B", 25))
    assert (both.n, both.note) == (35, "")


def test_facts_that_a_blessed_run_lacks_are_in_no_drop() -> None:
    member = Member(facts=ids(50), columns=HEAD_TO_TAIL, before=answers("+" * 30))
    figures = figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL))
    (result,) = gate_powers(
        "c", [gate("accuracy", "max_drop", 0.1)], figures, [member], comparisons=1
    )
    assert (result.n, result.mde) == (30, stats.rate_mde(30, 3.0, stats.sidak(1), 0.05))


def test_what_is_noted_where_nothing_else_says_why_no_drop_is_known() -> None:
    assert (
        ahead("accuracy_f1", "max_drop", 0.1).note
        == "its spread is known with a baseline only"
    )
    assert ahead("accuracy", "max_drop", 0.1, n=200, paired=False).note == ""


@pytest.mark.parametrize(
    ("before", "mde", "note"),
    [
        (scores([0.5, 0.6] * 20), True, "or more"),
        (scores([0.5] * 20), False, "no spread between the facts"),
        (scores([0.5]), False, "n < 2"),
        (scores([0.0, 1.0]), False, "no drop is found among so few facts"),
    ],
)
def test_why_no_drop_can_be_foreseen(before: Table, mde: bool, note: str) -> None:
    result = ahead("accuracy_f1", "max_drop", 0.01, before=before)
    assert ((result.mde is not None), result.note) == (mde, note)


def test_drops_of_rates_over_few_facts_are_not_found() -> None:
    assert (
        ahead("accuracy", "max_drop", 0.01, n=2).note
        == "no drop is found among so few facts"
    )
    empty = ahead("accuracy", "max_drop", 0.01, n=0)
    assert (empty.n, empty.mde, empty.note) == (
        0,
        None,
        "no drop is found among so few facts",
    )


def test_gates_are_foreseen_in_their_order() -> None:
    gates = [
        Gate(metric=name, rule="min", bound=0.1, line=at)
        for at, name in enumerate(("missing", "accuracy"))
    ]
    result = gate_powers(
        "c",
        gates,
        figures_of(metrics_for("head_to_tail", "x", HEAD_TO_TAIL)),
        [Member(facts=("a",), columns=HEAD_TO_TAIL)],
        comparisons=0,
    )
    assert [(one.metric, one.line) for one in result] == [
        ("missing", 0),
        ("accuracy", 1),
    ]


@pytest.mark.parametrize(
    ("after", "before", "note"),
    [
        ([("+", 0.5)], [("+", 0.5)], "n < 2"),
        ([("?", 0.5)] * 3, [("+", 0.5)] * 3, "no correct answer"),
        ([("+", 0.5), ("+", 0.6)], [("?", 0.5)] * 2, "baseline: no correct answer"),
        (
            [("+", 0.5), ("+", 0.6), ("?", 0)],
            [("?", 0)] * 3,
            "baseline: no correct answer",
        ),
        ([("+", 0.5), ("+", 0.6)], [], "no fact in common with the baseline"),
        ([("+", 0.5), ("+", 0.6)], [("+", 0.5), ("+", 0.6)], "unchanged in every fact"),
        # Where the candidate's own figure says something, that comes first.
        (
            [("+", 0.5)] * 3,
            [],
            "no spread between the facts; no fact in common with the baseline",
        ),
    ],
)
def test_why_a_difference_is_not_known(after: Any, before: Any, note: str) -> None:
    metrics = [
        of
        for of in metrics_for("reliability", "seen-x", BEFORE.columns)
        if of.name == "c_correct"
    ]
    (result,) = measure(consistency(after), metrics, consistency(before))
    assert result.note == note
