"""Differences of independent estimates, such as a paper's figure from one that was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pytest_kbrel.stats.estimates import (
    UNDEFINED,
    Better,
    Difference,
    Estimate,
    TTest,
    Z,
)


def contrast(
    terms: Sequence[tuple[float, Estimate]],
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Estimate the weighted sum of independent estimates (weight, estimate), as of two different samples.

    The 95 % interval recovers the variance of each from its own interval (MOVER; Zou and Donner 2008), which
    of two rates with Wilson's is Newcombe's hybrid score interval (1998, method 10). There is none where one
    of the estimates has none. ``n`` is that of the first, degrees of freedom after Welch and Satterthwaite.
    """
    first = terms[0][1]
    if any(estimate.value is None for _, estimate in terms):
        return Estimate(n=first.n, note=UNDEFINED)
    value = math.fsum(weight * (estimate.value or 0.0) for weight, estimate in terms)
    below, above, variance, spread = 0.0, 0.0, 0.0, 0.0
    for weight, estimate in terms:
        middle, low, high = estimate.value, estimate.low, estimate.high
        if middle is None or low is None or high is None:
            return Estimate(value=value, n=first.n, note=estimate.note)
        least, most = sorted((weight * (low - middle), weight * (high - middle)))
        below, above = below + least**2, above + most**2
        se = weight * ((high - low) / 2 / Z if estimate.se is None else estimate.se)
        variance += se**2
        spread += se**4 / estimate.df if estimate.df else 0.0
    return Estimate(
        value=value,
        se=math.sqrt(variance),
        df=variance**2 / spread if spread else math.inf,
        low=max(value - math.sqrt(below), bounds[0]),
        high=min(value + math.sqrt(above), bounds[1]),
        n=first.n,
    )


def unpaired_contrast(terms: Sequence[tuple[float, Estimate]]) -> Difference:
    """Test whether a weighted sum of independent estimates is at least 0; see :func:`contrast`."""
    return _tested(contrast(terms), -1.0)


def unpaired_difference(
    candidate: Estimate,
    baseline: Estimate,
    *,
    better: Better,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare two independent estimates, as :func:`paired_difference` does two samples of the same facts."""
    reach = bounds[1] - bounds[0]
    estimate = contrast([(1.0, candidate), (-1.0, baseline)], (-reach, reach))
    return _tested(estimate, -1.0 if better == "higher" else 1.0)


def _tested(estimate: Estimate, sign: float) -> Difference:
    """Return a difference with the t test of its drop, which is ``sign`` times the estimate."""
    if estimate.value is None or not estimate.se:
        return Difference(estimate=estimate)
    test = TTest(drop=sign * estimate.value, se=estimate.se, df=estimate.df)
    spread = (estimate.se, estimate.df)
    return Difference(estimate=estimate, tests=(test,), spread=spread)
