"""The sign-flip test: what if, for each fact, it were chance which answer is the candidate's?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_kbrel.stats.samples import Array

# All 2^16 ways are counted in a millisecond; beyond that a t test agrees with them.
MOST_FLIPS = 16


def fewest_flips(alpha: float) -> int:
    """Return how many facts must at least have changed, all for the worse, to be significant at ``alpha``."""
    return max(1, math.floor(math.log2(0.5 / alpha)) + 1)


def sign_flip(contributions: Array) -> float:
    """Return the one-sided mid-p that a sum of ``contributions``, shape (facts,), is so low by chance.

    Each contribution is equally likely to have either sign (Fisher 1935). All ways are counted, so there must
    be no more than :data:`MOST_FLIPS`. Of contributions of equal size it is the mid-p McNemar test.
    """
    import numpy as np

    sums = np.zeros(1)
    for size in np.abs(contributions):
        sums = np.concatenate([sums - size, sums + size])
    found = float(contributions.sum())
    rounding = 1e-9 * float(np.abs(contributions).sum())
    below = np.count_nonzero(sums < found - rounding)
    equal = np.count_nonzero(np.abs(sums - found) <= rounding)
    return float((below + equal / 2) / len(sums))
