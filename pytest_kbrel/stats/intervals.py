"""Intervals of one figure: Wilson's score interval, of rates and of what is bounded, else the jackknife's."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_kbrel.stats.estimates import FLAT, FRAGILE, LEVEL, ROUNDING, TOO_FEW, UNDEFINED, Estimate
from pytest_kbrel.stats.samples import Sample, alone

if TYPE_CHECKING:
    from pytest_kbrel.stats.samples import Array, Statistic


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval of a rate (Wilson 1927); ``n`` > 0 trials."""
    from scipy.special import ndtri

    return _score(successes / n, n, float(ndtri((1 + level) / 2)))


def _score(rate: float, n: float, z: float) -> tuple[float, float]:
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(max(rate * (1 - rate), 0.0) / n + z * z / (4 * n * n))
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
    from scipy.special import stdtrit

    if rate and (trials := _trials(sample, statistic)) is not None:
        hits, n = trials
        if n < 2:
            value = float(hits) if n else None
            return Estimate(value=value, n=n, note=TOO_FEW if n else UNDEFINED)
        low, high = wilson(hits, n)
        return Estimate(value=hits / n, low=low, high=high, n=n)
    found = jackknife([(1.0, sample)], statistic, bounds)
    reach = bounds[1] - bounds[0]
    if found.value is None or found.se is None or not math.isfinite(reach):
        return found
    share, df = (found.value - bounds[0]) / reach, found.df or float(found.n - 1)
    trials_like = share * (1 - share) / (found.se / reach) ** 2 if found.se else float(facts or found.n)
    # Values that go beyond their bounds by rounding are at them.
    ends = _score(min(max(share, 0.0), 1.0), max(trials_like, 1.0), float(stdtrit(df, (1 + LEVEL) / 2)))
    low, high = (min(max(bounds[0] + reach * end, bounds[0]), bounds[1]) for end in ends)
    return dataclasses.replace(found, low=low, high=high)


def _trials(sample: Sample, statistic: Statistic) -> tuple[int, int] | None:
    """Return hits and tries; ``None`` unless each fact has one 0 or 1, or does not count."""
    import numpy as np

    values = alone(sample, statistic)
    counted = ~np.isnan(values)
    ids = np.array([fact for facts in sample.facts for fact in facts])[counted]
    if len(set(ids.tolist())) != len(ids) or not np.isin(values[counted], (0.0, 1.0)).all():
        return None
    return round(float(values[counted].sum())), len(ids)


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
    import numpy as np
    from scipy.special import stdtrit

    n = terms[0][1].n
    if n == 0:
        return Estimate(note=UNDEFINED)
    figures = [weight * float(statistic(sample.totals)) for weight, sample in terms]
    value = math.fsum(figures)
    if math.isnan(value):
        return Estimate(n=n, note=UNDEFINED)
    if n < 2:
        return Estimate(value=value, n=n, note=TOO_FEW)
    strata: list[Array] = [
        np.sum(parts, axis=0)
        for parts in zip(
            *([weight * left for left in _left_out(sample, statistic)] for weight, sample in terms),
            strict=True,
        )
    ]
    if any(np.isnan(stratum).any() for stratum in strata):
        return Estimate(value=value, n=n, note=FRAGILE)
    variances = [float((len(s) - 1) / len(s) * np.square(s - s.mean()).sum()) for s in strata]
    variance = math.fsum(variances)
    se = math.sqrt(variance)
    if se <= ROUNDING * math.fsum(map(abs, figures)):
        return Estimate(value=value, se=0.0, n=n, note=FLAT)
    df = 1 / math.fsum((v / variance) ** 2 / (len(s) - 1) for v, s in zip(variances, strata, strict=True))
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * se
    low, high = max(value - half, bounds[0]), min(value + half, bounds[1])
    return Estimate(value=value, se=se, df=df, low=low, high=high, n=n)


def _left_out(sample: Sample, statistic: Statistic) -> list[Array]:
    """Return the statistic without each fact in turn: one array a stratum, one value a fact."""
    import numpy as np

    whole = list(sample.totals)
    ids = [fact for facts in sample.facts for fact in facts]
    if len(set(ids)) == len(ids) and all(len(facts) > 1 for facts in sample.facts):
        strata = []
        for number, values in enumerate(sample.values):
            totals, n = whole[number]
            without = [*whole]
            # The case's other facts stand in for the one left out. Were the case merely smaller, a figure
            # over the pooled facts of several would have ((n - 1) / n)^2 of its variance.
            more = float(n) / (float(n) - 1)
            without[number] = ((totals - values) * more, np.full(len(values), float(n)))
            strata.append(np.broadcast_to(statistic(without), (len(values),)))
        return strata
    place = {fact: number for number, fact in enumerate(dict.fromkeys(ids))}
    without = []
    for (totals, n), values, facts in zip(whole, sample.values, sample.facts, strict=True):
        rows = np.array([place[fact] for fact in facts], dtype=int)
        clusters = np.zeros((len(place), values.shape[1]))
        np.add.at(clusters, rows, values)
        present = np.bincount(rows, minlength=len(place)).astype(float)
        without.append((totals - clusters, n - present))
    return [np.broadcast_to(statistic(without), (len(place),))]
