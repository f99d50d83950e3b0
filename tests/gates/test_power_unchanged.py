"""What is foreseen of a model that lost nothing: facts for a pass, false alarms, groups of answers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.power import (
    CHANCES,
    DISCORDANT,
    UNCHANGED,
    UNCHANGED_CORRELATION,
    WORDING_CORRELATION,
    GatePower,
    Member,
    gate_powers,
)
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Table
from tests.gates.tables import HEAD_TO_TAIL, RELIABILITY, answers, consistency, gate
from tests.gates.test_power import ids


def foreseen(
    metric: str,
    before: Table | None = None,
    clusters: int = 0,
    n: int = 120,
    wordings: int = 1,
    **more: Any,
) -> GatePower:
    """What is foreseen of one gate over ``n`` facts, which share so many ``clusters`` alike."""
    columns = HEAD_TO_TAIL if before is None else before.columns
    probe, slice_ = (
        ("reliability", "seen-x")
        if columns == RELIABILITY
        else ("head_to_tail", "world-head")
    )
    facts = ids(n) if before is None else tuple(row.fact_id for row in before.rows)
    of_facts = (
        tuple((fact, f"answer {i % clusters}") for i, fact in enumerate(facts))
        if clusters
        else ()
    )
    (power,) = gate_powers(
        "s.kb.yaml::case",
        [gate(metric, more.pop("rule", "max_drop"), more.pop("bound", 0.08), **more)],
        figures_of(metrics_for(probe, slice_, columns)),
        [
            Member(
                facts=facts,
                columns=columns,
                before=before,
                clusters=of_facts,
                wordings=wordings,
            )
        ],
        comparisons=20,
    )
    return power


def test_a_rate_needs_the_facts_of_the_enumeration_with_a_baseline_and_without() -> (
    None
):
    for before in (None, answers("+" * 90 + "-" * 30)):
        power = foreseen("accuracy", before, never=0.15)
        assert power.needs == (95, 171)
        assert power.needs == tuple(
            stats.rate_facts_to_pass(UNCHANGED, 0.08, chance) for chance in CHANCES
        )
        assert power.false_red == pytest.approx(
            1 - stats.rate_within(120, UNCHANGED, 0.15)
        )
        assert power.groups is None
    assert foreseen("accuracy").false_red is None


def test_wordings_leave_a_part_of_the_variance() -> None:
    once, seven = (foreseen("accuracy", wordings=of, n=400) for of in (1, 7))
    left = WORDING_CORRELATION + (1 - WORDING_CORRELATION) / 7
    se = math.sqrt(UNCHANGED * left / 400)
    assert seven.wordings == 7
    assert seven.needs == tuple(
        stats.facts_to_pass(400, se, 399, 0.08, chance) for chance in CHANCES
    )
    assert all(
        (few or 0) < 0.5 * (many or 0)
        for few, many in zip(seven.needs, once.needs, strict=True)
    )
    mde = stats.mde(math.sqrt(DISCORDANT * left / 400), 399, stats.sidak(20))
    # What the gate allows before it may fail comes on top.
    assert seven.mde == pytest.approx(0.04 + mde)
    assert (once.mde or 0) - 0.04 == pytest.approx(mde / math.sqrt(left), rel=0.2)
    clustered = foreseen("accuracy", wordings=7, n=400, clusters=4, never=0.15)
    assert clustered.needs == tuple(
        stats.facts_to_pass(400, se, 3.0, 0.08, chance) for chance in CHANCES
    )
    assert clustered.false_red == pytest.approx(stats.end_beyond(0.15, se, 3.0))


def test_facts_that_share_answers_are_judged_by_these_as_well() -> None:
    alone, many, few = (
        foreseen("accuracy", clusters=of, never=0.15) for of in (0, 40, 4)
    )
    assert (many.groups, few.groups) == (40.0, 4.0)
    se = math.sqrt(UNCHANGED / 120)
    # Four alike answers leave three degrees of freedom.
    assert few.needs == tuple(
        stats.facts_to_pass(120, se, 3.0, 0.08, chance) for chance in CHANCES
    )
    assert few.false_red == pytest.approx(stats.end_beyond(0.15, se, 3.0))
    for a, b, c in zip(alone.needs, many.needs, few.needs, strict=True):
        assert (a or 0) <= (b or 0) < (c or 0)


def test_facts_that_all_share_one_answer_never_pass() -> None:
    one = foreseen("accuracy", clusters=1, never=0.15)
    assert (one.needs, one.false_red, one.groups) == ((None, None), 1.0, 1.0)
    assert foreseen("accuracy", clusters=1).false_red is None


def test_another_figure_needs_facts_by_the_spread_of_the_baseline() -> None:
    before = consistency(
        [("+", 0.2 + 0.002 * i) for i in range(300)] + [("-", 0.5)] * 100
    )
    power = foreseen("nccr", before, bound=0.05, never=0.1)
    figure = next(
        f
        for f in figures_of(metrics_for("reliability", "seen-x", RELIABILITY))
        if f.name == "nccr"
    )
    estimate = stats.jackknife([(1.0, figure.sample([before]))], figure.statistic)
    assert estimate.se is not None
    se = estimate.se * math.sqrt(2 * (1 - UNCHANGED_CORRELATION))
    # 1.96 + 0.84 and 1.96 + 2.05 standard errors fit into the tolerance then.
    for n, apart in zip(power.needs, (2.802, 4.014), strict=True):
        assert n == pytest.approx(400 * (apart * se / 0.05) ** 2, rel=0.02)
    assert power.false_red == pytest.approx(stats.end_beyond(0.1, se, 399.0))


def test_of_a_share_recovered_the_tolerance_is_that_of_the_baselines_value() -> None:
    """Of an accuracy of 0.8 the share 0.9 is left after a drop of 0.08, and 0.8125 after one of 0.15."""
    before = answers("+" * 96 + "-" * 24)
    as_share = foreseen("accuracy", before, rule="recovery", bound=0.9, never=0.8125)
    as_drop = foreseen("accuracy", before, never=0.15)
    assert as_share.needs == as_drop.needs
    assert as_share.false_red == pytest.approx(as_drop.false_red)


def test_a_gate_that_is_red_by_never_can_fail_over_few_facts() -> None:
    """The loss of all six is not significant at the level of 20 cases, but too much for ``never``."""
    few = answers("++++++")
    assert (
        "not even the loss of all 6 facts" in foreseen("accuracy", few, bound=0.3).never
    )
    assert foreseen("accuracy", few, bound=0.3, never=0.5).never == ""


def test_what_is_not_known_beforehand_is_not_told() -> None:
    assert foreseen("accuracy", rule="recovery", bound=0.9).needs == ()
    assert foreseen("accuracy_f1").needs == ()
    assert foreseen("accuracy", rule="min", bound=0.5).needs == ()
