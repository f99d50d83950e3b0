from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from tests.stats.samples import macro, mean, quotient, sample

RNG = np.random.default_rng


@pytest.mark.parametrize(("better", "alternative"), [("higher", "less"), ("lower", "greater")])
def test_a_difference_of_means_is_the_paired_t_test(better: str, alternative: str) -> None:
    rng = RNG(1)
    before = rng.integers(0, 2, 60).astype(float)
    after = np.where(rng.random(60) < 0.2, 1 - before, before)
    expected = scipy.stats.ttest_rel(after, before, alternative=alternative)
    found = stats.paired_difference(sample(after), sample(before), mean, better=better)  # type: ignore[arg-type]
    assert found.p == pytest.approx(expected.pvalue)
    two_sided = scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    assert (found.estimate.low, found.estimate.high) == pytest.approx((two_sided.low, two_sided.high))


def test_the_difference_of_ratios_agrees_with_a_paired_bootstrap() -> None:
    rng = RNG(2)
    before = rng.beta([2, 3], [3, 2], size=(150, 2))
    after = np.clip(before + rng.normal(0.03, 0.1, size=(150, 2)), 0, 1)
    draws = rng.integers(0, 150, size=(4000, 150))
    a, b = after[draws].sum(axis=1), before[draws].sum(axis=1)
    drawn = a[:, 0] / a[:, 1] - b[:, 0] / b[:, 1]
    found = stats.paired_difference(sample(after), sample(before), quotient, better="lower").estimate
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_pairing_over_several_cases() -> None:
    rng = RNG(3)
    before = [rng.normal(size=n) for n in (12, 20)]
    after = [b + rng.normal(0.1, 0.2, size=len(b)) for b in before]
    differences = [a - b for a, b in zip(after, before, strict=True)]
    se = math.sqrt(sum(d.var(ddof=1) / len(d) for d in differences)) / 2
    found = stats.paired_difference(sample(*after), sample(*before), macro, better="higher").estimate
    assert (found.value, found.se) == pytest.approx((np.mean([d.mean() for d in differences]), se))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_equal_runs_do_not_differ(values: list[float]) -> None:
    found = stats.paired_difference(sample(values), sample(values), mean, better="higher")
    estimate = found.estimate
    assert (estimate.value, estimate.low, estimate.high, found.p) == (0, 0, 0, 1)
    assert estimate.note == stats.UNCHANGED


@given(st.integers(0, 10_000))
def test_worse_one_way_is_better_the_other_way(seed: int) -> None:
    rng = RNG(seed)
    before, after = rng.random(15), rng.random(15)
    one = stats.paired_difference(sample(after), sample(before), mean, better="higher")
    other = stats.paired_difference(sample(before), sample(after), mean, better="higher")
    assert one.p is not None
    assert other.p is not None
    assert one.p + other.p == pytest.approx(1)
    assert one.estimate.value == pytest.approx(-other.estimate.value)  # type: ignore[operator]
    assert one.estimate.low == pytest.approx(-other.estimate.high)  # type: ignore[operator]


def test_one_fact_decides_nothing() -> None:
    found = stats.paired_difference(sample([0.0]), sample([1.0]), mean, better="higher")
    assert (found.estimate.value, found.estimate.low, found.p) == (-1.0, None, None)
    assert found.estimate.note == stats.TOO_FEW


def test_all_facts_lost_is_judged_by_the_sign_test() -> None:
    found = stats.paired_difference(
        sample([0.0] * 12), sample([1.0] * 12), mean, better="higher", bounds=(0, 1)
    )
    assert found.p == 0.5**12
    assert (found.estimate.low, found.estimate.high) == (-1.0, 0.0)
    gained = stats.paired_difference(
        sample([1.0] * 12), sample([0.0] * 12), mean, better="higher", bounds=(0, 1)
    )
    assert (gained.p, gained.estimate.low) == (1.0, 0.0)


def test_three_facts_lost_of_three_are_too_few_for_a_direction() -> None:
    found = stats.paired_difference(sample([0.0] * 3), sample([1.0] * 3), mean, better="higher")
    assert (found.p, found.estimate.low, found.estimate.high) == (0.125, None, None)


def test_undefined_in_the_baseline_is_no_difference() -> None:
    found = stats.paired_difference(
        sample([[0.5, 1.0]] * 3), sample([[0.0, 0.0]] * 3), quotient, better="lower"
    )
    assert (found.estimate.value, found.p, found.estimate.note) == (None, None, stats.UNDEFINED)


@pytest.mark.parametrize(("comparisons", "level"), [(0, 0.05), (1, 0.05), (2, 0.0253206), (20, 0.0025614)])
def test_sidak(comparisons: int, level: float) -> None:
    assert stats.sidak(comparisons) == pytest.approx(level, abs=1e-7)
    assert 1 - (1 - stats.sidak(comparisons)) ** max(comparisons, 1) == pytest.approx(0.05)


def test_the_detectable_drop_is_detected_with_80_percent_power() -> None:
    rng = RNG(4)
    n, sd, alpha = 60, 0.5, 0.01
    found = 0
    for _ in range(400):
        noise = rng.normal(0, sd, n)
        difference = stats.paired_difference(
            sample(noise), sample(np.zeros(n)), mean, better="higher", alpha=alpha
        )
        mde = difference.mde
        assert mde is not None
        shifted = stats.paired_difference(
            sample(noise - mde), sample(np.zeros(n)), mean, better="higher", alpha=alpha
        )
        assert shifted.p is not None
        found += shifted.p < alpha
    assert 0.74 <= found / 400 <= 0.86


def test_facts_needed_would_indeed_decide() -> None:
    needed = stats.facts_needed(0.02, 0.03, 100, 0.025)
    assert needed == math.ceil(100 * (1.959964 * 0.03 / 0.02) ** 2)
    assert stats.facts_needed(0.0, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1e-9, 0.03, 100, 0.025) is None
    assert stats.facts_needed(1.0, 0.03, 100, 0.025) == 101
