from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from pytest_kbrel import stats
from tests.stats.samples import macro, mean, pooled, quotient, sample

RNG = np.random.default_rng


def test_it_is_scipys_percentile_bootstrap() -> None:
    rows = RNG(1).beta([2, 3], [3, 2], size=(120, 2))
    theirs = scipy.stats.bootstrap(
        (rows[:, 0], rows[:, 1]),
        lambda above, below, axis: above.sum(axis=axis) / below.sum(axis=axis),
        paired=True,
        method="percentile",
        n_resamples=6000,
        vectorized=True,
        rng=RNG(2),
    ).confidence_interval
    result = stats.bootstrap([(1.0, sample(rows))], quotient, seed=3, draws=6000)
    assert result == pytest.approx((theirs.low, theirs.high), abs=0.003)


def test_the_same_seed_draws_the_same() -> None:
    terms = [(1.0, sample(RNG(4).random(50)))]
    one, again, other = (stats.bootstrap(terms, mean, seed=seed) for seed in (7, 7, 8))
    assert one == again
    assert one != other


def test_a_fact_in_several_cases_is_drawn_as_one() -> None:
    values = RNG(5).random(60)
    ids = tuple(f"f{i}" for i in range(60))
    together = stats.bootstrap([(1.0, sample(values, values, facts=[ids] * 2))], pooled, seed=6)
    assert together == pytest.approx(stats.bootstrap([(1.0, sample(values))], mean, seed=6), abs=0.01)
    apart = stats.bootstrap([(1.0, sample(values, values))], pooled, seed=6)
    assert apart[1] - apart[0] < 0.8 * (together[1] - together[0])


def test_cases_are_drawn_by_themselves() -> None:
    members = [RNG(7).normal(0, 1, 40), RNG(8).normal(5, 1, 10)]
    result = stats.bootstrap([(1.0, sample(*members))], macro, seed=9)
    expected = stats.jackknife([(1.0, sample(*members))], macro)
    assert result == pytest.approx((expected.low, expected.high), abs=0.1)


def test_draws_without_a_denominator_are_left_out() -> None:
    rows = [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    low, high = stats.bootstrap([(1.0, sample(rows))], quotient, seed=1)
    assert (low, high) == (0.0, 1.0)


def test_the_level_is_shared_by_both_ends() -> None:
    values = RNG(10).random(200)
    low, high = stats.bootstrap([(1.0, sample(values))], mean, seed=11, draws=20_000, level=0.5)
    # Half of a normal distribution lies within 0.6745 standard deviations.
    margin = 0.6745 * values.std() / np.sqrt(200)
    assert (low, high) == pytest.approx((values.mean() - margin, values.mean() + margin), abs=0.03 * margin)
