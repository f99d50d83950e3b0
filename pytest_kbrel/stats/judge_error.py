"""Differences of rates that a fallible judge counts, corrected for its error (Rogan and Gladen 1978).

Of answers that are right, a judge calls a share ``se`` right, and of wrong ones a share ``fp``. A true share
``pi`` then shows as ``fp + J * pi`` with ``J = se - fp`` (Youden 1950), and a true difference as J times
itself. J comes from labelled answers, and so has an error of its own.
"""

from __future__ import annotations

import math

from pytest_kbrel.stats.estimates import LEVEL, Estimate, z_of
from pytest_kbrel.stats.intervals import score_interval
from pytest_kbrel.stats.unpaired import contrast

_TAIL = (1 - LEVEL) / 2


def judge_index(
    right_accepted: int,
    right: int,
    wrong_accepted: int,
    wrong: int,
    alpha: float = _TAIL,
) -> Estimate:
    """Estimate J of a judge that accepted so many of the ``right`` answers and so many of the ``wrong`` ones.

    ``right`` and ``wrong`` are above 0. The interval is Newcombe's hybrid score interval (1998, method 10),
    which misses at either end with a chance of ``alpha``.
    """
    return contrast(
        [
            (1.0, _rate(right_accepted, right, alpha)),
            (-1.0, _rate(wrong_accepted, wrong, alpha)),
        ],
        (-1.0, 1.0),
    )


def judge_floor(
    right_accepted: int,
    right: int,
    wrong_accepted: int,
    wrong: int,
    alpha: float = _TAIL,
) -> float:
    """Return the most that the judge may add to a rate of right or of wrong answers that is truly 0."""
    ends = (
        _rate(right - right_accepted, right, alpha).high,
        _rate(wrong_accepted, wrong, alpha).high,
    )
    return max(end for end in ends if end is not None)


def corrected(
    value: float, low: float | None, high: float | None, index: Estimate
) -> tuple[float, float | None, float | None]:
    """Return a difference ``value`` with its interval, divided by J.

    The variances are recovered from the two intervals (MOVER: Donner and Zou 2012), which for symmetric ones
    is Fieller's interval. It moves with each end of the given interval, and has no ends where that of
    J reaches 0. J must be above 0.
    """
    assert index.value is not None
    if index.low is None or index.low <= 0:
        return value / index.value, None, None
    high = None if high is None else -_low(-value, -high, index)
    return value / index.value, None if low is None else _low(value, low, index), high


def _low(value: float, low: float, index: Estimate) -> float:
    """Return the lower end of ``value`` / J: the x at which the lower end of value - x J is 0."""
    assert index.value is not None
    assert index.low is not None
    assert index.high is not None
    # Of x J the end matters that brings it nearer to, or farther from, 0.
    end = index.high if low >= 0 else index.low
    curve = end * (2 * index.value - end)
    if curve <= 0:
        return low / end
    root = math.sqrt(
        max((value * index.value) ** 2 - curve * low * (2 * value - low), 0.0)
    )
    return (value * index.value - root) / curve


def _rate(successes: int, n: int, alpha: float) -> Estimate:
    rate = successes / n
    low, high = score_interval(rate, n, z_of(alpha))
    return Estimate(
        value=rate, se=math.sqrt(rate * (1 - rate) / n), low=low, high=high, n=n
    )
