"""Metrics as functions of column totals over facts.

Every metric of the three papers is one, means and ratios of means alike. That gives the jackknife and the
bootstrap for nothing: leaving a fact out means subtracting its row from the totals. Those that depend on the
order of the facts are functions of their rows instead, and have at most a bootstrap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_kbrel.catalogue.metrics import ALL_METRICS, Better
from pytest_kbrel.records import record

Array = npt.NDArray[np.float64]
Formula = Callable[[Array, Array], Array]
RowStatistic = Callable[[Array, Array], Array]


@record
class MetricTraits:
    """What is to know of a metric beside its formula.

    ``undefined`` says in words why it may be undefined. ``rate`` marks a plain mean of zeros and ones, over
    the facts counted in the column ``over`` (empty: over all). ``bounds`` are the lowest and highest value
    possible. ``vacuous`` marks a metric that is undefined only where there is nothing bad to measure
    (consistency of wrong answers without any). ``of_rows(rows, weights)`` stands in place of a formula where
    the metric is no function of totals: it takes rows, shape (facts, k), with how often each counts, shape
    (..., facts). ``has_interval`` says whether a bootstrap over facts is an interval of it.
    """

    name: str
    better: Better
    bounds: tuple[float, float] = (0.0, 1.0)
    rate: bool = False
    over: str = ""
    undefined: str = "no fact"
    vacuous: bool = False
    of_rows: RowStatistic | None = None
    has_interval: bool = True


@record
class MetricFormula(MetricTraits):
    """One metric on outcome tables.

    ``formula(totals, n)`` takes sums of ``columns`` over facts, shape (..., k), and the number of facts,
    shape (...), and returns values of shape (...), nan where undefined.
    """

    columns: tuple[str, ...]
    formula: Formula


def ratio(above: Array, below: Array) -> Array:
    """Return ``above / below`` elementwise, nan where ``below`` is 0."""
    quotients = np.full(np.broadcast(above, below).shape, math.nan)
    np.divide(above, below, out=quotients, where=below != 0)
    return quotients


def formula(
    name: str, columns: tuple[str, ...], function: Formula, **more: Any
) -> MetricFormula:
    """Return a metric's formula, with direction and bounds from the catalogue; ``more`` are other fields."""
    if metric := ALL_METRICS.get(name):
        bounds = float(metric.low), float(metric.high)
        more = {"better": metric.better, "bounds": bounds} | more
    return MetricFormula(name=name, columns=columns, formula=function, **more)


def mean(name: str, column: str, **more: Any) -> MetricFormula:
    """Return the metric "mean of ``column`` over all facts"; ``more`` as in :func:`formula`."""
    return formula(name, (column,), lambda t, n: ratio(t[..., 0], n), **more)


def rate(name: str, column: str = "") -> MetricFormula:
    """Return the mean of a column of zeros and ones, by default the one of the metric's name."""
    return mean(name, column or name, rate=True)


def quotient(name: str, above: str, below: str, **more: Any) -> MetricFormula:
    """Return the metric "sum of ``above`` / sum of ``below``"; ``more`` as in :func:`formula`.

    It is over the facts that ``below`` counts, unless ``more`` says otherwise.
    """
    return formula(
        name,
        (above, below),
        lambda t, n: ratio(t[..., 0], t[..., 1]),
        **{"over": below, **more},
    )


def difference(
    name: str, plus: str, minus: str, divisor: int = 1, **more: Any
) -> MetricFormula:
    """Return the metric "(mean of ``plus`` - mean of ``minus``) / ``divisor``", both means over all facts."""
    return formula(
        name,
        (plus, minus),
        lambda t, n: ratio((t[..., 0] - t[..., 1]) / divisor, n),
        **more,
    )


def computable(
    metrics: Iterable[MetricFormula], columns: Iterable[str]
) -> tuple[MetricFormula, ...]:
    """Return the metrics whose columns a table with ``columns`` has."""
    present = set(columns)
    return tuple(metric for metric in metrics if present.issuperset(metric.columns))
