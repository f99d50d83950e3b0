"""How many more facts would have to be known."""

from __future__ import annotations

import math

from pytest_kbrel.stats.estimates import LEVEL, Difference
from pytest_kbrel.stats.paired_rates import rate_facts_to_clear

_MOST = 1e6


def facts_needed(distance: float, se: float, n: int, alpha: float) -> int | None:
    """Return how many facts put ``distance`` outside a one-sided interval of level ``alpha``.

    ``se`` is the standard error over ``n`` facts; ``None`` when no number of facts below a million would do.
    """
    from scipy.special import ndtri

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
