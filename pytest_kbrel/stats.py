"""Every interval, paired test, correction and power figure.

Facts are the clusters: all that was asked about one fact is one row. Statistics are functions of column
totals (:mod:`pytest_kbrel.metrics.base`), so one delete-one-fact jackknife (Efron and Stein 1981) serves
means, ratios and composites, alone, paired and over several cases. Of a plain mean it gives exactly the t
interval, and of a paired difference of means exactly the paired t test.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = Sequence[tuple[Array, Array]]
    Statistic = Callable[[Parts], Array]

LEVEL = 0.95
FAMILY_LEVEL = 0.05
POWER = 0.8

# A standard error below this share of the figures themselves is rounding, not spread.
_ROUNDING = 1e-12

UNDEFINED = "undefined"
TOO_FEW = "n < 2"
FRAGILE = "undefined without one of the facts"
FLAT = "no spread between the facts"
UNCHANGED = "no outcome changed"
SIGN_TEST = "every fact moved by the same amount: p by the sign test"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One or more cases' outcomes: ``values[j]`` of shape (facts of case j, columns), with the facts' ids."""

    values: tuple[Array, ...]
    facts: tuple[tuple[str, ...], ...]

    @property
    def n(self) -> int:
        """The number of different facts."""
        return len({fact for ids in self.facts for fact in ids})

    @property
    def totals(self) -> Parts:
        """Column totals, shape (columns,), and number of rows, shape (), of each case."""
        import numpy as np

        return [(values.sum(axis=0), np.asarray(float(len(values)))) for values in self.values]


def sample(
    values: Sequence[Sequence[Sequence[float]]], facts: Sequence[tuple[str, ...]], widths: Sequence[int]
) -> Sample:
    """Make a sample of rows of numbers, the facts they are about, and the number of columns, case by case."""
    import numpy as np

    arrays = (
        np.array(rows, dtype=float).reshape(-1, width) for rows, width in zip(values, widths, strict=True)
    )
    return Sample(values=tuple(arrays), facts=tuple(facts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its standard error and two-sided 95 % interval; ``None`` where these cannot be had.

    ``note`` says why something is missing.
    """

    value: float | None = None
    se: float | None = None
    df: float = 0.0
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Candidate - baseline on the same facts.

    ``p`` is one-sided (worse), ``mde`` the drop that would be found with 80 % power.
    """

    estimate: Estimate
    p: float | None = None
    mde: float | None = None


def wilson(successes: float, n: float, level: float = LEVEL) -> tuple[float, float]:
    """Return Wilson's score interval of a rate (Wilson 1927); ``n`` > 0 trials."""
    from scipy.special import ndtri

    z = float(ndtri((1 + level) / 2))
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return (0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)


def sidak(comparisons: int, family: float = FAMILY_LEVEL) -> float:
    """Return the level of each of ``comparisons`` tests that keeps ``family`` for all (Šidák 1967)."""
    return -math.expm1(math.log1p(-family) / max(comparisons, 1))


def jackknife(
    terms: Sequence[tuple[float, Sample]],
    statistic: Statistic,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Estimate:
    """Estimate the weighted sum of ``statistic`` over ``terms`` (weight, sample), with a t interval.

    ``statistic`` takes (totals, n) of each case, shapes (..., k) and (...), and returns values of shape
    (...). All samples hold the same facts, and a fact is left out of all of them at once. Cases are strata
    whose variances add up (degrees of freedom after Welch and Satterthwaite), unless a fact occurs in several
    of them or a case has one fact only: then the facts of all cases form one stratum. The interval is cut at
    ``bounds``.
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
    if se <= _ROUNDING * math.fsum(map(abs, figures)):
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
            without[number] = (totals - values, np.full(len(values), float(n) - 1))
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


def paired_difference(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    *,
    better: Literal["higher", "lower"],
    alpha: float = FAMILY_LEVEL,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare two samples of the same facts in the same order; ``alpha`` is the level of this comparison.

    Where no row changed (in a way that moves the figure), the difference is exactly 0. Where every fact moved
    alike there is no spread to judge by: p then comes from the sign test, and if that is significant the
    interval says no more than the direction. ``bounds`` are the statistic's own.
    """
    import numpy as np
    from scipy.special import stdtr, stdtrit

    reach = bounds[1] - bounds[0]
    delta = jackknife([(1.0, candidate), (-1.0, baseline)], statistic, (-reach, reach))
    if delta.value is None or delta.note == TOO_FEW:
        return Difference(estimate=delta)
    n = delta.n
    equal = all(np.array_equal(a, b) for a, b in zip(candidate.values, baseline.values, strict=True))
    if equal or (delta.note == FLAT and abs(delta.value) <= _ROUNDING):
        still = Estimate(value=0.0, se=0.0, low=0.0, high=0.0, n=n, note=UNCHANGED)
        return Difference(estimate=still, p=1.0)
    drop = -delta.value if better == "higher" else delta.value
    if delta.note == FLAT:
        by_sign = 0.5**n
        low = high = None
        if by_sign < (1 - LEVEL) / 2:
            ends = (0.0, reach) if delta.value > 0 else (-reach, 0.0)
            low, high = (end if math.isfinite(end) else None for end in ends)
        flat = Estimate(value=delta.value, se=0.0, low=low, high=high, n=n, note=SIGN_TEST)
        return Difference(estimate=flat, p=by_sign if drop > 0 else 1.0)
    if delta.se is None:
        return Difference(estimate=delta)
    quantiles = float(stdtrit(delta.df, 1 - alpha)) + float(stdtrit(delta.df, POWER))
    return Difference(estimate=delta, p=float(stdtr(delta.df, -drop / delta.se)), mde=quantiles * delta.se)


def contrast(
    terms: Sequence[tuple[float, Estimate]], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Estimate the weighted sum of independent estimates (weight, estimate), as of two different samples.

    The 95 % interval recovers the variance of each from its own interval (MOVER; Zou and Donner 2008), which
    of two rates with Wilson's is Newcombe's hybrid score interval (1998, method 10). There is none where one
    of the estimates has none. ``n`` is that of the first, degrees of freedom after Welch and Satterthwaite.
    """
    from scipy.special import ndtri

    first = terms[0][1]
    if any(estimate.value is None for _, estimate in terms):
        return Estimate(n=first.n, note=UNDEFINED)
    value = math.fsum(weight * (estimate.value or 0.0) for weight, estimate in terms)
    below, above, variance, spread = 0.0, 0.0, 0.0, 0.0
    for weight, estimate in terms:
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return Estimate(value=value, n=first.n, note=estimate.note)
        ends = weight * (estimate.low - estimate.value), weight * (estimate.high - estimate.value)
        below, above = below + min(ends) ** 2, above + max(ends) ** 2
        se = estimate.se
        if se is None:
            se = (estimate.high - estimate.low) / 2 / float(ndtri((1 + LEVEL) / 2))
        variance += (weight * se) ** 2
        spread += (weight * se) ** 4 / estimate.df if estimate.df else 0.0
    return Estimate(
        value=value,
        se=math.sqrt(variance),
        df=variance**2 / spread if spread else math.inf,
        low=max(value - math.sqrt(below), bounds[0]),
        high=min(value + math.sqrt(above), bounds[1]),
        n=first.n,
    )


def unpaired_difference(
    candidate: Estimate,
    baseline: Estimate,
    *,
    better: Literal["higher", "lower"],
    alpha: float = FAMILY_LEVEL,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare two independent estimates, as :func:`paired_difference` does two samples of the same facts."""
    from scipy.special import stdtr, stdtrit

    reach = bounds[1] - bounds[0]
    candidate = _flat_within(candidate, bounds)
    delta = contrast([(1.0, candidate), (-1.0, baseline)], (-reach, reach))
    if delta.value is None or not delta.se:
        return Difference(estimate=delta)
    drop = -delta.value if better == "higher" else delta.value
    quantiles = float(stdtrit(delta.df, 1 - alpha)) + float(stdtrit(delta.df, POWER))
    return Difference(estimate=delta, p=float(stdtr(delta.df, -drop / delta.se)), mde=quantiles * delta.se)


def _flat_within(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Give an estimate without spread the widest interval that facts all alike allow.

    Were a share q of the facts different, n of them would all be alike with probability (1 - q)^n; at 5 %
    that is the "rule of three", q about 3 / n (Hanley and Lippman-Hand 1983). A fact moves the figure by no
    more than its reach.
    """
    from scipy.special import ndtri

    reach = bounds[1] - bounds[0]
    if estimate.note != FLAT or estimate.value is None or not math.isfinite(reach):
        return estimate
    margin = reach * (1 - (1 - LEVEL) ** (1 / estimate.n))
    return dataclasses.replace(
        estimate,
        se=margin / float(ndtri((1 + LEVEL) / 2)),
        df=max(estimate.n - 1, 1),
        low=max(estimate.value - margin, bounds[0]),
        high=min(estimate.value + margin, bounds[1]),
    )


def facts_needed(distance: float, se: float, n: int, alpha: float) -> int | None:
    """Return how many facts put ``distance`` outside a one-sided interval of level ``alpha``.

    ``se`` is the standard error over ``n`` facts; ``None`` when no number of facts below a million would do.
    """
    from scipy.special import ndtri

    if distance <= 0:
        return None
    needed = n * (float(ndtri(1 - alpha)) * se / distance) ** 2
    return max(math.ceil(needed), n + 1) if needed < 1e6 else None
