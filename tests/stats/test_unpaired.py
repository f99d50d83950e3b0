from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as scipy_stats

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import FLAT, TOO_FEW
from pytest_kbrel.stats.paired_rates import contrast


def rate(successes: int, n: int) -> stats.Estimate:
    low, high = stats.wilson(successes, n)
    return stats.Estimate(value=successes / n, low=low, high=high, n=n)


def exactly(value: float) -> stats.Estimate:
    return stats.Estimate(value=value, se=0.0, low=value, high=value)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        # Newcombe 1998, Table II, method 10.
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 20), 0.6791, 1.0),
    ],
)
def test_two_rates_have_newcombes_interval(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    result = contrast([(1.0, rate(*first)), (-1.0, rate(*second))], (-1.0, 1.0))
    assert result.value == pytest.approx(first[0] / first[1] - second[0] / second[1])
    assert (result.low, result.high) == (
        pytest.approx(low, abs=5e-5),
        pytest.approx(high, abs=5e-5),
    )


def sampled(values: np.ndarray) -> stats.Estimate:
    sample = stats.sample(
        [[[float(v)] for v in values]], [tuple(map(str, range(len(values))))], [1]
    )
    return stats.jackknife(
        [(1.0, sample)], lambda parts: parts[0][0][..., 0] / parts[0][1]
    )


def test_two_means_have_welchs_test_and_interval() -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(0.2, 1, 12), rng.normal(0.9, 2.5, 30)
    result = stats.unpaired_difference(sampled(a), sampled(b), better="higher")
    welch = scipy_stats.ttest_ind(a, b, equal_var=False, alternative="less")
    assert result.estimate.df == pytest.approx(welch.df)
    assert result.p == pytest.approx(welch.pvalue)
    assert result.estimate.value == pytest.approx(a.mean() - b.mean())


def test_against_an_exact_figure_it_is_the_one_sample_test() -> None:
    values = np.random.default_rng(4).normal(0.2, 1, 15)
    result = stats.unpaired_difference(sampled(values), exactly(0.5), better="higher")
    plain = scipy_stats.ttest_1samp(values, 0.5, alternative="less")
    assert result.p == pytest.approx(plain.pvalue)
    interval = scipy_stats.ttest_1samp(values, 0.5).confidence_interval(0.95)
    assert result.estimate.low == pytest.approx(interval.low - 0.5)
    assert result.estimate.high == pytest.approx(interval.high - 0.5)
    quantiles = scipy_stats.t.ppf(0.95, 14) + scipy_stats.t.ppf(0.8, 14)
    assert stats.detectable(result, 0.0, 0.05) == pytest.approx(
        quantiles * scipy_stats.sem(values)
    )
    better = stats.unpaired_difference(sampled(values), exactly(0.5), better="lower")
    assert better.p == pytest.approx(1 - plain.pvalue)


def test_without_an_interval_there_is_no_verdict() -> None:
    single = stats.Estimate(value=0.4, n=1, note=TOO_FEW)
    result = stats.unpaired_difference(single, exactly(0.5), better="higher")
    assert result.estimate == stats.Estimate(
        value=pytest.approx(-0.1), n=1, note=TOO_FEW
    )  # type: ignore[arg-type]
    assert (result.p, stats.detectable(result, 0.0, 0.05)) == (None, None)
    assert (
        stats.unpaired_difference(single, exactly(0.5), better="higher", bounds=(0, 1))
        == result
    )
    undefined = stats.unpaired_difference(
        stats.Estimate(n=3), exactly(0.5), better="higher"
    )
    assert (undefined.estimate, undefined.p) == (
        stats.Estimate(n=3, note=stats.UNDEFINED),
        None,
    )
    half = stats.Estimate(value=0.5, se=0.1, low=0.3, n=9, note="one end")
    assert contrast([(1.0, half), (-1.0, exactly(0.4))]).high is None
    flat = stats.unpaired_difference(
        sampled(np.full(9, 0.3)), exactly(0.5), better="higher"
    )
    assert (flat.estimate.low, flat.p, flat.estimate.note) == (None, None, FLAT)


def test_an_interval_of_a_difference_ends_where_no_difference_can_be() -> None:
    wide = stats.Estimate(value=0.9, se=0.2, low=0.5, high=1.3, n=9, df=8)
    up = stats.unpaired_difference(
        wide, exactly(0.1), better="higher", bounds=(0, 1)
    ).estimate
    down = stats.unpaired_difference(
        exactly(0.1), wide, better="higher", bounds=(0, 1)
    ).estimate
    assert (up.low, up.high) == (pytest.approx(0.4), 1.0)
    assert (down.low, down.high) == (-1.0, pytest.approx(-0.4))
