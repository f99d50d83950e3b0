"""The papers' formulas on plain arrays, one file a paper."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.metrics.base import Metric
from pytest_kbrel.metrics.head_to_tail import head_to_tail_metrics
from pytest_kbrel.metrics.monitor import monitor_metrics
from pytest_kbrel.metrics.reliability import reliability_metrics
from pytest_kbrel.records import slice_kind

__all__ = ["Metric", "metrics_for"]


def metrics_for(probe: str, slice_name: str, columns: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics of a table with ``columns`` that ``probe`` made of the slice ``slice_name``.

    Raises ``ValueError`` on an unknown probe.
    """
    if probe == "monitor":
        return monitor_metrics(columns)
    if probe == "head_to_tail":
        return head_to_tail_metrics(columns)
    if probe == "reliability":
        return reliability_metrics(slice_kind(slice_name), columns)
    raise ValueError(f"unknown probe {probe!r}; known: monitor, head_to_tail, reliability")
