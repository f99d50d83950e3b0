"""Means over facts that change together: the cluster-robust test and interval (CR2).

Facts that share an answer, such as all cities of one country, change together, so that they say less than as
many independent facts would. The variance is the "bias-reduced linearization" of Bell and McCaffrey (2002;
Pustejovsky and Tipton 2018) of a mean, the degrees of freedom are theirs (after Satterthwaite) under
independent facts; both have a closed form.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from pytest_kbrel.stats.drop_tests import SignFlipTest, TTest
from pytest_kbrel.stats.estimates import (
    LEVEL,
    ONE_CLUSTER,
    ROUNDING,
    Array,
    Better,
    ClusteredMean,
    Difference,
    Estimate,
    Sample,
    Statistic,
    alone,
)
from pytest_kbrel.stats.intervals import left_out


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The clusters that facts change in. ``of_fact`` gives each fact's; one not in it is its own.

    ``case_weights`` are the shares of a sample's cases in the figure, adding up to 1; ``None``: as many as
    they have facts.
    """

    of_fact: Mapping[str, str]
    case_weights: tuple[float, ...] | None = None


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


def cluster_df(clusters: Sequence[int]) -> float | None:
    """Return the degrees of freedom of :func:`clustered_mean`; ``None`` where all facts share a cluster."""
    numbers = np.array(clusters)
    by_cluster = _cr2(
        np.zeros(len(numbers)), numbers, np.full(len(numbers), 1 / max(len(numbers), 1))
    )
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


def with_clusters(
    difference: Difference,
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    share: float,
    better: Better,
    reach: float,
    clusters: Clusters | None,
    level: float = LEVEL,
) -> Difference:
    """Return the comparison with the test and the interval by clusters beside those by facts.

    Hall's test goes with them: both need how much worse each fact became.
    """
    estimate = difference.estimate
    if estimate.se is None or (difference.flips is not None and clusters is None):
        return difference
    drops = _drops(difference, candidate, baseline, statistic, share, better, clusters)
    if drops is None:
        return difference
    facts, values, weights = drops
    tests = list(difference.tests)
    centred = weights * (values - float(weights @ values))
    spread = math.sqrt(float((centred**2).sum()))
    if difference.flips is None and difference.worse and spread > ROUNDING:
        by_facts = next((test for test in tests if isinstance(test, TTest)), None)
        if by_facts is not None and not isinstance(tests[0], SignFlipTest):
            tests.append(
                dataclasses.replace(
                    by_facts, skewness=float((centred**3).sum()) / spread**3
                )
            )
    of_fact = {} if clusters is None else clusters.of_fact
    names = {
        name: number
        for number, name in enumerate(dict.fromkeys(of_fact.get(f, f) for f in facts))
    }
    if len(names) == len(facts):
        return dataclasses.replace(difference, tests=tuple(tests))
    if len(names) == 1:
        alone = dataclasses.replace(
            estimate, se=None, low=None, high=None, note=ONE_CLUSTER
        )
        return dataclasses.replace(difference, estimate=alone, tests=(), spread=None)
    numbers = np.array([names[of_fact.get(fact, fact)] for fact in facts])
    clustered = clustered_mean(values, numbers, weights)
    return dataclasses.replace(
        difference,
        estimate=_wider(
            estimate, clustered, better if share == 1 else "higher", reach, level
        ),
        tests=(*tests, clustered),
        clustered=clustered,
    )


def _wider(
    estimate: Estimate,
    clustered: ClusteredMean,
    better: Better,
    reach: float,
    level: float,
) -> Estimate:
    """Return the estimate with the wider side of two intervals, its own and that of the drop by clusters."""
    low, high = clustered.interval(level)
    if better == "higher":
        low, high = -high, -low
    low, high = max(low, -reach), min(high, reach)
    return dataclasses.replace(
        estimate,
        low=None if estimate.low is None else min(estimate.low, low),
        high=None if estimate.high is None else max(estimate.high, high),
    )


def _drops(
    difference: Difference,
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    share: float,
    better: Better,
    clusters: Clusters | None,
) -> tuple[list[str], Array, Array] | None:
    """Return facts, how much worse each became, and its weight in the figure; ``None`` where undefined.

    Of a rate that is what its outcome changed by. Of any other figure it is the fact's influence, from the
    jackknife (Efron and Stein 1981), which of a mean is the same.
    """
    worse = 1.0 if better == "lower" else -1.0
    after, before = (1.0, -share) if better == "higher" else (share, -1.0)
    if difference.flips is not None:
        new, old = (alone(sample, statistic) for sample in (candidate, baseline))
        counted = ~np.isnan(old)
        facts = [
            fact
            for fact, of in zip(
                (f for fs in candidate.facts for f in fs), counted, strict=True
            )
            if of
        ]
        values = worse * (after * new[counted] + before * old[counted])
        return facts, values, np.full(len(values), 1 / len(values))
    terms = [(worse * after, candidate), (worse * before, baseline)]
    strata = [
        np.sum(parts, axis=0)
        for parts in zip(
            *(
                [weight * part for part in left_out(sample, statistic)]
                for weight, sample in terms
            ),
            strict=True,
        )
    ]
    if any(np.isnan(stratum).any() for stratum in strata):
        return None
    influences = [(s.mean() - s) * (len(s) - 1) / len(s) for s in strata]
    if len(strata) == 1:
        shares, parts = [1.0], [_whole(terms, statistic)]
    else:
        sizes = np.array([len(s) for s in strata], dtype=float)
        given = None if clusters is None else clusters.case_weights
        shares = list(given or sizes / sizes.sum())
        parts = _parts(terms, statistic, shares)
    weights = np.concatenate(
        [np.full(len(s), w / len(s)) for s, w in zip(strata, shares, strict=True)]
    )
    totals = np.concatenate(
        [i + part / len(i) for i, part in zip(influences, parts, strict=True)]
    )
    facts = list(dict.fromkeys(fact for facts in candidate.facts for fact in facts))
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
