"""How often a gate passes, fails or is red by ``never``, by enumeration of the facts lost and gained.

All of it is about facts that change independently. For figures that are no rates, and for facts in clusters,
the interval is that of a t test whose standard error is drawn anew in each run.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv, ndtr, ndtri, stdtrit

from pytest_kbrel.stats.estimates import FEWEST_UNLOST, LEVEL, Array, Z
from pytest_kbrel.stats.paired_rates import binomial_cdf, binomial_pmf, fewest_lost

_MOST = 100_000
# So many quantiles of a distribution stand for all of it.
_DRAWS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RateVerdicts:
    """The chances of three verdicts on a rate: a pass, a significant drop beyond a limit, red by ``never``.

    The rest is inconclusive.
    """

    passed: float
    failed: float
    never: float

    @property
    def red(self) -> float:
        """The chance of a failure, of either kind."""
        return self.failed + self.never


def rate_verdicts(
    n: int,
    flips: float,
    drop: float,
    *,
    within: float,
    beyond: float,
    never: float = math.inf,
    alpha: float,
) -> RateVerdicts:
    """Return the chances of the verdicts on ``n`` facts of which a share of ``flips`` change.

    ``drop`` is the true one, the chance of a loss minus that of a gain; at least as many facts flip. A gate
    passes where the interval's worse end is within ``within``, or where no fact of at least ten was lost.
    Else it fails where :func:`~pytest_kbrel.stats.drop_p` of ``beyond`` is below ``alpha``, and else where
    the worse end is beyond ``never``.
    """
    gained = _gained(n, flips, drop)
    passing = most_within(n, within)[gained]
    if n >= FEWEST_UNLOST:
        passing = np.maximum(passing, 0)
    failing = np.maximum(
        fewest_lost(n, int(gained[-1]), alpha, beyond)[gained] - 1, passing
    )
    red = failing
    if never < math.inf:
        red = np.maximum(np.minimum(failing, most_within(n, never)[gained]), passing)
    passed, not_failed, not_red = (
        _at_most(n, flips, drop, most) for most in (passing, failing, red)
    )
    return RateVerdicts(
        passed=passed, failed=1 - not_failed, never=not_failed - not_red
    )


@functools.lru_cache(maxsize=4096)
def rate_within(
    n: int, flips: float, bound: float, drop: float = 0.0, *, or_unlost: bool = False
) -> float:
    """Return how often the worse end of a rate's interval is within ``bound``; arguments as above.

    ``or_unlost``: a run in which no fact of at least ten was lost counts as well.
    """
    most = most_within(n, bound)[_gained(n, flips, drop)]
    if or_unlost and n >= FEWEST_UNLOST:
        most = np.maximum(most, 0)
    return min(_at_most(n, flips, drop, most), 1.0)


@functools.lru_cache(maxsize=1024)
def rate_facts_to_pass(flips: float, within: float, chance: float) -> int | None:
    """Return the fewest facts, within 1 %, over which an unchanged model's interval is within ``within``.

    That is so with ``chance`` (0 to 1), where a share of ``flips`` change, as many lost as gained. Counts are
    whole: with some more facts the chance may be a little smaller, until one more may be lost.
    ``None``: over 100,000.
    """
    # With fewer not even an interval without changes is within, or a normal distribution is far from it.
    n = max(math.ceil(Z * Z * (1 - within) / within), 2)
    n = max(n, math.floor(0.5 * flips * ((Z + float(ndtri(chance))) / within) ** 2))
    while n <= _MOST:
        if rate_within(n, flips, within) >= chance:
            return n
        n += max(n // 100, 1)
    return None


def end_beyond(bound: float, se: float, df: float) -> float:
    """Return how often the worse end of an interval of a drop that is truly 0 is beyond ``bound``.

    ``se`` is the drop's standard error, which each run estimates anew with ``df`` degrees of freedom.
    """
    return float(ndtr(_half_widths(df) - bound / se).mean())


@functools.lru_cache(maxsize=1024)
def _half_widths(df: float) -> Array:
    """Return quantiles of the half width of a 95 % interval, in true standard errors."""
    quantiles = (np.arange(_DRAWS) + 0.5) / _DRAWS
    widths: Array = float(stdtrit(df, (1 + LEVEL) / 2)) * np.sqrt(
        2 * gammaincinv(df / 2, quantiles) / df
    )
    return widths


def facts_to_pass(n: int, se: float, df: float, within: float, chance: float) -> int:
    """Return how many facts bring the worse end of an unchanged model's interval within ``within``.

    That is so with ``chance``; ``se`` is the drop's standard error over ``n`` facts. Fewer facts than let a
    run without losses pass are never enough.
    """
    return max(
        math.ceil(n * (_errors_apart(df, chance) * se / within) ** 2), FEWEST_UNLOST
    )


@functools.lru_cache(maxsize=1024)
def _errors_apart(df: float, chance: float) -> float:
    """Return how many standard errors a bound must be away for the interval to stay within it."""
    low, high = 0.0, 1e4
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (
            (low, middle)
            if 1 - end_beyond(middle, 1.0, df) >= chance
            else (middle, high)
        )
    return high


@functools.lru_cache(maxsize=1024)
def most_within(n: int, bound: float) -> Array:
    """Return by facts gained, 0 to ``n``, the most lost with which Tango's interval is within ``bound``.

    It is -1 where not even none lost is enough.
    """
    gained = np.arange(n + 1.0)
    low, high = np.full(n + 1, -1.0), n - gained
    for _ in range(n.bit_length() + 1):
        lost = np.ceil((low + high) / 2)
        b = (2 * n - lost + gained) * bound - lost - gained
        gain = (
            np.sqrt(np.maximum(b * b + 8 * n * gained * bound * (1 - bound), 0)) - b
        ) / (4 * n)
        error = np.sqrt(n * (2 * gain + bound * (1 - bound)))
        holds = lost - gained - n * bound <= -Z * error
        low, high = (
            np.where(holds, lost, low),
            np.where(holds, high, np.maximum(lost - 1, low)),
        )
    return low


def _gained(
    n: int, flips: float, drop: float
) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return the numbers of gained facts that can be met with."""
    gain = max((flips - drop) / 2, 0.0)
    spread = 9 * math.sqrt(n * gain * (1 - gain)) + 9
    return np.arange(
        max(0, math.floor(n * gain - spread)), min(n, math.ceil(n * gain + spread)) + 1
    )


def _at_most(n: int, flips: float, drop: float, most: Array) -> float:
    """Return the chance that at most so many facts are lost, by facts gained."""
    gain = max((flips - drop) / 2, 0.0)
    gained = _gained(n, flips, drop)
    share = min((gain + drop) / (1 - gain), 1.0) if gain < 1 else 0.0
    return float(
        (binomial_pmf(gained, n, gain) * binomial_cdf(most, n - gained, share)).sum()
    )
