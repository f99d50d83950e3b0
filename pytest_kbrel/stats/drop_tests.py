"""One-sided tests of "it got worse by at most so much": each gives a p-value for any allowed drop.

A drop is positive where the figure got worse. Of several tests of one figure the largest p-value decides, so
that the error rate of the best of them is kept.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.special import stdtr

from pytest_kbrel.stats.estimates import Array

# All 2^16 ways are counted in a millisecond; beyond that a t test agrees with them.
MOST_FLIPS = 16


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TTest:
    """Student's t test of a drop with its standard error (above 0) and degrees of freedom.

    ``skewness`` is that of the drop itself (0 by default); with it this is the test of Hall (1992), whose
    transformation undoes what skewed facts do to t: many that are a little worse and a few that are much
    better look like a drop that is surer than it is.
    """

    drop: float
    se: float
    df: float
    skewness: float = 0.0

    def __call__(self, allowed: float) -> float:
        """Return the one-sided p-value."""
        t, k = (self.drop - allowed) / self.se, self.skewness
        return float(stdtr(self.df, -(t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6)))


def sign_flip(contributions: Array) -> float:
    """Return the one-sided mid-p that a sum of ``contributions``, shape (facts,), is so low by chance.

    Each contribution is equally likely to have either sign (Fisher 1935). All ways are counted, so there must
    be no more than :data:`MOST_FLIPS`. Of contributions of equal size it is the mid-p McNemar test.
    """
    sums = np.zeros(1)
    for size in np.abs(contributions):
        sums = np.concatenate([sums - size, sums + size])
    total = float(contributions.sum())
    rounding = 1e-9 * float(np.abs(contributions).sum())
    below = np.count_nonzero(sums < total - rounding)
    equal = np.count_nonzero(np.abs(sums - total) <= rounding)
    return float((below + equal / 2) / len(sums))
