from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel import stats
from tests.stats.samples import macro, mean, pooled, quotient, sample

RNG = np.random.default_rng


@given(n=st.integers(1, 500), share=st.floats(0, 1))
def test_wilson_agrees_with_scipy(n: int, share: float) -> None:
    successes = round(share * n)
    expected = scipy.stats.binomtest(successes, n).proportion_ci(method="wilson")
    assert stats.wilson(successes, n) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_jackknife_of_a_mean_is_the_t_interval() -> None:
    values = RNG(1).normal(size=40)
    found = stats.jackknife([(1.0, sample(values))], mean)
    expected = scipy.stats.t.interval(0.95, 39, values.mean(), scipy.stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert (found.value, found.se, found.df) == pytest.approx((values.mean(), scipy.stats.sem(values), 39))


def test_the_jackknife_of_a_ratio_agrees_with_leaving_out_one_by_one() -> None:
    rows = RNG(2).uniform(size=(25, 2))
    left = [np.delete(rows, i, 0).sum(axis=0) for i in range(25)]
    replicates = np.array([totals[0] / totals[1] for totals in left])
    se = math.sqrt(24 / 25 * ((replicates - replicates.mean()) ** 2).sum())
    assert stats.jackknife([(1.0, sample(rows))], quotient).se == pytest.approx(se)


def test_the_jackknife_of_a_ratio_agrees_with_a_bootstrap() -> None:
    rng = RNG(3)
    rows = rng.beta([2, 3], [3, 2], size=(200, 2))
    resampled = rows[rng.integers(0, 200, size=(4000, 200))].sum(axis=1)
    drawn = resampled[:, 0] / resampled[:, 1]
    found = stats.jackknife([(1.0, sample(rows))], quotient)
    assert found.se == pytest.approx(drawn.std(), rel=0.05)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


def test_variances_of_cases_add_up() -> None:
    rng = RNG(4)
    members = [rng.normal(size=n) for n in (10, 30, 55)]
    squares = [m.var(ddof=1) / len(m) for m in members]
    found = stats.jackknife([(1.0, sample(*members))], macro)
    assert found.se == pytest.approx(math.sqrt(sum(squares)) / 3)
    welch = sum(squares) ** 2 / sum(v**2 / (len(m) - 1) for v, m in zip(squares, members, strict=True))
    assert found.df == pytest.approx(welch)


def test_a_fact_in_several_cases_is_one_cluster() -> None:
    values = RNG(5).normal(size=30)
    ids = tuple(f"f{i}" for i in range(30))
    once = stats.jackknife([(1.0, sample(values))], mean)
    thrice = stats.jackknife([(1.0, sample(values, values, values, facts=[ids] * 3))], pooled)
    assert (thrice.n, thrice.value) == (30, pytest.approx(once.value))
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_a_case_with_one_fact_does_not_count_as_without_spread() -> None:
    rng = RNG(6)
    lone, many = rng.normal(size=1), rng.normal(size=20)
    found = stats.jackknife([(1.0, sample(lone, many))], pooled)
    together = stats.jackknife([(1.0, sample(np.concatenate([lone, many])))], mean)
    assert found.se == pytest.approx(together.se)
    assert stats.jackknife([(1.0, sample(lone, many))], macro).note == stats.FRAGILE


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.randoms())
def test_order_does_not_matter(values: list[float], random: object) -> None:
    shuffled = values[:]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one, other = (stats.jackknife([(1.0, sample(v))], mean) for v in (values, shuffled))
    assert (one.value, one.n) == (pytest.approx(other.value), other.n)
    if one.note == other.note == "":
        assert (one.low, one.high) == pytest.approx((other.low, other.high))


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (np.empty((0, 1)), stats.UNDEFINED),
        ([0.5], stats.TOO_FEW),
        ([0.3] * 10, stats.FLAT),
        ([0.1 + 0.2, 0.3, 0.3], stats.FLAT),
    ],
)
def test_degenerate_samples_have_no_interval(values: object, note: str) -> None:
    found = stats.jackknife([(1.0, sample(values))], mean)  # type: ignore[arg-type]
    assert (found.low, found.high, found.note) == (None, None, note)


def test_a_figure_that_rests_on_one_fact_has_no_interval() -> None:
    found = stats.jackknife([(1.0, sample([[0.7, 1.0], [0.0, 0.0], [0.0, 0.0]]))], quotient)
    assert (found.value, found.low, found.note) == (0.7, None, stats.FRAGILE)


def test_intervals_stay_within_the_bounds_of_the_figure() -> None:
    found = stats.jackknife([(1.0, sample([0.0] * 9 + [1.0]))], mean, (0.0, 1.0))
    assert found.low == 0.0


def test_coverage_of_a_ratio_is_near_nominal() -> None:
    """As for NCCR's parts: a few hundred simulated slices, seeded."""
    rng = RNG(7)
    hits = 0
    for _ in range(300):
        kept = rng.random(80) < 0.7
        rows = np.stack([kept * rng.beta(2, 5, 80), kept * rng.beta(5, 2, 80)], axis=1)
        found = stats.jackknife([(1.0, sample(rows))], quotient)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= (2 / 7) / (5 / 7) <= found.high
    assert 0.92 <= hits / 300 <= 0.98
