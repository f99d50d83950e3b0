"""Means over facts that change together: the cluster-robust test and interval (CR2).

Facts that share an answer, such as all cities of one country, change together, so that they say less than as
many independent facts would. The variance is the "bias-reduced linearization" of Bell and McCaffrey (2002;
Pustejovsky and Tipton 2018) of a mean, the degrees of freedom are theirs (after Satterthwaite) under
independent facts; both have a closed form.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_kbrel.stats.estimates import (
    ONE_CLUSTER,
    ROUNDING,
    Array,
    ClusteredMean,
    Comparison,
    Difference,
    Estimate,
    Sample,
    Statistic,
    TTest,
    zeros_and_ones,
)
from pytest_kbrel.stats.intervals import strata_of


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
    least = ROUNDING * float(np.abs(values).max())
    deviations[np.abs(deviations) <= least] = 0.0
    by_cluster = _cr2(deviations, clusters, weights)
    shares = np.bincount(clusters, weights)
    effective = 1 / float(np.square(shares).sum())
    if by_cluster is None:
        return ClusteredMean(value=value, se=None, df=0.0, effective=effective)
    variance, df = by_cluster
    # Where all clusters changed alike, their deviations add up to 0 but for rounding.
    variance = variance if variance > least**2 else 0.0
    independent = _cr2(deviations, np.arange(n), weights)
    return ClusteredMean(
        value=value,
        se=math.sqrt(variance),
        df=df,
        effective=effective,
        design_effect=variance / independent[0]
        if independent and independent[0]
        else None,
    )


def cluster_df(clusters: Sequence[str] | Sequence[int]) -> float | None:
    """Return the degrees of freedom of :func:`clustered_mean` over facts in clusters of these names.

    It is ``None`` where all facts share a cluster.
    """
    n, numbers = len(clusters), np.unique(clusters, return_inverse=True)[1]
    by_cluster = _cr2(np.zeros(n), numbers, np.full(n, 1 / max(n, 1)))
    return None if by_cluster is None else by_cluster[1]


def _cr2(
    deviations: Array, clusters: npt.NDArray[np.intp], weights: Array
) -> tuple[float, float] | None:
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
    shared, squared, mixed = (
        float((scale * of).sum()) for of in (share**2, squares**2, share * squares)
    )
    all_pairs = (
        2 * shared * squared
        + shared**2 * total**2
        + 2 * mixed**2
        - 4 * shared * mixed * total
    )
    spread = all_pairs + float((scale**2 * (diagonal**2 - same**2)).sum())
    return variance, float((scale * diagonal).sum()) ** 2 / spread


def with_clusters(difference: Difference, of: Comparison) -> Difference:
    """Return the comparison with the test and the interval by clusters beside those by facts.

    Hall's test goes with them: both need how much worse each fact became.
    """
    estimate = difference.estimate
    drops = None if estimate.se is None else _drops(difference, of)
    if drops is None:
        return difference
    facts, values, weights = drops
    tests = list(difference.tests)
    centred = weights * (values - float(weights @ values))
    spread = math.sqrt(float((centred**2).sum()))
    # Where few facts changed, the sign-flip test stands in front.
    by_facts = tests[0] if difference.worse and difference.flips is None else None
    if isinstance(by_facts, TTest) and spread > ROUNDING:
        skewness = float((centred**3).sum()) / spread**3
        tests.append(dataclasses.replace(by_facts, skewness=skewness))
    names = [of.clusters.get(fact, fact) for fact in facts]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    if len(numbers) == len(facts):
        return dataclasses.replace(difference, tests=tuple(tests))
    if len(numbers) == 1:
        alone = dataclasses.replace(
            estimate, se=None, low=None, high=None, note=ONE_CLUSTER
        )
        return dataclasses.replace(difference, estimate=alone, tests=(), spread=None)
    clustered = clustered_mean(
        values, np.array([numbers[name] for name in names]), weights
    )
    return dataclasses.replace(
        difference,
        estimate=_wider(estimate, clustered, of),
        tests=(*tests, clustered.p),
        clustered=clustered,
    )


def _wider(estimate: Estimate, clustered: ClusteredMean, of: Comparison) -> Estimate:
    """Return the estimate with the wider side of two intervals, its own and that of the drop by clusters."""
    low, high = sorted(of.drop_sign * end for end in clustered.interval(of.level))
    low, high = max(low, -of.reach), min(high, of.reach)
    return dataclasses.replace(
        estimate,
        low=None if estimate.low is None else min(estimate.low, low),
        high=None if estimate.high is None else max(estimate.high, high),
    )


def _drops(
    difference: Difference, of: Comparison
) -> tuple[list[str], Array, Array] | None:
    """Return facts, how much worse each became, and its weight in the figure; ``None`` where undefined.

    Of a rate that is what its outcome changed by. Of any other figure it is the fact's influence, from the
    jackknife (Efron and Stein 1981), which of a mean is the same.
    """
    terms = [(of.drop_sign * weight, sample) for weight, sample in of.terms]
    if difference.flips is not None:
        (after, new), (before, old) = (
            (weight, zeros_and_ones(sample, of.statistic)) for weight, sample in terms
        )
        assert new is not None
        assert old is not None
        values = after * new[1] + before * old[1]
        return new[0], values, np.full(len(values), 1 / len(values))
    strata = strata_of(terms, of.statistic)
    if strata is None:
        return None
    influences = [(s.mean() - s) * (len(s) - 1) / len(s) for s in strata]
    if len(strata) == 1:
        shares, parts = [1.0], [_whole(terms, of.statistic)]
    else:
        sizes = np.array([len(s) for s in strata], dtype=float)
        shares = list(of.case_weights or sizes / sizes.sum())
        parts = _parts(terms, of.statistic, shares)
    weights = np.concatenate(
        [np.full(len(s), w / len(s)) for s, w in zip(strata, shares, strict=True)]
    )
    totals = np.concatenate(
        [i + part / len(i) for i, part in zip(influences, parts, strict=True)]
    )
    facts = list(dict.fromkeys(fact for facts in of.candidate.facts for fact in facts))
    return facts, totals / weights, weights


def _whole(terms: Sequence[tuple[float, Sample]], statistic: Statistic) -> float:
    return math.fsum(
        weight * float(statistic(sample.totals)) for weight, sample in terms
    )


def _parts(
    terms: Sequence[tuple[float, Sample]], statistic: Statistic, shares: Sequence[float]
) -> list[float]:
    """Return what each case adds to the drop: by how much it moves when the cases change one by one."""
    (weight, candidate), (_, baseline) = terms
    totals = list(baseline.totals)
    before = base = float(statistic(totals))
    parts = []
    for case, changed in enumerate(candidate.totals):
        totals[case] = changed
        after = float(statistic(totals))
        parts.append(weight * (after - before))
        before = after
    # What a share of the baseline adds is the same in every case.
    rest = _whole(terms, statistic) - weight * (before - base)
    return [part + rest * share for part, share in zip(parts, shares, strict=True)]
