"""Several tests at once: corrections for the number of comparisons, and boundaries of several looks.

Šidák's correction is made over cases: it needs nothing but their number, so an item can decide by it before
the other p-values are known. Inside a case, Simes' test combines its gates and Hommel's procedure names those
that fail. The p-values adjusted after Holm and after Benjamini and Hochberg are reported beside it.

Group-sequential tests may stop at several looks and keep their level over all. It is spent as Lan and DeMets
(1983) do after O'Brien and Fleming (1979): hardly any at the first looks. The boundaries come from the
recursion of Armitage, McPherson and Rowe (1969) over a Brownian motion.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from pytest_kbrel.stats.estimates import FAMILY_LEVEL, LEVEL, Array


def sidak(comparisons: int) -> float:
    """Return the level of each of ``comparisons`` tests that keeps that of the family (Šidák 1967)."""
    return -math.expm1(math.log1p(-FAMILY_LEVEL) / max(comparisons, 1))


def sidak_p(p: float, comparisons: int) -> float:
    """Return ``p`` adjusted for ``comparisons`` tests: below ``family`` where p is below :func:`sidak`'s."""
    return 1.0 if p >= 1 else -math.expm1(max(comparisons, 1) * math.log1p(-p))


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the p-values adjusted after Holm (1979), in the order given: they keep the family-wise rate.

    ``None`` (no test was possible) stays ``None`` and does not count as a comparison.
    """
    return _stepped(ps, lambda n, at: n - at, max)


def benjamini_hochberg(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the p-values adjusted after Benjamini and Hochberg (1995): they keep the false discovery rate.

    Order and ``None`` as in :func:`holm`.
    """
    return _stepped(ps, lambda n, at: n / (n - at), min)


def _stepped(
    ps: Sequence[float | None],
    factor: Callable[[int, int], float],
    keep: Callable[[float, float], float],
) -> tuple[float | None, ...]:
    """Return p-values times ``factor``, the least first where the largest so far is kept, else last."""
    tested = [(p, at) for at, p in enumerate(ps) if p is not None]
    tested.sort(reverse=keep is min)
    raised = (min(factor(len(tested), n) * p, 1.0) for n, (p, _) in enumerate(tested))
    by_index = dict(
        zip((at for _, at in tested), accumulate(raised, keep), strict=True)
    )
    return tuple(map(by_index.get, range(len(ps))))


def simes(ps: Sequence[float]) -> float:
    """Return the p-value of "none of these hypotheses is false" (Simes 1986): min over j of k p_(j) / j.

    It holds where the tests are positively dependent (Sarkar 1998); 1 without any p-value.
    """
    return min(
        (len(ps) * p / rank for rank, p in enumerate(sorted(ps), start=1)), default=1.0
    )


def hommel(ps: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted after Hommel (1988), in the order given: they keep the family-wise rate.

    A hypothesis is rejected if every set of hypotheses that it is in is rejected by :func:`simes`; of the
    sets of one size, the one with the largest other p-values decides.
    """
    adjusted = []
    for index, p in enumerate(ps):
        others = sorted([*ps[:index], *ps[index + 1 :]], reverse=True)
        adjusted.append(max(simes([p, *others[:size]]) for size in range(len(ps))))
    return tuple(adjusted)


# Points of the grid that densities are integrated on, and how far down it reaches: the tail beyond is 1e-23.
_POINTS = 301
_REACH = 10.0
# No boundary of a level above 1e-12 at one of ten looks is higher.
_HIGHEST = 36.0


def spent(alpha: float, share: float) -> float:
    """Return the level spent up to the ``share`` (above 0, at most 1) of the largest number of facts."""
    return float(2 * ndtr(ndtri(alpha / 2) / np.sqrt(share)))


@functools.lru_cache(maxsize=256)
def boundaries(alpha: float, looks: int) -> tuple[float, ...]:
    """Return the z above which a one-sided test of level ``alpha`` rejects at each of so many equal looks."""
    shares = [number / looks for number in range(1, looks + 1)]
    limits = []
    before, grid, weight = 0.0, np.zeros(1), np.ones(1)
    for number, share in enumerate(shares):
        step = float(np.sqrt(share - (shares[number - 1] if number else 0.0)))
        level = spent(alpha, share) - before
        excess = functools.partial(_excess, grid, weight, step, level)
        root = float(np.sqrt(share))
        limit = float(brentq(excess, -_REACH * root, _HIGHEST * root, xtol=1e-9))
        limits.append(limit / root)
        before += level
        points = np.linspace(-_REACH * root, limit, _POINTS)
        density = (
            np.exp(-(((points[:, None] - grid) / step) ** 2) / 2)
            / (step * np.sqrt(2 * np.pi))
            @ weight
        )
        # Simpson's rule.
        simpson = np.full(_POINTS, 2.0)
        simpson[1::2], simpson[[0, -1]] = 4.0, 1.0
        grid, weight = points, density * simpson * (points[1] - points[0]) / 3
    return tuple(limits)


def look_level(looks: int, number: int, alpha: float = (1 - LEVEL) / 2) -> float:
    """Return the level of the two-sided interval that look ``number`` (from 1) of so many equal looks has.

    Each end is beyond the truth at some look with a chance of at most ``alpha``, all looks together.
    """
    z = boundaries(alpha, looks)[number - 1]
    return 1 - 2 * float(ndtr(-z))


def sequential_p(p: float, looks: int, number: int) -> float:
    """Return the p-value of a one-sided test with several looks, from its ``p`` at look ``number`` (from 1).

    It is the smallest level whose boundary is crossed at this look, and so below a level where that
    level's own boundary is crossed. With one look it is ``p`` itself.
    """
    if looks == 1:
        return p
    roots, limits = _boundary_table(looks)
    z = float(ndtri(1 - p)) if p > 0.5 else -float(ndtri(p))
    level = 2 * float(ndtr(-np.interp(z, limits[:, number - 1], roots)))
    return max(p, level) if z > limits[0, number - 1] else 1.0


@functools.lru_cache(maxsize=16)
def _boundary_table(looks: int) -> tuple[Array, Array]:
    """Return z of half a level, and for each the boundaries of that level, shape (levels, looks).

    Boundaries are nearly linear in that z, so that few levels suffice.
    """
    roots = np.linspace(0.1, 7.1, 21)
    return roots, np.array(
        [boundaries(2 * float(ndtr(-root)), looks) for root in roots]
    )


def _excess(
    grid: Array, weight: Array, step: float, level: float, limit: float
) -> float:
    """Return by how much the chance to cross ``limit`` at a look, not having crossed before, is too high."""
    return float(weight @ ndtr((grid - limit) / step)) - level
