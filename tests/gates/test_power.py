"""Minimum detectable effects before a run, and gates that cannot fail, on cases worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    RELIABILITY,
    consistency,
    gate,
    scores,
)


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


def test_a_figure_without_spread_says_so():
    actual = ahead("accuracy_f1", "max_drop", 0.05, before=scores([0.5] * 20))
    assert actual.mde is None
    assert actual.note


def test_an_unknown_metric_is_noted():
    assert ahead("acuracy", "min", 0.5).note == "no metric of this name is measured"
