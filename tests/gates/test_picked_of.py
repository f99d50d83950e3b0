"""A candidate that was picked as the best of several by the very facts that its gates are about."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pytest

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import measure_figures, pair
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Gate, GateResult, Looks, Table
from tests.gates.tables import HEAD_TO_TAIL, answers, case, decided, gate
from tests.gates.test_positive_control import monitored

FIVE = gate("accuracy", "max_drop", 0.05)


def sides(n: int, lost: int, gained: int) -> tuple[Table, Table]:
    """Return the baseline's and the candidate's answers, of which so many were lost and gained."""
    still = n - lost - gained
    before, after = (
        "+" * lost + "-" * gained + "+" * still,
        "-" * lost + "+" * gained + "+" * still,
    )
    return answers(before), answers(after)


def judged(
    n: int, lost: int, gained: int, picked_of: int, demand: Gate = FIVE, **more: object
) -> GateResult:
    """Judge a slice of n facts of which so many were lost and gained by the best of ``picked_of`` models."""
    before, after = sides(n, lost, gained)
    return decided(
        case(demand), after, before, comparisons=20, picked_of=picked_of, **more
    ).gates[0]


def passes_alone(n: int, lost: int, gained: int, picked_of: int) -> bool:
    """Return True if the gate passes, without measuring other figures or explaining anything."""
    figures = [
        of
        for of in figures_of(metrics_for("head_to_tail", "a", HEAD_TO_TAIL))
        if of.name == "accuracy"
    ]
    before, after = sides(n, lost, gained)
    measured = measure_figures(figures, (after,), (pair(after, before),), alpha=0.05)
    measured = dataclasses.replace(measured, picked_of=picked_of)
    return decide([FIVE], measured, explain=False)[0].verdict == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("models", "told", "passes"), [(8, 8, (0.0, 0.025)), (8, 1, (0.08, 0.2))]
)
def test_the_best_of_several_that_lost_the_tolerance_passes_as_rarely_as_a_single_one(
    models: int, told: int, passes: tuple[float, float]
) -> None:
    """Told nothing of its choice, the gate passes the luckiest of eight that truly lost five points."""
    n, sessions, gain = 400, 1000, 0.01
    rng = np.random.default_rng(15)
    drawn = rng.multinomial(
        n, [0.05 + gain, gain, 0.94 - gain], size=(sessions, models)
    )
    best = (drawn[..., 0] - drawn[..., 1]).argmin(axis=1)
    lost_gained = drawn[np.arange(sessions), best, :2]
    counts, times = np.unique(lost_gained, axis=0, return_counts=True)
    passed = [passes_alone(n, int(lost), int(gained), told) for lost, gained in counts]
    share = times[passed].sum() / sessions
    assert passes[0] <= share <= passes[1]


def test_a_failure_stays_as_it_is() -> None:
    never = dataclasses.replace(FIVE, never=0.15)
    for lost, gained, verdict in ((44, 4, "fail"), (30, 0, "fail"), (5, 0, "pass")):
        alone, picked = (judged(400, lost, gained, models, never) for models in (1, 20))
        assert (alone.verdict, picked.verdict) == (verdict, verdict)
        assert (alone.low, alone.high, alone.p_sidak) == (
            picked.low,
            picked.high,
            picked.p_sidak,
        )
    # The wider interval ends above 0.15, that of 95 % does not.
    edge = [
        judged(120, 11, 1, models, dataclasses.replace(never, bound=0.08))
        for models in (1, 1000)
    ]
    assert [of.verdict for of in edge] == ["inconclusive", "inconclusive"]


def test_a_pass_asks_for_the_interval_at_the_corrected_level() -> None:
    alone, picked = judged(400, 11, 0, 1), judged(400, 11, 0, 20)
    assert (alone.verdict, picked.verdict) == ("pass", "inconclusive")
    z = stats.z_of(1 - (1 - 0.025) ** (1 / 20))
    end = -stats.tango(400, 11, 0, z)[0]
    assert picked.reason.endswith("would decide, were the difference the same")
    assert (
        f"; picked of 20: to pass asks for the interval of 99.75 %, which reaches a drop of {end:.3f}"
        in (picked.reason)
    )
    assert "picked of" not in alone.reason
    assert judged(1000, 11, 0, 20).verdict == "pass"


def test_nothing_lost_among_few_facts_is_what_the_luckiest_of_several_shows() -> None:
    assert judged(20, 0, 0, 1).verdict == "pass"
    assert judged(20, 0, 0, 5).verdict == "inconclusive"
    assert judged(20, 0, 2, 5).verdict == "inconclusive"
    # That no probability moved is no luck.
    table = monitored([0.9, 0.8, 0.95, 0.2, *[0.85] * 20])
    demand = case(gate("monitor", "max_drop", 0.001), probe="monitor", slice="P36")
    assert decided(demand, table, table, picked_of=5).gates[0].verdict == "pass"


def test_a_share_that_was_recovered_asks_for_it_too() -> None:
    demand = gate("accuracy", "recovery", 0.95)
    assert [judged(400, 11, 0, models, demand).verdict for models in (1, 20)] == [
        "pass",
        "inconclusive",
    ]


def test_looks_and_choices_are_corrected_for_together() -> None:
    look = functools.partial(Looks, of=4, asked=300, facts=400)
    widths = []
    for models in (1, 20):
        result = judged(300, 4, 0, models, looks=look(taken=3))
        widths.append(result.verdict)
    assert widths == ["pass", "inconclusive"]
