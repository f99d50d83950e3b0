"""Two rates over the same facts, each fact one 0 or 1 before and after: the counts say all there is.

The test is the mid-p McNemar test (Fagerland, Lydersen and Laake 2013), the interval Tango's score interval
(1998) and, for a share of the baseline's rate, the score test of Nam and Blackwelder (2002). The score
interval has a width also where no fact changed, near the "rule of three".
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy.special import bdtrc, ndtri

from pytest_kbrel.stats.estimates import POWER, TOO_FEW, UNDEFINED, Estimate, Flips, Z

# Halving an interval of length 2 this often leaves nothing between two floats.
_HALVINGS = 60


def mcnemar(worse: int, better: int) -> float:
    """Return the one-sided mid-p of ``worse`` against ``better`` flips, given that their sum is fixed.

    That is P(X > worse) + P(X = worse) / 2 with X binomial of ``worse + better`` tries at one half: 0.5 where
    no fact flipped.
    """
    above, at_least = (float(bdtrc(k, worse + better, 0.5)) for k in (worse, worse - 1))
    return (above + at_least) / 2


def tango(n: float, down: float, up: float) -> tuple[float, float]:
    """Return Tango's score interval (1998) of the difference ``(up - down) / n`` of two paired rates."""
    return _tango_low(n, down, up), -_tango_low(n, up, down)


@functools.lru_cache(maxsize=4096)
def _tango_low(n: float, down: float, up: float) -> float:
    if down >= n:
        return -1.0
    low, high = -1.0, (up - down) / n
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        # The probability of a flip down that is likeliest with this difference.
        b = (2 * n - up + down) * middle - down - up
        flip = (math.sqrt(b * b + 8 * n * down * middle * (1 - middle)) - b) / (4 * n)
        variance = n * (2 * flip + middle * (1 - middle))
        above = up - down - n * middle
        if above * above > Z * Z * variance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rate_difference(flips: Flips) -> Estimate:
    """Estimate the rate after minus the rate before, with Tango's interval.

    The standard error is that of the interval's wider side, so that it is none of 0 where no fact flipped.
    """
    if not flips.n:
        return Estimate(note=UNDEFINED)
    value = (flips.up - flips.down) / flips.n
    if flips.n < 2:
        return Estimate(value=value, n=flips.n, note=TOO_FEW)
    low, high = tango(flips.n, flips.down, flips.up)
    se = max(high - value, value - low) / Z
    return Estimate(value=value, se=se, df=math.inf, low=low, high=high, n=flips.n)


def rate_recovery(flips: Flips, share: float) -> Estimate:
    """Estimate how far the rate after stands above ``share`` times the rate before.

    ``low`` is at least 0 when the score test (Nam and Blackwelder 2002) finds that the rate after is at least
    that share; there is no other end.
    """
    if flips.n < 2:
        return Estimate(n=flips.n, note=TOO_FEW)
    after, before = (flips.both + flips.up) / flips.n, (flips.both + flips.down) / flips.n
    up, down = flips.up / flips.n, flips.down / flips.n
    root = math.sqrt((after - share**2 * before) ** 2 + 4 * share**2 * up * down)
    gained = (share**2 * (before + 2 * up) - after + root) / (2 * share * (share + 1))
    lost = share * gained + (1 - share) * (flips.both / flips.n + up + down)
    value = after - share * before
    se = math.sqrt(max(share * (gained + lost), 0.0) / flips.n)
    return Estimate(value=value, se=se, df=math.inf, low=value - Z * se, n=flips.n)


@functools.lru_cache(maxsize=4096)
def rate_mde(n: int, changed: float, alpha: float) -> float | None:
    """Return the drop of a rate that :func:`mcnemar` finds at level ``alpha`` with 80 % power.

    As many facts flip as now (``changed`` of ``n``), or as many as the drop needs, all down. ``None`` when
    not even the loss of all facts would be found.
    """

    def is_detected(drop: float) -> bool:
        share = max(changed / n, drop)
        return _power(n, share, (share + drop) / (2 * share), alpha) >= POWER

    return _least(is_detected, 1.0) if is_detected(1.0) else None


def _power(n: int, share: float, down: float, alpha: float) -> float:
    """Return how often :func:`mcnemar` is below ``alpha`` when facts flip with probability ``share``.

    A flip goes ``down`` with that probability.
    """
    from scipy.stats import binom

    spread = 9 * math.sqrt(n * share * (1 - share)) + 9
    flips = np.arange(max(0, math.floor(n * share - spread)), min(n, math.ceil(n * share + spread)) + 1)
    # The normal approximation is at most a few flips off.
    needed = np.floor(flips / 2 - float(ndtri(alpha)) * np.sqrt(flips) / 2) - 3
    needed = np.clip(needed, 0, flips)
    for _ in range(7):
        above, at_least = bdtrc(np.minimum(needed, flips), flips, 0.5), bdtrc(needed - 1, flips, 0.5)
        needed = needed + ((above + at_least) / 2 >= alpha)
    return float((binom.pmf(flips, n, share) * bdtrc(needed - 1, flips, down)).sum())


def rate_facts_to_clear(flips: Flips, tolerance: float) -> int | None:
    """Return how many facts bring the worst drop of Tango's interval within ``tolerance``.

    As large a share of them flips as now, ``down`` being worse; ``None`` when a million would not do.
    """
    if (flips.down - flips.up) / flips.n >= tolerance:
        return None

    def clear(times: float) -> bool:
        worst = -_tango_low(flips.n * times, flips.down * times, flips.up * times)
        return worst <= tolerance

    most = 1e6 / flips.n
    if not clear(most):
        return None
    return max(math.ceil(flips.n * _least(clear, most)), flips.n + 1)


def _least(holds: Callable[[float], bool], high: float) -> float:
    """Return the least number up to ``high`` from which on ``holds``, within a millionth of it."""
    low = 0.0
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
