from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import FRAGILE, TOO_FEW, sign_flip
from pytest_kbrel.stats.paired_rates import mcnemar, rate_recovery
from tests.stats.samples import (
    mean,
    paired_difference,
    pooled,
    quotient,
    sample,
)

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("better", "alternative"), [("higher", "less"), ("lower", "greater")]
)
def test_where_many_facts_changed_it_is_the_paired_t_test(
    better: str, alternative: str
) -> None:
    rng = RNG(1)
    before = rng.random(60)
    after = before + rng.normal(-0.02, 0.2, 60)
    expected = scipy.stats.ttest_rel(after, before, alternative=alternative)
    result = paired_difference(sample(after), sample(before), mean, better=better)  # type: ignore[arg-type]
    assert result.tests[0](0.0) == pytest.approx(expected.pvalue)
    two_sided = scipy.stats.ttest_rel(after, before).confidence_interval(0.95)
    # Two imagined facts widen the interval a little.
    assert (result.estimate.low, result.estimate.high) == pytest.approx(
        (two_sided.low, two_sided.high), abs=0.01
    )


@pytest.mark.parametrize(
    ("better", "alternative"), [("higher", "less"), ("lower", "greater")]
)
def test_where_few_changed_it_is_the_exact_permutation_test(
    better: str, alternative: str
) -> None:
    rng = RNG(2)
    before = rng.random(40)
    after = before.copy()
    after[:9] += rng.normal(-0.1, 0.2, 9)
    result = paired_difference(sample(after), sample(before), mean, better=better)  # type: ignore[arg-type]
    moved = (after - before)[:9]
    theirs = scipy.stats.permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        alternative=alternative,
        n_resamples=np.inf,
    )
    # No two ways of the 512 give the same sum.
    assert result.tests[0](0.0) == pytest.approx(theirs.pvalue - 0.5 / 512)


@given(st.integers(0, 8), st.integers(0, 8))
def test_the_sign_flip_test_of_equal_steps_is_mcnemars(down: int, up: int) -> None:
    steps = np.array([-0.3] * down + [0.3] * up)
    assert sign_flip(steps) == pytest.approx(mcnemar(down, up))


def test_facts_in_several_cases_have_obuchowskis_variance() -> None:
    """Obuchowski 1998, for clusters of three rows each: K / (K - 1) * sum (d_k - n_k * delta)^2 / N^2."""
    rng = RNG(4)
    ids = tuple(f"f{i}" for i in range(60))
    before = rng.integers(0, 2, (3, 60)).astype(float)
    after = np.where(rng.random((3, 60)) < 0.25, 1 - before, before)
    per_fact = (after - before).sum(axis=0)
    delta = per_fact.sum() / 180
    se = math.sqrt(60 / 59 * ((per_fact - 3 * delta) ** 2).sum()) / 180
    result = paired_difference(
        sample(*after, facts=[ids] * 3),
        sample(*before, facts=[ids] * 3),
        pooled,
        better="higher",
        bounds=(0, 1),
        rate=True,
    )
    assert result.estimate.value == pytest.approx(delta)
    assert result.p == pytest.approx(scipy.stats.t.cdf(delta / se, 59))
    assert result.flips is None


def test_one_fact_decides_nothing() -> None:
    result = paired_difference(sample([0.0]), sample([1.0]), mean, better="higher")
    assert (result.estimate.value, result.estimate.low, result.p) == (-1.0, None, None)
    assert result.estimate.note == TOO_FEW


def test_all_facts_moved_alike_is_judged_by_the_sign_test() -> None:
    n = 12
    result = paired_difference(
        sample([0.0] * n), sample([0.5] * n), mean, better="higher", bounds=(0, 1)
    )
    assert result.tests[0](0.0) == pytest.approx(0.5 ** (n + 1), abs=0)
    assert result.estimate.low < -0.5 < result.estimate.high < 0  # type: ignore[operator]
    gained = paired_difference(
        sample([0.5] * n), sample([0.0] * n), mean, better="higher", bounds=(0, 1)
    )
    assert gained.tests[0](0.0) == pytest.approx(1 - 0.5 ** (n + 1), abs=0)


def test_undefined_in_the_baseline_is_no_difference() -> None:
    result = paired_difference(
        sample([[0.5, 1.0]] * 3), sample([[0.0, 0.0]] * 3), quotient, better="lower"
    )
    assert (result.estimate.value, result.p, result.estimate.note) == (
        None,
        None,
        stats.UNDEFINED,
    )


def test_a_difference_that_rests_on_one_fact_has_no_interval() -> None:
    result = paired_difference(
        sample([[0.7, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        sample([[0.9, 1.0], [0.0, 0.0], [0.0, 0.0]]),
        quotient,
        better="higher",
        bounds=(0, 1),
    )
    assert (result.estimate.value, result.p) == (pytest.approx(-0.2), None)
    assert result.estimate.note == FRAGILE


@pytest.mark.parametrize(("better", "share"), [("higher", 0.9), ("lower", 1 / 0.9)])
def test_recovery_of_a_mean_is_a_t_interval_of_the_contrast(
    better: str, share: float
) -> None:
    rng = RNG(6)
    before = rng.random(200)
    after = before + rng.normal(0, 0.1, 200)
    result = paired_difference(
        sample(after), sample(before), mean, 0.9, better=better, bounds=(0, 1)
    ).estimate  # type: ignore[arg-type]
    contrast = after - 0.9 * before if better == "higher" else before - 0.9 * after
    assert result.value == pytest.approx(contrast.mean())
    plain = scipy.stats.t.interval(
        0.95, 199, contrast.mean(), scipy.stats.sem(contrast)
    )
    assert result.low == pytest.approx(plain[0], abs=0.005)
    assert result.low < plain[0]  # type: ignore[operator]


def test_recovery_of_a_rate_is_judged_by_the_counts() -> None:
    before, after = [1.0] * 80 + [0.0] * 20, [1.0] * 78 + [0.0] * 22
    result = paired_difference(
        sample(after),
        sample(before),
        mean,
        0.9,
        better="higher",
        bounds=(0, 1),
        rate=True,
    ).estimate
    counts = stats.Flips(n=100, down=2, up=0, both=78)
    expected = rate_recovery(counts, 0.9)
    assert dataclasses.replace(result, high=None) == expected
    other = rate_recovery(counts.mirrored, 1 / 0.9).low
    assert other is not None
    assert result.high == pytest.approx(-0.9 * other)
    lower = paired_difference(
        sample(before),
        sample(after),
        mean,
        0.9,
        better="lower",
        bounds=(0, 1),
        rate=True,
    ).estimate
    assert lower == result
