"""Ratios of two figures, by inverting the test of each share."""

from __future__ import annotations

from collections.abc import Callable

# Shares below this are none.
_LEAST = 1e-6
# How far below the ratio to look where the test is undecided at the ratio itself.
_BELOW = 1e-7


def ratio_low(above: Callable[[float], float | None], ratio: float) -> float | None:
    """Return the lower end of the interval of ``ratio``: the least share that cannot be ruled out.

    ``above(share)`` is the lower end of the interval of numerator - share x denominator, ``None`` where there
    is none; a share is ruled out where that is above 0. With a t interval, as the jackknife's, this is the
    method of Fieller (1954), with the score test that of Nam and Blackwelder (2002). ``None`` where there is
    no spread to judge by.
    """
    from scipy.optimize import brentq

    least = above(_LEAST)
    if least is None or ratio <= _LEAST:
        return None
    if least <= 0:
        return 0.0
    upper, at = ratio, above(ratio)
    if at == 0:
        # Where nothing changed, the test ends at the ratio itself, and just below it there is spread.
        upper = ratio * (1 - _BELOW)
        at = above(upper)
    if at is None or at >= 0:
        return None
    return float(brentq(lambda share: above(share) or 0.0, _LEAST, upper, xtol=1e-9))
