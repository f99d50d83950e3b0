"""Paired differences worked out by hand: ends of intervals, imagined facts, degrees of freedom."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import sign_flip
from tests.stats.samples import mean, paired_difference, pooled, quotient, sample

RNG = np.random.default_rng
Z = 1.959964


def t(df: float, level: float = 0.975) -> float:
    return float(scipy.stats.t.ppf(level, df))


def test_how_far_unchanged_figures_may_have_moved_depends_on_their_reach() -> None:
    """Two imagined facts, and none that changed: t * z * reach / (n + 2), with as few facts as count."""
    values = [0.3, 0.7] * 15
    for bounds, facts, margin in (
        ((0, 1), None, Z / 32),
        ((-1, 1), None, 2 * Z / 32),
        ((2, 5), None, 3 * Z / 32),
        ((-1, 1), 10, 3 * 2 * Z / 32),
    ):
        result = paired_difference(
            sample(values),
            sample(values),
            mean,
            better="higher",
            bounds=bounds,
            facts=facts,
        )
        assert (result.estimate.low, result.estimate.high) == pytest.approx(
            (-t(29) * margin, t(29) * margin)
        )
        assert (result.estimate.se, result.estimate.df) == (pytest.approx(margin), 29)
        none = [0.0] * 30
        recovered = paired_difference(
            sample(none),
            sample(none),
            mean,
            0.9,
            better="higher",
            bounds=bounds,
            facts=facts,
        ).estimate
        assert (recovered.value, recovered.low) == (0.0, pytest.approx(-t(29) * margin))


def test_an_interval_of_a_difference_ends_where_no_difference_can_be() -> None:
    result = paired_difference(
        sample([0.0, 0.1, 0.0]),
        sample([1.0, 1.0, 0.9]),
        mean,
        better="higher",
        bounds=(0, 1),
    ).estimate
    assert result.low == -1.0
    gained = paired_difference(
        sample([1.0, 1.0, 0.9]),
        sample([0.0, 0.1, 0.0]),
        mean,
        better="higher",
        bounds=(0, 1),
    ).estimate
    assert gained.high == 1.0


@pytest.mark.parametrize("moved", [16, 17])
def test_the_detectable_drop_is_by_imagined_facts_where_few_changed_and_by_the_t_test_where_many_did(
    moved: int,
) -> None:
    steps = np.linspace(-0.47, 0.31, moved)
    before, after = np.full(60, 0.5), np.full(60, 0.5)
    after[:moved] += steps
    result = paired_difference(
        sample(after), sample(before), mean, better="higher", bounds=(0, 1)
    )
    error = result.estimate.se if moved == 16 else scipy.stats.sem(after - before)
    assert stats.detectable(result, 0.0, 0.01) == pytest.approx(
        (t(59, 0.99) + t(59, 0.8)) * error
    )
    paired = scipy.stats.ttest_rel(after, before, alternative="less").pvalue
    assert result.tests[0](0.0) == pytest.approx(
        sign_flip(steps) if moved == 16 else paired
    )
    # The imagined facts widen the interval.
    assert result.estimate.se > scipy.stats.sem(after - before) * 60 / 62  # type: ignore[operator]


def test_differences_by_rounding_are_none() -> None:
    small = sample([1e-14, 2e-14, 3e-14]), sample([2e-14, 2e-14, 2e-14])
    large = sample([1e9 + 1e-5, 1e9, 1e9]), sample([1e9, 1e9, 1e9])
    for after, before in (small, large):
        result = paired_difference(after, before, mean, better="higher")
        assert (
            result.estimate.value,
            result.p,
            stats.detectable(result, 0.0, 0.05),
        ) == (0.0, 0.5, None)
        assert (result.estimate.se, result.estimate.low, result.estimate.high) == (
            None,
            None,
            None,
        )
        assert result.estimate.note == stats.UNCHANGED


def test_a_figure_that_rests_on_one_fact_may_still_be_unchanged() -> None:
    rests = sample([[0.7, 1.0], [0.0, 0.0], [0.0, 0.0]])
    result = paired_difference(
        rests, rests, quotient, better="higher", bounds=(0, 1), facts=1
    )
    assert (result.estimate.value, result.p, result.estimate.note) == (
        0.0,
        0.5,
        stats.UNCHANGED,
    )
    assert (result.estimate.low, result.estimate.high) == (-1.0, 1.0)


def test_counts_decide_only_of_what_is_zero_or_one_in_both_runs() -> None:
    hard, soft = sample([1.0, 0.0, 1.0, 1.0]), sample([1.0, 0.5, 0.0, 1.0])
    for after, before in ((soft, hard), (hard, soft)):
        result = paired_difference(
            after, before, mean, better="higher", bounds=(0, 1), rate=True
        )
        assert result.flips is None
    # Whoever does not say that a figure is a rate has it judged as any other.
    plain = paired_difference(
        hard, sample([1.0, 1.0, 0.0, 1.0]), mean, better="higher", bounds=(0, 1)
    )
    assert plain.flips is None
    assert (
        paired_difference(
            hard, hard, mean, 0.9, better="higher", bounds=(0, 1)
        ).estimate.df
        == 3
    )


def test_few_facts_that_changed_much_widen_the_interval_of_a_recovery() -> None:
    """Of ten facts one fell by 0.5, from a figure that was 0.6 in all: by hand."""
    before, after = [0.6] * 10, [0.1] + [0.6] * 9
    result = paired_difference(
        sample(after), sample(before), mean, 0.5, better="higher", bounds=(0, 1)
    ).estimate
    value = 0.55 - 0.3
    spread = (
        0.05**2 * 0.9
        + 2 * max(0.05**2, (Z / 10) ** 2 / 2)
        + 2 * 10 / 12 * (value / 10) ** 2
    )
    se = 10 / 12 * math.sqrt(spread)
    assert (result.value, result.se) == pytest.approx((value, se))
    assert result.low == pytest.approx(10 / 12 * value - t(9) * se)


def test_the_degrees_of_freedom_are_those_of_the_facts_and_of_the_imagined_ones_together() -> (
    None
):
    """One fact of a case of three fell by 0.6, and nine of another case stayed: by hand."""
    result = paired_difference(
        sample([-0.6, 0.0, 0.0], [0.0] * 9),
        sample([0.0] * 3, [0.0] * 9),
        pooled,
        better="higher",
    ).estimate
    # Three facts of variance 0.12, by two degrees of freedom; two imagined ones that each move 0.6 / 12.
    seen = 3 * 0.12 / 12**2 * 11 / 12
    imagined = 2 * 0.05**2 + 2 * 12 / 14 * (0.05 / 12) ** 2
    share = seen / (seen + imagined)
    assert result.se == pytest.approx(12 / 14 * math.sqrt(seen + imagined))
    assert result.df == pytest.approx(1 / (share**2 / 2 + (1 - share) ** 2 / 11))
    assert 2 < result.df < 11
