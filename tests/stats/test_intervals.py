from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import FLAT, FRAGILE, TOO_FEW, Flips
from pytest_kbrel.stats.intervals import bootstrap_rows
from pytest_kbrel.stats.paired_rates import rate_recovery
from tests.stats.samples import macro, mean, pooled, quotient, sample

RNG = np.random.default_rng


@given(n=st.integers(1, 500), share=st.floats(0, 1))
def test_wilson_agrees_with_scipy(n: int, share: float) -> None:
    successes = round(share * n)
    expected = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert stats.wilson(successes, n) == pytest.approx(
        (expected.low, expected.high), abs=1e-12
    )


def test_the_jackknife_of_a_mean_is_the_t_interval() -> None:
    values = RNG(1).normal(size=40)
    result = stats.jackknife([(1.0, sample(values))], mean)
    expected = scipy.stats.t.interval(0.95, 39, values.mean(), scipy.stats.sem(values))
    assert (result.low, result.high) == pytest.approx(expected)
    assert (result.value, result.se, result.df) == pytest.approx(
        (values.mean(), scipy.stats.sem(values), 39)
    )


def test_variances_of_cases_add_up() -> None:
    rng = RNG(4)
    members = [rng.normal(size=n) for n in (10, 30, 55)]
    squares = [m.var(ddof=1) / len(m) for m in members]
    result = stats.jackknife([(1.0, sample(*members))], macro)
    assert result.se == pytest.approx(math.sqrt(sum(squares)) / 3)
    welch = sum(squares) ** 2 / sum(
        v**2 / (len(m) - 1) for v, m in zip(squares, members, strict=True)
    )
    assert result.df == pytest.approx(welch)


def test_the_variance_of_pooled_facts_is_that_of_a_stratified_sample() -> None:
    """Cochran 1977, 5.4: cases of n_h facts, N in all, have the variance sum n_h * s_h^2 / N^2."""
    rng = RNG(14)
    members = [rng.normal(size=n) for n in (2, 3, 2, 12)]
    result = stats.jackknife([(1.0, sample(*members))], pooled)
    assert result.se == pytest.approx(
        math.sqrt(sum(len(m) * m.var(ddof=1) for m in members)) / 19
    )


def test_a_fact_in_several_cases_is_one_cluster() -> None:
    values = RNG(5).normal(size=30)
    ids = tuple(f"f{i}" for i in range(30))
    once = stats.jackknife([(1.0, sample(values))], mean)
    thrice = stats.jackknife(
        [(1.0, sample(values, values, values, facts=[ids] * 3))], pooled
    )
    assert (thrice.n, thrice.value) == (30, pytest.approx(once.value))
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_a_case_with_one_fact_does_not_count_as_without_spread() -> None:
    rng = RNG(6)
    lone, many = rng.normal(size=1), rng.normal(size=20)
    result = stats.jackknife([(1.0, sample(lone, many))], pooled)
    together = stats.jackknife([(1.0, sample(np.concatenate([lone, many])))], mean)
    assert result.se == pytest.approx(together.se)
    assert stats.jackknife([(1.0, sample(lone, many))], macro).note == FRAGILE


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (np.empty((0, 1)), stats.UNDEFINED),
        ([0.5], TOO_FEW),
        ([0.3] * 10, FLAT),
        ([0.1 + 0.2, 0.3, 0.3], FLAT),
    ],
)
def test_degenerate_samples_have_no_interval(values: object, note: str) -> None:
    result = stats.jackknife([(1.0, sample(values))], mean)  # type: ignore[arg-type]
    assert (result.low, result.high, result.note) == (None, None, note)


def test_a_figure_that_rests_on_one_fact_has_no_interval() -> None:
    result = stats.jackknife(
        [(1.0, sample([[0.7, 1.0], [0.0, 0.0], [0.0, 0.0]]))], quotient
    )
    assert (result.value, result.low, result.note) == (0.7, None, FRAGILE)


def test_a_rate_has_wilsons_interval_as_statsmodels_has_it() -> None:
    for hits, n in ((0, 9), (4, 40), (200, 200)):
        values = [1.0] * hits + [0.0] * (n - hits)
        result = stats.estimate(sample(values), mean, bounds=(0, 1), rate=True)
        assert (result.low, result.high) == pytest.approx(
            proportion_confint(hits, n, method="wilson")
        )
        assert (result.value, result.n, result.note) == (hits / n, n, "")


def test_a_rate_over_some_facts_counts_only_these() -> None:
    rows = [[1.0, 1.0]] * 3 + [[0.0, 1.0]] * 5 + [[0.0, 0.0]] * 90
    result = stats.estimate(sample(rows), quotient, bounds=(0, 1), rate=True)
    assert (result.low, result.high, result.n) == (*stats.wilson(3, 8), 8)


def test_a_rate_over_cases_that_share_facts_counts_facts() -> None:
    values = [1.0] * 30 + [0.0] * 20
    ids = tuple(f"f{i}" for i in range(50))
    thrice = stats.estimate(
        sample(values, values, values, facts=[ids] * 3),
        pooled,
        bounds=(0, 1),
        rate=True,
    )
    assert thrice.n == 50
    assert (thrice.low, thrice.high) == pytest.approx(stats.wilson(30, 50), abs=0.01)
    apart = stats.estimate(
        sample(values, values, values), pooled, bounds=(0, 1), rate=True
    )
    assert (apart.low, apart.high, apart.n) == (*stats.wilson(90, 150), 150)


def test_a_figure_without_spread_is_no_certainty() -> None:
    """As many trials as facts that count: a rule of three, with t for z."""
    result = stats.estimate(sample([1.0] * 30), mean, bounds=(0, 1))
    assert (result.se, result.note, result.high) == (0.0, FLAT, 1.0)
    t = scipy.stats.t.ppf(0.975, 29)
    assert result.low == pytest.approx(30 / (30 + t * t))
    few = stats.estimate(sample([1.0] * 30), mean, bounds=(0, 1), facts=4)
    assert few.low == pytest.approx(4 / (4 + t * t))
    signed = stats.estimate(sample([1.0] * 30), mean, bounds=(-1, 1))
    assert signed.low == pytest.approx(2 * result.low - 1)  # type: ignore[operator]
    assert stats.estimate(sample([1.0] * 30), mean).low is None


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_interval_holds_the_value_and_stays_within_the_bounds(
    values: list[float],
) -> None:
    result = stats.estimate(sample(values), mean, bounds=(0, 1))
    assert 0 <= result.low <= result.value + 1e-9  # type: ignore[operator]
    assert result.value - 1e-9 <= result.high <= 1  # type: ignore[operator]


def test_the_ends_of_a_rate_of_nothing_and_of_everything_are_exact() -> None:
    for n in range(1, 100):
        assert (stats.wilson(0, n)[0], stats.wilson(n, n)[1]) == (0.0, 1.0), n


def test_a_rate_of_one_fact_has_a_value_and_one_of_two_an_interval() -> None:
    def of(*values: float) -> stats.Estimate:
        return stats.estimate(sample(np.array(values)), mean, bounds=(0, 1), rate=True)

    assert of() == stats.Estimate(note=stats.UNDEFINED)
    assert of(1.0) == stats.Estimate(value=1.0, n=1, note=TOO_FEW)
    assert of(0.0) == stats.Estimate(value=0.0, n=1, note=TOO_FEW)
    low, high = stats.wilson(1, 2)
    assert of(1.0, 0.0) == stats.Estimate(value=0.5, low=low, high=high, n=2)


def test_the_interval_of_two_facts_ends_where_the_score_test_does() -> None:
    """A variance of 0.16 is that of 0.25 / 0.16 trials of a rate of one half; t has one degree of freedom."""
    result = stats.estimate(sample([0.1, 0.9]), mean, bounds=(0, 1))
    t = scipy.stats.t.ppf(0.975, 1)
    for end in (result.low, result.high):
        assert (end - 0.5) ** 2 == pytest.approx(t**2 * end * (1 - end) / (0.25 / 0.16))  # type: ignore[operator]


def test_a_figure_with_one_bound_is_cut_there() -> None:
    result = stats.estimate(sample([0.0] * 9 + [1.0]), mean, bounds=(0.0, math.inf))
    assert result.low == 0.0
    assert result.high == pytest.approx(0.1 + scipy.stats.t.ppf(0.975, 9) * 0.1)


def fieller(x, y):
    """Fieller (1954), as in textbooks: the ends are the roots of a quadratic."""
    n, t = len(x), scipy.stats.t.ppf(0.975, len(x) - 1)
    a, b = x.mean(), y.mean()
    cov = np.cov(x, y, ddof=1) / n
    g = b * b - t * t * cov[1, 1]
    half = a * b - t * t * cov[0, 1]
    root = math.sqrt(half**2 - g * (a * a - t * t * cov[0, 0]))
    return (half - root) / g, (half + root) / g


def test_the_low_end_of_a_ratio_by_a_t_interval_is_fiellers():
    rng = np.random.default_rng(1)
    y = rng.uniform(0.2, 1.0, 60)
    x = y * rng.uniform(0.5, 1.1, 60)

    samples = [
        stats.sample([[[v] for v in values]], [tuple(map(str, range(60)))], [1])
        for values in (x, y)
    ]

    def above(one, other):
        return lambda share: stats.jackknife([(1.0, one), (-share, other)], mean).low

    ratio = x.mean() / y.mean()
    low, high = fieller(x, y)
    assert stats.ratio_low(above(*samples), ratio) == pytest.approx(low, rel=1e-6)
    assert 1 / stats.ratio_low(above(*samples[::-1]), 1 / ratio) == pytest.approx(
        high, rel=1e-6
    )


def test_the_ratio_of_an_unchanged_rate_has_the_interval_of_nam_and_blackwelder():
    def above(share):
        return rate_recovery(Flips(n=120, down=0, up=0, both=50), share).low

    # Nothing flipped: of the 50 that were right, 50 still are.
    low = stats.ratio_low(above, 1.0)
    assert low == pytest.approx(stats.wilson(50, 50)[0], abs=1e-6)
    assert above(low - 1e-4) > 0 > above(low + 1e-4)


@pytest.mark.parametrize(
    ("above", "ratio", "low"),
    [
        (lambda share: None, 0.5, None),
        (lambda share: 1 - share, 0.5, None),
        # No spread at all: the test says the same on both sides of the ratio.
        (lambda share: 0.5 - share, 0.5, None),
        (lambda share: max(0.4 - share, 0.0), 0.5, None),
        (lambda share: -share, 0.5, 0.0),
        (lambda share: 0.3 - share, 0.5, 0.3),
        (lambda share: 0.3 - share, 0.0, None),
    ],
)
def test_a_ratio_may_have_no_low_end(above, ratio, low):
    assert stats.ratio_low(above, ratio) == (low if low is None else pytest.approx(low))


def test_the_bootstrap_of_a_share_has_its_normal_interval() -> None:
    """Draws without the first fact are undefined, and left out."""
    right = np.arange(200) % 2

    def share(counts: np.ndarray) -> np.ndarray:
        assert (counts.sum(axis=1) == 200).all()
        return np.where(counts[:, 0] > 0, counts @ right / 200, np.nan)

    half = 1.96 * (0.25 / 200) ** 0.5
    ends = bootstrap_rows(share, 200)
    assert ends == pytest.approx((0.5 - half, 0.5 + half), abs=0.01)
    assert bootstrap_rows(share, 200) == ends


def test_the_low_end_of_a_ratio_of_rates_is_wilsons_where_facts_were_only_lost():
    # The ratio is then the share kept of the 50 that were right.
    flips = Flips(n=120, down=30, up=0, both=20)
    low = stats.ratio_low(lambda share: rate_recovery(flips, share).low, 0.4)
    assert low == pytest.approx(stats.wilson(20, 50)[0], abs=1e-6)
