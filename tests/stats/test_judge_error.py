"""The error of a judge: Youden's index of labelled answers, and differences divided by it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_kbrel import stats

LABELS = (48, 50, 2, 50)


def test_the_index_is_sensitivity_less_false_positives_with_newcombes_interval() -> None:
    index = stats.judge_index(*LABELS)
    (low, high), (low_wrong, high_wrong) = stats.wilson(48, 50), stats.wilson(2, 50)
    assert index.value == pytest.approx(0.92)
    assert index.low == pytest.approx(0.92 - math.hypot(0.96 - low, high_wrong - 0.04))
    assert index.high == pytest.approx(0.92 + math.hypot(high - 0.96, 0.04 - low_wrong))
    # Rogan and Gladen's variance of J.
    assert index.se == pytest.approx(math.sqrt(2 * 0.96 * 0.04 / 50))


def test_a_judge_without_an_error_among_many_labels_changes_nothing() -> None:
    index = stats.judge_index(10**7, 10**7, 0, 10**7)
    assert stats.corrected(0.03, -0.01, 0.07, index) == pytest.approx((0.03, -0.01, 0.07), abs=1e-6)
    assert stats.judge_floor(10**7, 10**7, 0, 10**7) < 1e-6


@pytest.mark.parametrize("labels", [LABELS, (45, 50, 4, 50), (95, 100, 10, 100), (180, 200, 3, 200)])
@pytest.mark.parametrize(("value", "half"), [(0.03, 0.04), (0.1, 0.05), (-0.02, 0.03), (0.0, 0.03)])
def test_the_corrected_interval_is_about_that_of_the_delta_method(
    labels: tuple[int, int, int, int], value: float, half: float
) -> None:
    index = stats.judge_index(*labels)
    assert index.value is not None
    assert index.se is not None
    z = stats.z_of(0.025)
    se = math.sqrt((half / z) ** 2 / index.value**2 + value**2 * index.se**2 / index.value**4)
    centre, low, high = stats.corrected(value, value - half, value + half, index)
    assert centre == pytest.approx(value / index.value)
    assert low is not None
    assert high is not None
    # Newcombe's interval of J is askew towards smaller J, and so is this away from 0.
    assert high - low == pytest.approx(2 * z * se, rel=0.12)
    assert (high - low) >= 2 * half


def test_each_corrected_end_lies_within_those_of_the_worst_judges() -> None:
    index = stats.judge_index(*LABELS)
    assert index.low is not None
    assert index.high is not None
    rng = np.random.default_rng(0)
    for value, below, above in rng.uniform([-0.3, 0, 0], [0.3, 0.2, 0.2], (500, 3)).tolist():
        low, high = value - below, value + above
        _, new_low, new_high = stats.corrected(value, low, high, index)
        assert new_low is not None
        assert new_high is not None
        assert min(low / index.low, low / index.high) - 1e-12 <= new_low
        assert new_high <= max(high / index.low, high / index.high) + 1e-12
        assert new_low <= value / index.value <= new_high  # type: ignore[operator]


def test_corrected_ends_move_with_the_difference() -> None:
    index = stats.judge_index(30, 40, 8, 40)
    ends = [
        stats.corrected(value, value - 0.05, value + 0.05, index) for value in np.linspace(-0.3, 0.3, 241)
    ]
    for before, after in itertools.pairwise(ends):
        assert all(one < two for one, two in zip(before, after, strict=True))  # type: ignore[operator]
    # An index that may be more than twice its estimate has no such curve, and the worst judge decides.
    unsure = stats.Estimate(value=0.2, low=0.05, high=0.45)
    assert stats.corrected(0.1, 0.09, 0.11, unsure)[1] == pytest.approx(0.09 / 0.45)


def test_an_end_that_is_infinite_stays_so() -> None:
    index = stats.judge_index(*LABELS)
    assert stats.corrected(0.1, None, None, index) == (pytest.approx(0.1 / 0.92), None, None)
    chance = stats.Estimate(value=0.2, low=-0.05, high=0.45)
    assert stats.corrected(0.1, 0.05, 0.15, chance) == (pytest.approx(0.5), None, None)


def test_the_floor_is_the_worse_of_both_errors() -> None:
    assert stats.judge_floor(50, 50, 5, 50) == pytest.approx(stats.wilson(5, 50)[1])
    assert stats.judge_floor(45, 50, 0, 50) == pytest.approx(stats.wilson(5, 50)[1])


@pytest.mark.parametrize(
    ("labels", "se", "fp", "drop"),
    [(50, 0.95, 0.05, 0.08), (50, 0.85, 0.1, 0.0), (50, 0.8, 0.15, 0.15), (200, 0.9, 0.02, 0.05)],
)
def test_the_corrected_interval_covers_the_true_drop(labels: int, se: float, fp: float, drop: float) -> None:
    """Facts are lost and gained in truth, other answers change their text, and the judge errs by text."""
    rng, n, sessions = np.random.default_rng(7), 300, 1500
    gain, reworded = 0.02, 0.2
    misses = [0, 0]
    for _ in range(sessions):
        was = rng.random(n) < 0.6
        draw = rng.random(n)
        now = np.where(was, draw >= (drop + gain) / 0.6, draw < gain / 0.4)
        same = (was == now) & (rng.random(n) >= reworded)
        called = [rng.random(n) < np.where(truth, se, fp) for truth in (was, now)]
        called[1] = np.where(same, called[0], called[1])
        lost, gained = int((called[0] & ~called[1]).sum()), int((called[1] & ~called[0]).sum())
        low, high = stats.tango(n, gained, lost)
        right, wrong = rng.binomial(labels, [se, fp]).tolist()
        index = stats.judge_index(right, labels, wrong, labels)
        _, low_drop, high_drop = stats.corrected((lost - gained) / n, low, high, index)
        assert low_drop is not None
        assert high_drop is not None
        misses[0] += low_drop > drop
        misses[1] += high_drop < drop
    # Three standard errors of a share of 2.5 % above it, and no wider than that asks for.
    assert max(misses) / sessions <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / sessions)
    assert sum(misses) / sessions >= 0.03
