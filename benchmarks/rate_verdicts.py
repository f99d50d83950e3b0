"""Chances of the verdicts on a rate whose facts change independently, by enumeration of all outcomes.

``python -m benchmarks.rate_verdicts`` prints how many facts let an unchanged model pass.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmarks.fewest_lost import fewest_lost
from pytest_kbrel.stats.estimates import FEWEST_UNLOST, Array, Z
from pytest_kbrel.stats.paired_rates import binomial_cdf, binomial_pmf

# More facts than these are not counted.
_MOST = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RateVerdicts:
    """Chances of a pass and of a failure; the rest is inconclusive."""

    passed: float
    failed: float


def rate_verdicts(
    n: int,
    flips: float,
    drop: float,
    *,
    within: float,
    beyond: float,
    alpha: float,
) -> RateVerdicts:
    """Return the chances of the verdicts on ``n`` facts of which a share of ``flips`` change.

    ``drop`` is the true one, the chance of a loss minus that of a gain; at least as many facts flip. A gate
    passes where the interval's worse end is within ``within``, or where no fact of at least ten was lost.
    Else it fails where :func:`~pytest_kbrel.stats.paired_rates.drop_p` of ``beyond`` is below ``alpha``.
    """
    gained = _gained(n, flips, drop)
    passing = most_within(n, within)[gained]
    if n >= FEWEST_UNLOST:
        passing = np.maximum(passing, 0)
    failing = np.maximum(
        fewest_lost(n, int(gained[-1]), alpha, beyond)[gained] - 1, passing
    )
    passed, not_failed = (_at_most(n, flips, drop, most) for most in (passing, failing))
    return RateVerdicts(passed=passed, failed=1 - not_failed)


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


def main() -> None:
    """Print the table of docs/gates.md: the facts with which an unchanged model passes."""
    print("| within | flips 1 % | 2 % | 5 % | 10 % |\n|--:|--:|--:|--:|--:|")
    for within in (0.02, 0.03, 0.05, 0.08, 0.1):
        cells = (
            " / ".join(
                f"{rate_facts_to_pass(flips, within, chance):,}"
                for chance in (0.8, 0.98)
            )
            for flips in (0.01, 0.02, 0.05, 0.1)
        )
        print(f"| {within} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
