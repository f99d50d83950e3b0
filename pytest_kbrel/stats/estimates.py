"""Input and output of the statistics: samples of outcomes, estimates and differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

LEVEL = 0.95
FAMILY_LEVEL = 0.05
POWER = 0.8
# The normal quantile of two-sided 95 % intervals.
Z = float(ndtri((1 + LEVEL) / 2))

# A standard error below this share of the figures themselves is rounding, not spread.
ROUNDING = 1e-12

UNDEFINED = "undefined"
TOO_FEW = "n < 2"
FRAGILE = "undefined without one of the facts"
FLAT = "no spread between the facts"
UNCHANGED = "unchanged in every fact"
SIGN_TEST = "all facts of a case moved by the same amount: p by the sign test"

Array = npt.NDArray[np.float64]
Parts = Sequence[tuple[Array, Array]]
Statistic = Callable[[Parts], Array]


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
    def is_disjoint(self) -> bool:
        """True if no fact occurs in several rows."""
        return sum(map(len, self.facts)) == self.n

    @property
    def clusters(self) -> list[npt.NDArray[np.intp]]:
        """The number of each row's fact, 0 to n - 1 by first occurrence; one array a case."""
        order = dict.fromkeys(fact for ids in self.facts for fact in ids)
        numbers = {fact: number for number, fact in enumerate(order)}
        return [np.array([numbers[fact] for fact in ids], dtype=int) for ids in self.facts]

    @property
    def totals(self) -> Parts:
        """Column totals, shape (columns,), and number of rows, shape (), of each case."""
        return [(values.sum(axis=0), np.asarray(float(len(values)))) for values in self.values]


def sample(
    values: Sequence[Sequence[Sequence[float]]], facts: Sequence[tuple[str, ...]], widths: Sequence[int]
) -> Sample:
    """Return the sample of rows of numbers, their facts and the number of columns, case by case."""
    arrays = (
        np.array(rows, dtype=float).reshape(-1, width) for rows, width in zip(values, widths, strict=True)
    )
    return Sample(values=tuple(arrays), facts=tuple(facts))


def alone(sample: Sample, statistic: Statistic) -> Array:
    """Return the statistic of each row alone, those of all cases one after the other; nan where undefined."""
    single = []
    for case, values in enumerate(sample.values):
        parts = [(np.zeros(other.shape[1]), np.asarray(0.0)) for other in sample.values]
        parts[case] = (values, np.ones(len(values)))
        single.append(np.broadcast_to(statistic(parts), (len(values),)))
    return np.concatenate(single)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Candidate - baseline on the same facts.

    ``p`` is one-sided (worse), ``mde`` the drop that would be found with 80 % power. ``flips`` are the counts
    behind a difference of two rates, ``down`` being worse; ``None`` where it is no such difference.
    """

    estimate: Estimate
    p: float | None = None
    mde: float | None = None
    flips: Flips | None = None
