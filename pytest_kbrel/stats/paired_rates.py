"""Two rates over the same facts, each fact one 0 or 1 before and after: the counts say all there is.

The test of "no drop" is the mid-p McNemar test (Fagerland, Lydersen and Laake 2013), that of "no drop beyond
what is allowed" the mid-p of the trinomial at the restricted estimate, with a guard for small counts. The
interval is Tango's score interval (1998) and, for a share of the baseline's rate, the score test of Nam and
Blackwelder (2002). The score interval has a width also where no fact changed, near the "rule of three".

Differences of independent estimates, such as a paper's figure from a measured one, stand beside them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, betaln, ndtri, xlog1py, xlogy

from pytest_kbrel.stats.estimates import (
    LEVEL,
    POWER,
    TOO_FEW,
    UNDEFINED,
    Array,
    Better,
    Difference,
    Estimate,
    Flips,
    TTest,
    Z,
)

# Halving an interval of length 2 this often leaves nothing between two floats.
_HALVINGS = 60


def mcnemar(worse: int, better: int) -> float:
    """Return the one-sided mid-p of ``worse`` against ``better`` flips, given that their sum is fixed.

    That is P(X > worse) + P(X = worse) / 2 with X binomial of ``worse + better`` tries at one half: 0.5 where
    no fact flipped.
    """
    above, at_least = (float(bdtrc(k, worse + better, 0.5)) for k in (worse, worse - 1))
    return (above + at_least) / 2


@functools.lru_cache(maxsize=4096)
def drop_p(n: int, lost: int, gained: int, allowed: float) -> float:
    """Return the one-sided p of "the rate dropped by at most ``allowed``" (0 to below 1).

    ``lost`` and ``gained`` of ``n`` facts flipped. It is :func:`trinomial_mid_p`, and below 0.5 at least the
    full tail, P(X - Y >= lost - gained), with (``gained`` + 1/2) / n as the chance of a gain. Where hardly
    any fact is gained, X - Y has few values, and by the mid-p alone one of 20 slices at the limit would fail
    in up to 6.9 % of sessions instead of 5 %.
    """
    mid = trinomial_mid_p(n, lost, gained, allowed)
    if allowed <= 0 or mid >= 0.5:
        return mid
    return max(mid, min(_tails(n, lost - gained, allowed, (gained + 0.5) / n)[1], 0.5))


def trinomial_mid_p(n: int, lost: int, gained: int, allowed: float) -> float:
    """Return the one-sided mid-p (Lancaster 1961) of "the rate dropped by at most ``allowed``".

    With no drop allowed it is :func:`mcnemar`'s. Otherwise it is P(X - Y > lost - gained) + P(X - Y = lost -
    gained) / 2, with X lost and Y gained of a trinomial whose chance of a gain is the likeliest with a drop
    of ``allowed`` (an estimated p-value: Lloyd 2008). The score statistic with a normal tail would reject too
    often where hardly any fact is gained, for its tail is then that of a Poisson variable.
    """
    if allowed <= 0:
        return mcnemar(lost, gained)
    gain = _likeliest_gain(n, lost, gained, allowed)
    return sum(_tails(n, lost - gained, allowed, gain)) / 2


def _tails(n: int, surplus: int, drop: float, gain: float) -> tuple[float, float]:
    """Return the chances that more than ``surplus``, and that at least so many, are lost than gained."""
    loss = min(drop + gain, 1.0)
    losses = np.arange(n + 1)
    share = min(gain / (1 - loss), 1.0) if loss < 1 else 0.0
    weights = binomial_pmf(losses, n, loss)
    above, at_least = (
        float(
            (weights * binomial_cdf(losses - surplus - step, n - losses, share)).sum()
        )
        for step in (1, 0)
    )
    return above, at_least


def binomial_pmf(k: npt.NDArray[np.intp], n: int, share: float) -> Array:
    """Return the chances of ``k`` (0 to ``n``) successes of ``n``."""
    with np.errstate(divide="ignore"):
        log_weight = xlogy(k, share) + xlog1py(n - k, -share) - betaln(k + 1, n - k + 1)
    weight: Array = np.exp(log_weight) / (n + 1)
    return weight


def binomial_cdf(k: npt.NDArray[Any], n: npt.NDArray[np.intp], share: float) -> Array:
    """Return the chances of at most ``k`` successes of ``n``; ``k`` may be negative, or more than ``n``."""
    return np.where(k < 0, 0.0, bdtr(np.clip(k, 0, n), n, share).astype(float))


def _likeliest_gain(n: float, lost: float, gained: float, drop: float) -> float:
    """Return the likeliest probability of a gain, were the rate to drop by ``drop`` (Tango 1998)."""
    b = (2 * n - lost + gained) * drop - lost - gained
    return (math.sqrt(max(b * b + 8 * n * gained * drop * (1 - drop), 0.0)) - b) / (
        4 * n
    )


def tango(n: float, down: float, up: float, z: float = Z) -> tuple[float, float]:
    """Return Tango's score interval (1998) of the difference ``(up - down) / n`` of two paired rates.

    ``z`` is the normal quantile of its ends.
    """
    return _tango_low(n, down, up, z), -_tango_low(n, up, down, z)


@functools.lru_cache(maxsize=4096)
def _tango_low(n: float, down: float, up: float, z: float = Z) -> float:
    low, high = -1.0, (up - down) / n
    # By halves: where no fact flipped, the statistic is 0 at the upper end as well.
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        flip = _likeliest_gain(n, up, down, middle)
        variance = n * (2 * flip + middle * (1 - middle))
        above = up - down - n * middle
        if above * above > z * z * variance:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def rate_difference(flips: Flips, level: float = LEVEL) -> Estimate:
    """Estimate the rate after minus the rate before, with Tango's interval of this level.

    The standard error is that of the interval's wider side, so that it is none of 0 where no fact flipped.
    """
    if not flips.n:
        return Estimate(note=UNDEFINED)
    value = (flips.up - flips.down) / flips.n
    if flips.n < 2:
        return Estimate(value=value, n=flips.n, note=TOO_FEW)
    z = float(ndtri((1 + level) / 2))
    low, high = tango(flips.n, flips.down, flips.up, z)
    se = max(high - value, value - low) / z
    return Estimate(value=value, se=se, df=math.inf, low=low, high=high, n=flips.n)


def rate_recovery(flips: Flips, share: float, level: float = LEVEL) -> Estimate:
    """Estimate how far the rate after stands above ``share`` times the rate before.

    ``low`` is at least 0 when the score test (Nam and Blackwelder 2002) finds that the rate after is at least
    that share; there is no other end.
    """
    if flips.n < 2:
        return Estimate(n=flips.n, note=TOO_FEW)
    after, before = (
        (flips.both + flips.up) / flips.n,
        (flips.both + flips.down) / flips.n,
    )
    up, down = flips.up / flips.n, flips.down / flips.n
    root = math.sqrt((after - share**2 * before) ** 2 + 4 * share**2 * up * down)
    gained = (share**2 * (before + 2 * up) - after + root) / (2 * share * (share + 1))
    lost = share * gained + (1 - share) * (flips.both / flips.n + up + down)
    value = after - share * before
    se = math.sqrt(max(share * (gained + lost), 0.0) / flips.n)
    return Estimate(
        value=value,
        se=se,
        df=math.inf,
        low=value - float(ndtri((1 + level) / 2)) * se,
        n=flips.n,
    )


def rate_mde(flips: Flips, alpha: float, allowed: float = 0.0) -> float:
    """Return the drop of a rate that a z test finds to exceed ``allowed`` with 80 % power.

    As many facts flip as now, or as many as the drop needs, all down. More than 1 where not even the loss of
    all facts would be found.
    """
    z = float(ndtri(1 - alpha) + ndtri(POWER))
    changed = (flips.down + flips.up) / flips.n
    drop = allowed + z * math.sqrt(changed / flips.n)
    # Where more facts must flip than do: the root of (drop - allowed)^2 = z^2 drop / n.
    half = z * z / flips.n / 2
    return (
        drop
        if drop < changed
        else allowed + half + math.sqrt(half * (half + 2 * allowed))
    )


def rate_facts_to_clear(flips: Flips, tolerance: float) -> int | None:
    """Return how many facts bring the worst drop of Tango's 95 % interval within ``tolerance``.

    As large a share of them flips as now, ``down`` being worse; ``None`` when a million would not do.
    """
    if (flips.down - flips.up) / flips.n >= tolerance:
        return None

    def excess(times: float) -> float:
        n, down, up = flips.n * times, flips.down * times, flips.up * times
        return -_tango_low(n, down, up) - tolerance

    most = 1e6 / flips.n
    if excess(most) > 0:
        return None
    times = 1.0 if excess(1.0) <= 0 else brentq(excess, 1.0, most, rtol=1e-9)
    return max(math.ceil(flips.n * times), flips.n + 1)


def contrast(
    terms: Sequence[tuple[float, Estimate]],
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Estimate the weighted sum of independent estimates (weight, estimate), as of two different samples.

    The 95 % interval recovers the variance of each from its own interval (MOVER; Zou and Donner 2008), which
    of two rates with Wilson's is Newcombe's hybrid score interval (1998, method 10). There is none where one
    of the estimates has none. ``n`` is that of the first, degrees of freedom after Welch and Satterthwaite.
    """
    first = terms[0][1]
    if any(estimate.value is None for _, estimate in terms):
        return Estimate(n=first.n, note=UNDEFINED)
    value = math.fsum(weight * (estimate.value or 0.0) for weight, estimate in terms)
    below, above, variance, spread = 0.0, 0.0, 0.0, 0.0
    for weight, estimate in terms:
        middle, low, high = estimate.value, estimate.low, estimate.high
        if middle is None or low is None or high is None:
            return Estimate(value=value, n=first.n, note=estimate.note)
        least, most = sorted((weight * (low - middle), weight * (high - middle)))
        below, above = below + least**2, above + most**2
        se = weight * ((high - low) / 2 / Z if estimate.se is None else estimate.se)
        variance += se**2
        spread += se**4 / estimate.df if estimate.df else 0.0
    return Estimate(
        value=value,
        se=math.sqrt(variance),
        df=variance**2 / spread if spread else math.inf,
        low=max(value - math.sqrt(below), bounds[0]),
        high=min(value + math.sqrt(above), bounds[1]),
        n=first.n,
    )


def unpaired_contrast(terms: Sequence[tuple[float, Estimate]]) -> Difference:
    """Test whether a weighted sum of independent estimates is at least 0; see :func:`contrast`."""
    return _tested(contrast(terms), -1.0)


def unpaired_difference(
    candidate: Estimate,
    baseline: Estimate,
    *,
    better: Better,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare two independent estimates, as :func:`paired_difference` does two samples of the same facts."""
    reach = bounds[1] - bounds[0]
    estimate = contrast([(1.0, candidate), (-1.0, baseline)], (-reach, reach))
    return _tested(estimate, -1.0 if better == "higher" else 1.0)


def _tested(estimate: Estimate, sign: float) -> Difference:
    """Return a difference with the t test of its drop, which is ``sign`` times the estimate."""
    if estimate.value is None or not estimate.se:
        return Difference(estimate=estimate)
    test = TTest(drop=sign * estimate.value, se=estimate.se, df=estimate.df)
    spread = (estimate.se, estimate.df)
    return Difference(estimate=estimate, tests=(test,), spread=spread)
