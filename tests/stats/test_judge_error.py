"""The error of a judge: Youden's index of labelled answers, and differences divided by it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pytest_kbrel import stats

LABELS = (48, 50, 2, 50)


def test_the_index_is_sensitivity_less_false_positives_with_newcombes_interval() -> (
    None
):
    index = stats.judge_index(*LABELS)
    (low, high), (low_wrong, high_wrong) = stats.wilson(48, 50), stats.wilson(2, 50)
    assert index.value == pytest.approx(0.92)
    assert index.low == pytest.approx(0.92 - math.hypot(0.96 - low, high_wrong - 0.04))
    assert index.high == pytest.approx(0.92 + math.hypot(high - 0.96, 0.04 - low_wrong))
    # Rogan and Gladen's variance of J.
    assert index.se == pytest.approx(math.sqrt(2 * 0.96 * 0.04 / 50))


def test_a_judge_without_an_error_among_many_labels_changes_nothing() -> None:
    index = stats.judge_index(10**7, 10**7, 0, 10**7)
    assert stats.corrected(0.03, -0.01, 0.07, index) == pytest.approx(
        (0.03, -0.01, 0.07), abs=1e-6
    )
    assert stats.judge_floor(10**7, 10**7, 0, 10**7) < 1e-6


@pytest.mark.parametrize(
    "labels", [LABELS, (45, 50, 4, 50), (95, 100, 10, 100), (180, 200, 3, 200)]
)
@pytest.mark.parametrize(
    ("value", "half"), [(0.03, 0.04), (0.1, 0.05), (-0.02, 0.03), (0.0, 0.03)]
)
def test_the_corrected_interval_is_about_that_of_the_delta_method(
    labels: tuple[int, int, int, int], value: float, half: float
) -> None:
    index = stats.judge_index(*labels)
    assert index.value is not None
    assert index.se is not None
    z = stats.z_of(0.025)
    se = math.sqrt(
        (half / z) ** 2 / index.value**2 + value**2 * index.se**2 / index.value**4
    )
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
    for value, below, above in rng.uniform(
        [-0.3, 0, 0], [0.3, 0.2, 0.2], (500, 3)
    ).tolist():
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
        stats.corrected(value, value - 0.05, value + 0.05, index)
        for value in np.linspace(-0.3, 0.3, 241)
    ]
    for before, after in itertools.pairwise(ends):
        assert all(one < two for one, two in zip(before, after, strict=True))  # type: ignore[operator]
    # An index that may be more than twice its estimate has no such curve, and the worst judge decides.
    unsure = stats.Estimate(value=0.2, low=0.05, high=0.45)
    assert stats.corrected(0.1, 0.09, 0.11, unsure)[1] == pytest.approx(0.09 / 0.45)


def test_an_end_that_is_infinite_stays_so() -> None:
    index = stats.judge_index(*LABELS)
    assert stats.corrected(0.1, None, None, index) == (
        pytest.approx(0.1 / 0.92),
        None,
        None,
    )
    chance = stats.Estimate(value=0.2, low=-0.05, high=0.45)
    assert stats.corrected(0.1, 0.05, 0.15, chance) == (pytest.approx(0.5), None, None)


def test_the_floor_is_the_worse_of_both_errors() -> None:
    assert stats.judge_floor(50, 50, 5, 50) == pytest.approx(stats.wilson(5, 50)[1])
    assert stats.judge_floor(45, 50, 0, 50) == pytest.approx(stats.wilson(5, 50)[1])


def judged_session(
    rng: np.random.Generator, n: int, se: float, fp: float, drop: float
) -> tuple[int, int]:
    """Return how many of n facts were lost and gained in the eyes of a judge with these errors.

    Facts are lost and gained in truth, a fifth of the others change their text, and the judge errs by text.
    """
    gain, reworded, knows = 0.02, 0.2, 0.6
    was, draw = rng.random(n) < knows, rng.random(n)
    now = np.where(was, draw >= (drop + gain) / knows, draw < gain / (1 - knows))
    same = (was == now) & (rng.random(n) >= reworded)
    before, after = (rng.random(n) < np.where(truth, se, fp) for truth in (was, now))
    after = np.where(same, before, after)
    return int((before & ~after).sum()), int((after & ~before).sum())


def misses(
    labels: int, se: float, fp: float, n: int, drop: float, sessions: int
) -> tuple[float, float]:
    """Return how often the lower and the upper end of the corrected interval miss the true drop."""
    rng, missed, measured = np.random.default_rng(7), [0, 0], 0
    for _ in range(sessions):
        right, wrong = rng.binomial(labels, [se, fp]).tolist()
        index = stats.judge_index(right, labels, wrong, labels)
        lost, gained = judged_session(rng, n, se, fp, drop)
        assert index.low is not None
        if index.low <= 0:
            # Such a judge is refused.
            continue
        measured += 1
        _, low, high = stats.corrected(
            (lost - gained) / n, *stats.tango(n, gained, lost), index
        )
        assert low is not None
        assert high is not None
        missed[0] += low > drop
        missed[1] += high < drop
    return missed[0] / measured, missed[1] / measured


@pytest.mark.parametrize(
    ("labels", "se", "fp", "drop"),
    [
        (50, 0.95, 0.05, 0.08),
        (50, 0.85, 0.1, 0.0),
        (50, 0.8, 0.15, 0.15),
        (200, 0.9, 0.02, 0.05),
    ],
)
def test_the_corrected_interval_covers_the_true_drop(
    labels: int, se: float, fp: float, drop: float
) -> None:
    sessions = 1500
    missed = misses(labels, se, fp, 300, drop, sessions)
    # Three standard errors of a share of 2.5 % above it, and no wider than that asks for.
    assert max(missed) <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / sessions)
    assert sum(missed) >= 0.03


@pytest.mark.slow
@pytest.mark.parametrize("labels", [20, 50, 200])
@pytest.mark.parametrize(("se", "fp"), [(0.95, 0.05), (0.85, 0.1), (0.8, 0.2)])
@pytest.mark.parametrize(("n", "drop"), [(120, 0.0), (300, 0.05), (1000, 0.1)])
def test_coverage_is_as_the_docs_say(
    labels: int, se: float, fp: float, n: int, drop: float
) -> None:
    missed = misses(labels, se, fp, n, drop, 4000)
    assert 0.94 <= 1 - sum(missed) <= 0.965
    # Three standard errors above the 2.6 % of the docs are not needed: the seed is fixed.
    assert missed[1] <= 0.029
    assert missed[0] <= 0.045


def test_an_allowed_drop_is_rarely_rejected_whatever_the_labels_happen_to_be() -> None:
    rng, sessions, beyond, rejected = np.random.default_rng(1), 1000, 0.05, 0
    for _ in range(sessions):
        right, wrong = rng.binomial(20, [0.85, 0.1]).tolist()
        index = stats.judge_index(right, 20, wrong, 20)
        assert index.high is not None
        lost, gained = judged_session(rng, 200, 0.85, 0.1, beyond)
        rejected += stats.drop_p(200, lost, gained, beyond * index.high) <= 0.025
    assert rejected / sessions <= 0.025
