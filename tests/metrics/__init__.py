"""The metric of some rows alone, for tests of formulas."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pytest_kbrel.metrics import MetricFormula


def value_of(metric: MetricFormula, rows: npt.ArrayLike) -> float:
    """Return the metric of ``rows``, shape (facts, k) with the metric's own columns; nan if undefined."""
    values = np.asarray(rows, dtype=float).reshape(-1, len(metric.columns))
    if metric.of_rows is None:
        return float(metric.formula(values.sum(axis=0), np.asarray(float(len(values)))))
    ones = np.ones(len(values))
    return float(metric.of_rows(values, ones)) if len(values) else math.nan
