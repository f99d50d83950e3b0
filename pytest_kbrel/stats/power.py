"""Minimum detectable effects, and how many facts would decide."""

from __future__ import annotations

import math

from scipy.special import ndtri, stdtrit

from pytest_kbrel.stats.estimates import LEVEL, POWER, Difference
from pytest_kbrel.stats.paired_rates import (
    drop_p,
    rate_facts_to_clear,
    rate_mde,
    tango,
)

_MOST = 1e6


def facts_needed(distance: float, se: float, n: int, alpha: float) -> int | None:
    """Return how many facts put ``distance`` outside a one-sided interval of level ``alpha``.

    ``se`` is the standard error over ``n`` facts; ``None`` when no number of facts below a million would do.
    """
    # Also where the square would overflow.
    if distance <= 0 or se / distance > _MOST:
        return None
    needed = n * (float(ndtri(1 - alpha)) * se / distance) ** 2
    return max(math.ceil(needed), n + 1) if needed < _MOST else None


def detectable(difference: Difference, allowed: float, alpha: float) -> float | None:
    """Return the drop that would be found to exceed ``allowed`` at level ``alpha`` with 80 % power.

    As many facts change as have now, in clusters as they have; independently, where these tell no spread.
    ``None`` where nothing is known of any spread; infinite where not even the loss of all facts would be
    found.
    """
    flips, clustered = difference.flips, difference.clustered
    if flips is not None:
        drop = rate_mde(flips, alpha, allowed)
        if drop > 1:
            # Of few facts a z test asks too much: whether the loss of all is found, the gate's own test says.
            if drop_p(flips.n, flips.n, 0, allowed) >= alpha:
                return math.inf
            drop = 1.0
        se = math.sqrt(max((flips.down + flips.up) / flips.n, drop) / flips.n)
    elif difference.spread is not None:
        se = difference.spread[0]
        drop = allowed + mde(*difference.spread, alpha)
    else:
        return None
    if clustered is None or clustered.se is None:
        return drop
    return max(drop, allowed + mde(clustered.se or se, clustered.df, alpha))


def null_end(difference: Difference, comparisons: int) -> float | None:
    """Return the worse end of the interval that an unchanged model would show in the worst of its slices.

    It is the median of the largest of so many ``comparisons`` without a true drop, in slices of this size
    where as many facts change. ``None`` where nothing is known of the spread.
    """
    z = float(ndtri(0.5 ** (1 / max(comparisons, 1))))
    flips, clustered = difference.flips, difference.clustered
    ends = []
    if flips is not None:
        changed = flips.down + flips.up
        surplus = min(z * math.sqrt(changed), changed)
        ends.append(tango(flips.n, (changed - surplus) / 2, (changed + surplus) / 2)[1])
    elif difference.spread is not None:
        se, df = difference.spread
        ends.append((z + float(stdtrit(df, (1 + LEVEL) / 2))) * se)
    if clustered is not None and clustered.se:
        ends.append((z + float(stdtrit(clustered.df, (1 + LEVEL) / 2))) * clustered.se)
    return max(ends, default=None)


def facts_to_alarm(difference: Difference, allowed: float, alpha: float) -> int | None:
    """Return how many facts make ``difference`` significantly exceed ``allowed`` at level ``alpha``.

    The difference is taken to be the same over them. ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if estimate.value is None or estimate.se is None:
        return None
    se = estimate.se if flips is None else math.sqrt(flips.down + flips.up) / flips.n
    return facts_needed(
        abs(estimate.value) - allowed, _with_clusters(se, difference), estimate.n, alpha
    )


def _with_clusters(se: float, difference: Difference) -> float:
    """Return the larger of a standard error and that by clusters."""
    clustered = difference.clustered
    return se if clustered is None or clustered.se is None else max(se, clustered.se)


def facts_to_clear(difference: Difference, distance: float) -> int | None:
    """Return how many facts bring the worse end of the 95 % interval within the tolerance.

    ``distance`` is that of the drop from the tolerance. ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if distance <= 0 or estimate.se is None:
        return None
    if flips is None or _with_clusters(0.0, difference) > estimate.se:
        se = _with_clusters(estimate.se, difference)
        return facts_needed(distance, se, estimate.n, (1 - LEVEL) / 2)
    tolerance = distance + (flips.down - flips.up) / flips.n
    needed = rate_facts_to_clear(flips, tolerance)
    # Where not every fact counts in the rate, as many more are needed.
    return None if needed is None else math.ceil(needed * estimate.n / flips.n)


def mde(se: float, df: float, alpha: float) -> float:
    """Return the drop that a t test at level ``alpha`` finds with 80 % power."""
    return (float(stdtrit(df, 1 - alpha)) + float(stdtrit(df, POWER))) * se
