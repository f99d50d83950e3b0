"""Edits and forgetting: shares of facts by their role, some of them among what the baseline knew.

The columns of these, ``passed`` and ``counted``, are there where there is a baseline.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.catalogue.metrics import SLICE_METRICS, SliceKind
from pytest_kbrel.metrics.base import MetricFormula, computable, mean, quotient, rate

_METRICS = (
    *(
        quotient(
            name,
            "passed",
            "counted",
            rate=True,
            vacuous=True,
            undefined="the baseline knew none of these facts, or none of what they need",
        )
        for name in ("contained", "followed", "forgotten")
    ),
    *(
        quotient(name, above, below, undefined="no fact has an old or a wrong answer")
        for name, above, below in (
            ("preferred", "preferred", "compared"),
            ("preferred_reworded", "reworded", "rewordings"),
            ("truth_ratio", "ratio", "compared"),
        )
    ),
    rate("edited", "right"),
    rate("still_old", "old"),
    rate("accuracy", "right"),
    rate("leaked", "condition"),
    rate("missing"),
    mean("rouge_l", "rouge_l"),
)


def edits_metrics(kind: SliceKind, columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the metrics of a role's table with the columns of :mod:`pytest_kbrel.probes.edits`."""
    own = (metric for metric in _METRICS if metric.name in SLICE_METRICS[kind])
    return computable(own, columns)
