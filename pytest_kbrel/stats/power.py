"""Minimum detectable effects, and how many facts would decide."""

from __future__ import annotations

import math

from scipy.special import ndtri, stdtrit

from pytest_kbrel.stats.estimates import LEVEL, POWER, Difference, Estimate
from pytest_kbrel.stats.paired_rates import rate_facts_to_clear

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


def facts_to_alarm(difference: Difference, alpha: float) -> int | None:
    """Return how many facts make ``difference`` significant at level ``alpha``, were it the same over them.

    ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if estimate.value is None or estimate.se is None:
        return None
    se = estimate.se if flips is None else math.sqrt(flips.down + flips.up) / flips.n
    return facts_needed(abs(estimate.value), se, estimate.n, alpha)


def facts_to_clear(difference: Difference, distance: float) -> int | None:
    """Return how many facts bring the interval's worse end within the tolerance.

    ``distance`` is that of the drop from the tolerance. ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if distance <= 0 or estimate.se is None:
        return None
    if flips is None:
        return facts_needed(distance, estimate.se, estimate.n, (1 - LEVEL) / 2)
    needed = rate_facts_to_clear(flips, distance + (flips.down - flips.up) / flips.n)
    # Where not every fact counts in the rate, as many more are needed.
    return None if needed is None else math.ceil(needed * estimate.n / flips.n)


def mde(se: float, df: float, alpha: float) -> float:
    """Return the drop that a t test at level ``alpha`` finds with 80 % power."""
    return (float(stdtrit(df, 1 - alpha)) + float(stdtrit(df, POWER))) * se


def planned_mde(figure: Estimate, alpha: float, correlation: float) -> float | None:
    """Return the drop of ``figure`` that a paired t test at level ``alpha`` would find with 80 % power.

    ``figure`` is estimated before the comparison, and is taken to have the same standard error after it;
    ``correlation`` is that of the facts' values before and after. The difference then has the standard error
    se * sqrt(2 * (1 - correlation)). ``None`` where the estimate has no spread to go by.
    """
    if not figure.se or figure.n < 2:
        return None
    return mde(figure.se, figure.df or figure.n - 1, alpha) * math.sqrt(2 * (1 - correlation))
