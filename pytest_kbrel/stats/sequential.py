"""Boundaries of group-sequential tests, which may stop at several looks and keep their level over all.

The level is spent as Lan and DeMets (1983) do after O'Brien and Fleming (1979): hardly any at the first
looks. The boundaries come from the recursion of Armitage, McPherson and Rowe (1969) over a Brownian motion.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from pytest_kbrel.stats.estimates import LEVEL, Array

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
    limits: list[float] = []
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
