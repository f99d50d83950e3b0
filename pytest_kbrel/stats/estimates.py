"""Input and output of the statistics: samples of outcomes, estimates and differences."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, stdtr, stdtrit

LEVEL = 0.95
FAMILY_LEVEL = 0.05
POWER = 0.8
# A model that changes a quarter of its answers would leave nine facts alone in one run of thirteen.
FEWEST_UNLOST = 10
# The normal quantile of two-sided 95 % intervals.
Z = float(ndtri((1 + LEVEL) / 2))


# A standard error below this share of the figures themselves is rounding, not spread.
ROUNDING = 1e-12

UNDEFINED = "undefined"
TOO_FEW = "n < 2"
FRAGILE = "undefined without one of the facts"
FLAT = "no spread between the facts"
UNCHANGED = "unchanged in every fact"
ONE_CLUSTER = "all facts share one answer, so nothing says how surely they changed"

Better = Literal["higher", "lower"]
Array = npt.NDArray[np.float64]
Parts = Sequence[tuple[Array, Array]]
Statistic = Callable[[Parts], Array]


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One or more cases' outcomes: ``values[j]`` of shape (facts of case j, columns), with the facts' ids.

    Two samples are equal only if they are one object, and what is computed of a sample is computed once: its
    values must not change.
    """

    values: tuple[Array, ...]
    facts: tuple[tuple[str, ...], ...]

    @functools.cached_property
    def n(self) -> int:
        """The number of different facts."""
        return len({fact for ids in self.facts for fact in ids})

    @functools.cached_property
    def clusters(self) -> list[npt.NDArray[np.intp]]:
        """The number of each row's fact, 0 to n - 1 by first occurrence; one array a case."""
        order = dict.fromkeys(fact for ids in self.facts for fact in ids)
        numbers = {fact: number for number, fact in enumerate(order)}
        return [
            np.array([numbers[fact] for fact in ids], dtype=int) for ids in self.facts
        ]

    @functools.cached_property
    def totals(self) -> Parts:
        """Column totals, shape (columns,), and number of rows, shape (), of each case."""
        return [
            (values.sum(axis=0), np.asarray(float(len(values))))
            for values in self.values
        ]


def sample(
    values: Sequence[Sequence[Sequence[float]]],
    facts: Sequence[tuple[str, ...]],
    widths: Sequence[int],
) -> Sample:
    """Return the sample of rows of numbers, their facts and the number of columns, case by case."""
    arrays = (
        np.array(rows, dtype=float).reshape(-1, width)
        for rows, width in zip(values, widths, strict=True)
    )
    return Sample(values=tuple(arrays), facts=tuple(facts))


@functools.lru_cache(maxsize=8)
def zeros_and_ones(
    sample: Sample, statistic: Statistic
) -> tuple[list[str], Array] | None:
    """Return the facts that count in a rate, each with its 0 or 1; ``None`` unless each has just one of them."""
    single = []
    for case, values in enumerate(sample.values):
        parts = [(np.zeros(other.shape[1]), np.asarray(0.0)) for other in sample.values]
        parts[case] = (values, np.ones(len(values)))
        single.append(np.broadcast_to(statistic(parts), (len(values),)))
    values = np.concatenate(single)
    counted = ~np.isnan(values)
    ids = (fact for facts in sample.facts for fact in facts)
    facts = [fact for fact, counts in zip(ids, counted, strict=True) if counts]
    values = values[counted]
    if len(set(facts)) != len(facts) or not np.isin(values, (0.0, 1.0)).all():
        return None
    return facts, values


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two samples of the same facts in the same order, and how the candidate is compared with the baseline.

    Compared is with ``share`` of the baseline. ``bounds`` are the statistic's own. ``rate`` says that it is a
    mean of zeros and ones; where each fact has one of them before and after, the counts decide. ``facts`` is
    how many facts the statistic is over, where not over all. ``clusters`` has the cluster that a fact changes
    in; one not in it is its own. ``case_weights`` are the shares of a sample's cases in the figure, adding up
    to 1; ``None``: as many as they have facts. ``level`` is that of the interval.
    """

    candidate: Sample
    baseline: Sample
    statistic: Statistic
    share: float = 1.0
    _: KW_ONLY
    better: Better
    bounds: tuple[float, float] = (-math.inf, math.inf)
    rate: bool = False
    facts: int | None = None
    clusters: Mapping[str, str] = field(default_factory=dict)
    case_weights: tuple[float, ...] | None = None
    level: float = LEVEL

    @property
    def reach(self) -> float:
        """The largest change that the statistic can have."""
        return self.bounds[1] - self.bounds[0]

    @property
    def terms(self) -> list[tuple[float, Sample]]:
        """What the estimate is the sum of, as (weight, sample).

        It is candidate - baseline, and with a share candidate - share * baseline where higher is better,
        baseline - share * candidate where lower is.
        """
        if self.share == 1 or self.better == "higher":
            return [(1.0, self.candidate), (-self.share, self.baseline)]
        return [(-self.share, self.candidate), (1.0, self.baseline)]

    @property
    def drop_sign(self) -> float:
        """1 where the estimate is how much worse the figure got, -1 where it is how much better."""
        return 1.0 if self.share == 1 and self.better == "lower" else -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
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

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the two-sided interval of this level; infinite without a variance."""
        half = (
            math.inf
            if self.se is None
            else self.se and float(stdtrit(self.df, (1 + level) / 2)) * self.se
        )
        return self.value - half, self.value + half


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
class Flips:
    """How ``n`` facts went from before to after: ``down`` from 1 to 0, ``up`` from 0 to 1, ``both`` at 1."""

    n: int
    down: int
    up: int
    both: int

    @property
    def mirrored(self) -> Flips:
        """The same with before and after exchanged."""
        return Flips(n=self.n, down=self.up, up=self.down, both=self.both)


# The one-sided p of "it got worse by at most so much"; ``None`` where the test has none for this drop.
DropTest = Callable[[float], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Candidate - baseline on the same facts.

    ``tests`` are those of "it got worse by at most so much". ``worse`` counts the facts that made the figure
    worse. ``spread`` is the standard error, with degrees of freedom, that a test of a larger drop over as
    many facts would have; ``None`` where none is known. ``flips`` are the counts behind a
    difference of two rates, ``down`` being worse; ``None`` where it is no such difference. ``clustered`` is
    the drop over clusters of facts, where they share any.
    """

    estimate: Estimate
    tests: tuple[DropTest, ...] = ()
    worse: int = 0
    spread: tuple[float, float] | None = None
    flips: Flips | None = None
    clustered: ClusteredMean | None = None

    @property
    def p(self) -> float | None:
        """The one-sided p-value of "no drop"; ``None`` where there is no test."""
        return self.p_of(0.0)

    def p_of(self, allowed: float) -> float | None:
        """Return the one-sided p-value of "worse by at most ``allowed``": the largest of all tests."""
        return max(
            (p for test in self.tests if (p := test(allowed)) is not None), default=None
        )


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
