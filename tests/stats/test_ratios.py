from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from pytest_kbrel import stats
from pytest_kbrel.stats.estimates import Flips


def fieller(x, y):
    """Fieller (1954), as in textbooks: the ends are the roots of a quadratic."""
    n, t = len(x), scipy_stats.t.ppf(0.975, len(x) - 1)
    a, b = x.mean(), y.mean()
    cov = np.cov(x, y, ddof=1) / n
    g = b * b - t * t * cov[1, 1]
    half = a * b - t * t * cov[0, 1]
    root = math.sqrt(half**2 - g * (a * a - t * t * cov[0, 0]))
    return (half - root) / g, (half + root) / g


def test_with_a_t_interval_it_is_fiellers():
    rng = np.random.default_rng(1)
    y = rng.uniform(0.2, 1.0, 60)
    x = y * rng.uniform(0.5, 1.1, 60)

    def mean(parts):
        (totals, n), *_ = parts
        return totals[..., 0] / n

    samples = [stats.sample([[[v] for v in values]], [tuple(map(str, range(60)))], [1]) for values in (x, y)]

    def above(one, other):
        return lambda share: stats.jackknife([(1.0, one), (-share, other)], mean).low

    ratio = x.mean() / y.mean()
    low, high = fieller(x, y)
    assert stats.ratio_low(above(*samples), ratio) == pytest.approx(low, rel=1e-6)
    assert 1 / stats.ratio_low(above(*samples[::-1]), 1 / ratio) == pytest.approx(high, rel=1e-6)


def test_of_rates_where_facts_were_only_lost_it_is_wilsons():
    # The ratio is then the share kept of the 50 that were right.
    flips = Flips(n=120, down=30, up=0, both=20)

    def above(share):
        return stats.rate_recovery(flips, share).low

    assert stats.ratio_low(above, 0.4) == pytest.approx(stats.wilson(20, 50)[0], abs=1e-6)


def test_an_unchanged_rate_has_the_interval_of_nam_and_blackwelder():
    def above(share):
        return stats.rate_recovery(Flips(n=120, down=0, up=0, both=50), share).low

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
def test_the_ends_that_cannot_be_had(above, ratio, low):
    assert stats.ratio_low(above, ratio) == (low if low is None else pytest.approx(low))
