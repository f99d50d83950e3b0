"""Intervals of one figure: Wilson's score interval, the jackknife's, the bootstrap's, and that of a ratio."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import stdtrit

from pytest_kbrel.stats.estimates import (
    FLAT,
    FRAGILE,
    LEVEL,
    ROUNDING,
    TOO_FEW,
    UNDEFINED,
    Array,
    Estimate,
    Sample,
    Statistic,
    Z,
    zeros_and_ones,
)


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Return Wilson's score interval of a rate (Wilson 1927); ``n`` > 0 trials."""
    return score_interval(successes / n, n, Z)


def score_interval(rate: float, n: float, z: float) -> tuple[float, float]:
    """Return Wilson's score interval of a rate over ``n`` > 0 trials for a normal quantile ``z``."""
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = (
        z
        / (1 + z * z / n)
        * math.sqrt(max(rate * (1 - rate), 0.0) / n + z * z / (4 * n * n))
    )
    return (0.0 if rate <= 0 else centre - half, 1.0 if rate >= 1 else centre + half)


def estimate(
    sample: Sample,
    statistic: Statistic,
    *,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    rate: bool = False,
    facts: int | None = None,
) -> Estimate:
    """Estimate ``statistic`` with the interval that suits it.

    A ``rate``, a mean of zeros and ones, has Wilson's where each fact counts once. A figure within finite
    ``bounds`` has Wilson's with as many trials as would give it the jackknife's variance ("effective sample
    size", Korn and Graubard 1998) and t for z; where all facts are alike, with ``facts`` trials, the number
    of facts that count. Anything else has the jackknife's t interval.
    """
    if rate and (outcomes := zeros_and_ones(sample, statistic)) is not None:
        hits, n = round(float(outcomes[1].sum())), len(outcomes[1])
        if n < 2:
            value = float(hits) if n else None
            return Estimate(value=value, n=n, note=TOO_FEW if n else UNDEFINED)
        low, high = wilson(hits, n)
        return Estimate(value=hits / n, low=low, high=high, n=n)
    whole = jackknife([(1.0, sample)], statistic, bounds)
    reach = bounds[1] - bounds[0]
    if whole.value is None or whole.se is None or not math.isfinite(reach):
        return whole
    share, df = (whole.value - bounds[0]) / reach, whole.df or float(whole.n - 1)
    trials_like = (
        share * (1 - share) / (whole.se / reach) ** 2
        if whole.se
        else float(facts or whole.n)
    )
    # Values that go beyond their bounds by rounding are at them.
    ends = score_interval(
        min(max(share, 0.0), 1.0),
        max(trials_like, 1.0),
        float(stdtrit(df, (1 + LEVEL) / 2)),
    )
    low, high = (
        min(max(bounds[0] + reach * end, bounds[0]), bounds[1]) for end in ends
    )
    return dataclasses.replace(whole, low=low, high=high)


def jackknife(
    terms: Sequence[tuple[float, Sample]],
    statistic: Statistic,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Estimate the weighted sum of ``statistic`` over ``terms`` (weight, sample), with a t interval.

    ``statistic`` takes (totals, n) of each case, shapes (..., k) and (...), and returns values of shape
    (...). All samples hold the same facts, and a fact is left out of all of them at once. Cases are strata
    whose variances add up (degrees of freedom after Welch and Satterthwaite), unless a fact occurs in several
    of them or a case has one fact only: then the facts of all cases form one stratum. A stratum keeps its
    weight without a fact. The interval is cut at ``bounds``.
    """
    n = terms[0][1].n
    if n == 0:
        return Estimate(note=UNDEFINED)
    figures = [weight * float(statistic(sample.totals)) for weight, sample in terms]
    value = math.fsum(figures)
    if math.isnan(value):
        return Estimate(n=n, note=UNDEFINED)
    if n < 2:
        return Estimate(value=value, n=n, note=TOO_FEW)
    strata = strata_of(terms, statistic)
    if strata is None:
        return Estimate(value=value, n=n, note=FRAGILE)
    variances = [
        float((len(s) - 1) / len(s) * np.square(s - s.mean()).sum()) for s in strata
    ]
    variance = math.fsum(variances)
    se = math.sqrt(variance)
    if se <= ROUNDING * math.fsum(map(abs, figures)):
        return Estimate(value=value, se=0.0, n=n, note=FLAT)
    df = 1 / math.fsum(
        (v / variance) ** 2 / (len(s) - 1)
        for v, s in zip(variances, strata, strict=True)
    )
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * se
    low, high = max(value - half, bounds[0]), min(value + half, bounds[1])
    return Estimate(value=value, se=se, df=df, low=low, high=high, n=n)


def strata_of(
    terms: Sequence[tuple[float, Sample]], statistic: Statistic
) -> list[Array] | None:
    """Return the sum over ``terms`` of :func:`left_out`; ``None`` where one fact is all that defines it."""
    by_term = [
        [weight * part for part in left_out(sample, statistic)]
        for weight, sample in terms
    ]
    strata = [np.sum(parts, axis=0) for parts in zip(*by_term, strict=True)]
    return None if any(np.isnan(stratum).any() for stratum in strata) else strata


@functools.lru_cache(maxsize=8)
def left_out(sample: Sample, statistic: Statistic) -> list[Array]:
    """Return the statistic without each fact in turn: one array a stratum, one value a fact."""
    whole = list(sample.totals)
    sizes = [len(facts) for facts in sample.facts]
    # No fact occurs in several rows.
    if sum(sizes) == sample.n and min(sizes) > 1:
        strata = []
        for case, values in enumerate(sample.values):
            totals, n = whole[case]
            without = [*whole]
            # The case's other facts stand in for the one left out. Were the case merely smaller, a figure
            # over the pooled facts of several would have ((n - 1) / n)^2 of its variance.
            more = float(n) / (float(n) - 1)
            without[case] = ((totals - values) * more, np.full(len(values), float(n)))
            strata.append(np.broadcast_to(statistic(without), (len(values),)))
        return strata
    without = []
    for (totals, n), values, rows in zip(
        whole, sample.values, sample.clusters, strict=True
    ):
        sums = np.zeros((sample.n, values.shape[1]))
        np.add.at(sums, rows, values)
        present = np.bincount(rows, minlength=sample.n).astype(float)
        without.append((totals - sums, n - present))
    return [np.broadcast_to(statistic(without), (sample.n,))]


def bootstrap_rows(statistic: Callable[[Array], Array], n: int) -> tuple[float, float]:
    """Return the percentile interval (Efron 1979) of a statistic of ``n`` facts, from seeded draws.

    It need be no function of column totals. ``statistic`` takes how often each fact was drawn, shape (draws,
    n), and returns shape (draws,). Draws in which it is undefined are left out.
    """
    rng = np.random.default_rng(0)
    drawn = []
    step = max(1, _AT_ONCE // n)
    for start in range(0, _DRAWS, step):
        size = min(step, _DRAWS - start)
        counts = rng.multinomial(n, np.full(n, 1 / n), size=size).astype(float)
        drawn.append(statistic(counts))
    values = np.concatenate(drawn)
    ends = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(values[~np.isnan(values)], ends)
    return float(low), float(high)


_DRAWS = 1000
# How many counts of drawn facts are in memory at once.
_AT_ONCE = 1 << 21
# Shares below this are none.
_LEAST = 1e-6
# How far below the ratio to look where the test is undecided at the ratio itself.
_BELOW = 1e-7


def ratio_low(above: Callable[[float], float | None], ratio: float) -> float | None:
    """Return the lower end of the interval of ``ratio``: the least share that cannot be ruled out.

    ``above(share)`` is the lower end of the interval of numerator - share x denominator, ``None`` where there
    is none; a share is ruled out where that is above 0. With a t interval, as the jackknife's, this is the
    method of Fieller (1954), with the score test that of Nam and Blackwelder (2002). ``None`` where there is
    no spread to judge by.
    """
    from scipy.optimize import brentq

    least = above(_LEAST)
    if least is None or ratio <= _LEAST:
        return None
    if least <= 0:
        return 0.0
    upper, at = ratio, above(ratio)
    if at == 0:
        # Where nothing changed, the test ends at the ratio itself, and just below it there is spread.
        upper = ratio * (1 - _BELOW)
        at = above(upper)
    if at is None or at >= 0:
        return None
    return float(brentq(lambda share: above(share) or 0.0, _LEAST, upper, xtol=1e-9))
