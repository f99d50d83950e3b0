"""Minimum detectable effects before a run, and gates that cannot fail, on cases worked out by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of, figures_over, pooled_figures
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    RELIABILITY,
    answers,
    case,
    consistency,
    decided,
    gate,
    scores,
)

FORTY = "+" * 25 + "-" * 15


def ids(n: int, prefix: str = "Q") -> tuple[str, ...]:
    return tuple(f"{prefix}{number:03}" for number in range(n))


def ahead(
    metric: str,
    rule: str,
    bound: float,
    n: int = 100,
    before: Table | None = None,
    **more: Any,
) -> GatePower:
    """What a gate of one head-to-tail slice could find, or of a reliability slice if ``before`` is one."""
    columns = HEAD_TO_TAIL if before is None else before.columns
    probe, slice_ = (
        ("reliability", "seen-x")
        if columns == RELIABILITY
        else ("head_to_tail", "world-head")
    )
    facts = ids(n) if before is None else tuple(row.fact_id for row in before.rows)
    (actual,) = gate_powers(
        "s.kb.yaml::case",
        [gate(metric, rule, bound)],
        figures_of(metrics_for(probe, slice_, columns)),
        [Member(facts=facts, columns=columns, before=before)],
        **{"comparisons": 1, **more},
    )
    return actual


def test_the_drop_of_a_rate_that_is_found_is_the_one_of_the_test_that_will_decide():
    actual = ahead("accuracy", "max_drop", 0.05, n=200, comparisons=20)
    assert actual.mde == stats.rate_mde(200, 0.1 * 200, stats.sidak(20), 0.025)
    assert actual.never == ""
    assert actual.n == 200
    assert ahead("accuracy", "max_drop", 0.05, n=400, comparisons=20).mde < actual.mde
    assert ahead("accuracy", "max_drop", 0.05, n=200, comparisons=1).mde < actual.mde


def test_the_drop_of_another_figure_is_found_by_the_baselines_spread():
    before = consistency(
        [("+", 0.2 + 0.002 * i) for i in range(300)] + [("-", 0.5)] * 100
    )
    actual = ahead("nccr", "max_drop", 0.05, before=before)
    figure = next(
        f
        for f in figures_of(metrics_for("reliability", "seen-x", RELIABILITY))
        if f.name == "nccr"
    )
    se = figure.estimate([before]).se
    assert se is not None
    # z(0.95) + z(0.8) is 2.486; a t test over 400 facts needs a little more.
    plain = 0.025 + 2.486 * se * math.sqrt(2 * (1 - 0.8))
    assert actual.mde == pytest.approx(plain, rel=0.05)
    assert actual.mde > plain
    unknown = ahead(
        "nccr",
        "max_drop",
        0.05,
        before=Table(columns=RELIABILITY, rows=()),
        unknown="why",
    )
    assert (unknown.mde, unknown.note) == (None, "why")


def test_no_drop_is_said_to_be_found_that_takes_fewer_facts_than_the_test_needs():
    """At 20 comparisons eight facts must have changed for the worse: each moves the mean by 2 / 60."""
    before = consistency([("+", 1.0)] * 59 + [("+", 0.999)])
    actual = ahead("nccr", "max_drop", 0.05, before=before, comparisons=20)
    assert stats.fewest_flips(stats.sidak(20)) == 8
    assert actual.mde == pytest.approx(8 * 2 / 60, rel=0.01)


def test_a_figure_without_spread_says_so():
    actual = ahead("accuracy_f1", "max_drop", 0.05, before=scores([0.5] * 20))
    assert actual.mde is None
    assert actual.note


@pytest.mark.parametrize(
    ("metric", "rule", "bound", "never"),
    [
        ("accuracy", "min", 0.0, "never below 0"),
        ("accuracy", "min", 0.01, ""),
        ("hallucination", "max", 1.0, "never above 1"),
        ("hallucination", "max", 0.99, ""),
        ("accuracy", "above_control", -1.0, "never more than 1"),
        ("accuracy", "above_control", 0.0, ""),
        ("accuracy", "max_drop", 1.0, "its range is 1"),
        ("accuracy", "max_drop", 0.99, ""),
        ("accuracy", "recovery", 0.0, "at least 0 of the baseline"),
        ("accuracy", "recovery", 0.5, ""),
    ],
)
def test_bounds_at_the_end_of_a_metrics_range_are_named(metric, rule, bound, never):
    actual = ahead(metric, rule, bound)
    assert never in actual.never
    assert bool(actual.never) == bool(never)


@pytest.mark.parametrize(
    ("metric", "rule", "bound", "never"),
    [
        # 25 of 40 are right: accuracy can fall by 0.625, hallucination (15 of 40) rise by 0.625.
        (
            "accuracy",
            "max_drop",
            0.63,
            "from the baseline's 0.625 it can get worse by 0.625",
        ),
        ("accuracy", "max_drop", 0.62, ""),
        (
            "hallucination",
            "max_drop",
            0.63,
            "from the baseline's 0.375 it can get worse by 0.625",
        ),
        ("hallucination", "max_drop", 0.62, ""),
        ("hallucination", "recovery", 0.37, "at least 0.375 of the baseline is left"),
        ("hallucination", "recovery", 0.38, ""),
    ],
)
def test_a_tolerance_beyond_the_largest_drop_is_named(metric, rule, bound, never):
    actual = ahead(metric, rule, bound, before=answers(FORTY))
    assert never in actual.never
    assert bool(actual.never) == bool(never)


def test_nothing_can_be_recovered_of_nothing():
    assert (
        "baseline of 0"
        in ahead("accuracy", "recovery", 0.9, before=answers("-" * 40)).never
    )


@pytest.mark.parametrize("comparisons", [1, 20, 100])
def test_too_few_facts_are_named_exactly_where_the_real_gate_cannot_fail(comparisons):
    """The loss of all n facts has a p-value for a drop of 0.05, and the gate itself agrees."""
    reached = []
    for n in range(2, 14):
        actual = ahead(
            "accuracy",
            "max_drop",
            0.1,
            before=answers("+" * n),
            comparisons=comparisons,
        )
        lost = decided(
            case(gate("accuracy", "max_drop", 0.1)),
            answers("-" * n),
            answers("+" * n),
            comparisons=comparisons,
        )
        assert (actual.never == "") == (lost.gates[0].verdict == "fail"), n
        assert (actual.never == "") == (
            stats.drop_p(n, n, 0, 0.05) < stats.sidak(comparisons)
        ), n
        # Without a baseline all facts are thought to be right in it.
        blind = ahead("accuracy", "max_drop", 0.1, n=n, comparisons=comparisons)
        assert bool(blind.never) == bool(actual.never)
        reached.append(not actual.never)
    assert not reached[0]
    assert reached[-1]


def test_only_facts_that_can_be_lost_count():
    """Of 40 facts 3 are right: the loss of 3 is never significant."""
    few = ahead("accuracy", "max_drop", 0.01, before=answers("+++" + "-" * 37))
    assert "not even the loss of all 40 facts" in few.never
    assert (
        ahead("accuracy", "max_drop", 0.01, before=answers("+" * 6 + "-" * 34)).never
        == ""
    )


def test_one_fact_shows_nothing():
    assert "one fact" in ahead("accuracy", "max_drop", 0.1, n=1).never


def test_a_figure_between_rates_has_an_end_too():
    """NCR falls to -1 when all are wrong; over four facts that is not significant, over forty it is."""
    assert ahead(
        "ncr", "max_drop", 0.1, before=consistency([("+", 1.0)] * 4), comparisons=20
    ).never
    assert not ahead(
        "ncr", "max_drop", 0.1, before=consistency([("+", 1.0)] * 40), comparisons=20
    ).never


def test_a_waiver_is_a_reason_for_every_gate():
    actual = ahead(
        "accuracy", "min", 0.5, waived="a waiver lets its failure pass until 2099-01-01"
    )
    assert actual.never.startswith("a waiver")


def test_an_unknown_metric_is_noted():
    assert ahead("acuracy", "min", 0.5).note == "no metric of this name is measured"


def test_the_pooled_figure_is_over_the_facts_of_all_slices():
    members = [
        Member(facts=ids(20, prefix), columns=("as_expected",)) for prefix in "AB"
    ]
    (actual,) = gate_powers(
        "s",
        [gate("as_expected", "max_drop", 0.01)],
        pooled_figures(2),
        members,
        comparisons=5,
        unknown="why",
    )
    assert (actual.n, actual.note, actual.never) == (40, "why", "")
    assert actual.mde == stats.rate_mde(40, 0.1 * 40, stats.sidak(5))
    # A fact that two slices ask about is one cluster, of which a count of answers says too little.
    twice = [Member(facts=ids(20), columns=("as_expected",))] * 2
    (actual,) = gate_powers(
        "s",
        [gate("as_expected", "max_drop", 0.01)],
        pooled_figures(2),
        twice,
        comparisons=5,
    )
    assert (actual.n, actual.mde) == (20, None)


def test_a_figure_over_some_members_counts_their_facts_only():
    """IUR is over the unseen slices: the seen facts cannot be lost in it."""
    rows = consistency([("?", 0.0)] * 4)
    results = [
        CaseResult(
            id=f"reliability[{slice_}]",
            suite="s",
            probe="reliability",
            slice=slice_,
            verdict="pass",
            n=0,
            duration=0.0,
            metrics=(),
            gates=(),
            table=rows,
        )
        for slice_ in ("seen-zero-shot", "unseen-zero-shot")
    ]
    members = [
        Member(facts=ids(30, "S"), columns=RELIABILITY),
        Member(facts=ids(4, "U"), columns=RELIABILITY),
    ]
    gates = [gate("iur", "max_drop", 0.1), gate("nccr", "max_drop", 0.1)]
    unseen, seen = gate_powers(
        "s", gates, figures_over(results), members, comparisons=5
    )
    assert (unseen.n, seen.n) == (4, 30)
    assert "all 4 facts" in unseen.never
    assert seen.never == ""
    # So too with a blessed run, where what can be found follows from its outcomes.
    blessed = [
        dataclasses.replace(
            members[0], before=consistency([("+", 0.8), ("-", 0.2)] * 15, "S")
        ),
        dataclasses.replace(
            members[1], before=consistency([("?", 0.0), ("-", 0.3)] * 2, "U")
        ),
    ]
    actual = gate_powers("s", gates, figures_over(results), blessed, comparisons=5)
    alone = [
        gate_powers("s", [of], figures_over([result]), [member], comparisons=5)[0]
        for of, result, member in zip(
            gates, reversed(results), reversed(blessed), strict=True
        )
    ]
    assert [(one.n, one.mde, one.note, one.never) for one in actual] == [
        (one.n, one.mde, one.note, one.never) for one in alone
    ]
    assert actual[1].mde is not None
