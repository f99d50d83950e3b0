"""Means over facts that change together: the cluster-robust test and interval (CR2).

Facts that share an answer, such as all cities of one country, change together, so that they say less than as
many independent facts would. The variance is the "bias-reduced linearization" of Bell and McCaffrey (2002;
Pustejovsky and Tipton 2018) of a mean, the degrees of freedom are theirs (after Satterthwaite) under
independent facts; both have a closed form.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit

from pytest_kbrel.stats.estimates import LEVEL, ROUNDING, Array


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ClusteredMean:
    """A weighted mean over facts in clusters; ``se`` is ``None`` where all facts are in one cluster.

    ``effective`` is the number of clusters of equal size that would tell as much: the inverse of the sum of
    the squared shares of weight. ``design_effect`` is the variance divided by that of independent facts
    (``None`` where these do not vary).
    """

    value: float
    se: float | None
    df: float
    effective: float
    design_effect: float | None = None

    def p(self, allowed: float) -> float | None:
        """Return the one-sided p-value of "the mean is at most ``allowed``"; ``None`` without a variance."""
        if self.se is None:
            return None
        above = self.value - allowed
        if not self.se:
            return 0.5 if abs(above) <= ROUNDING else float(above < 0)
        return float(stdtr(self.df, -above / self.se))

    @property
    def interval(self) -> tuple[float, float]:
        """The two-sided 95 % interval; infinite without a variance."""
        half = math.inf if self.se is None else self.se and float(stdtrit(self.df, (1 + LEVEL) / 2)) * self.se
        return self.value - half, self.value + half


def clustered_mean(
    values: Array, clusters: npt.NDArray[np.intp], weights: Array | None = None
) -> ClusteredMean:
    """Return the mean of ``values`` over facts in ``clusters``, which are numbered from 0.

    All arguments have shape (facts,). ``weights`` add up to 1; without them every fact has the same.
    """
    n = len(values)
    weights = np.full(n, 1 / n) if weights is None else weights
    value = float(weights @ values)
    deviations = values - value
    deviations[np.abs(deviations) <= ROUNDING * float(np.abs(values).max())] = 0.0
    by_cluster = _cr2(deviations, clusters, weights)
    shares = np.bincount(clusters, weights)
    effective = 1 / float(np.square(shares).sum())
    if by_cluster is None:
        return ClusteredMean(value=value, se=None, df=0.0, effective=effective)
    variance, df = by_cluster
    independent = _cr2(deviations, np.arange(n), weights)
    return ClusteredMean(
        value=value,
        se=math.sqrt(variance),
        df=df,
        effective=effective,
        design_effect=variance / independent[0] if independent and independent[0] else None,
    )


def _cr2(deviations: Array, clusters: npt.NDArray[np.intp], weights: Array) -> tuple[float, float] | None:
    """Return the variance of the weighted mean and its degrees of freedom; ``None`` with one cluster."""
    share = np.bincount(clusters, weights)
    present = share > 0
    share = share[present]
    if len(share) < 2:
        return None
    sums = np.bincount(clusters, weights * deviations)[present]
    variance = float((sums**2 / (1 - share)).sum())
    # The degrees of freedom are 2 E(V)^2 / Var(V), V being a quadratic form of the clusters' sums, whose
    # covariances under independent facts of variance 1 follow from the shares and the squared weights.
    squares = np.bincount(clusters, weights**2)[present]
    total = float(squares.sum())
    scale = 1 / (1 - share)
    diagonal = squares - 2 * share * squares + share**2 * total
    same = share**2 * total - 2 * share * squares
    shared, squared, mixed = (float((scale * of).sum()) for of in (share**2, squares**2, share * squares))
    all_pairs = 2 * shared * squared + shared**2 * total**2 + 2 * mixed**2 - 4 * shared * mixed * total
    spread = all_pairs + float((scale**2 * (diagonal**2 - same**2)).sum())
    return variance, float((scale * diagonal).sum()) ** 2 / spread
