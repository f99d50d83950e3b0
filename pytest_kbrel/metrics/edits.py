"""Edits and forgetting: shares of facts by their role, some of them among what the baseline knew.

The columns of these, ``passed`` and ``counted``, are there where there is a baseline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pytest_kbrel.catalogue.metrics import SliceKind
from pytest_kbrel.metrics.base import (
    MetricFormula,
    computable,
    mean,
    quotient,
    rate,
)


def _among(name: str, undefined: str) -> MetricFormula:
    return quotient(
        name, "passed", "counted", rate=True, vacuous=True, undefined=undefined
    )


_OF_KIND: Mapping[str, tuple[MetricFormula, ...]] = {
    "edit": (
        rate("edited", "right"),
        rate("edited_first", "first"),
        rate("still_old", "old"),
    ),
    "keep": (
        _among("contained", "the baseline had none of these facts right"),
        rate("accuracy", "right"),
    ),
    "follow": (
        _among("followed", "the baseline had the needs of no fact right"),
        rate("accuracy", "right"),
    ),
    "forget": (
        _among("forgotten", "the baseline knew none of these facts"),
        rate("leaked", "condition"),
        rate("missing"),
        mean("rouge_l", "rouge_l"),
    ),
}


def edits_metrics(kind: SliceKind, columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the metrics of a role's table with the columns of :mod:`pytest_kbrel.probes.edits`."""
    return computable(_OF_KIND[kind], columns)
