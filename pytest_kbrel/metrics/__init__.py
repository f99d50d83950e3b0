"""The papers' formulas on plain arrays, one file a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pytest_kbrel.catalogue.metrics import SliceKind
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.metrics.base import MetricFormula
from pytest_kbrel.metrics.edits import edits_metrics
from pytest_kbrel.metrics.head_to_tail import head_to_tail_metrics
from pytest_kbrel.metrics.monitor import monitor_metrics
from pytest_kbrel.metrics.reliability import reliability_metrics
from pytest_kbrel.records import ProbeName

# The formulas of a table with some columns, by the kind of slice that it was made of.
FORMULAS: Mapping[
    ProbeName, Callable[[SliceKind, Sequence[str]], tuple[MetricFormula, ...]]
] = {
    "monitor": lambda kind, columns: monitor_metrics(columns),
    "head_to_tail": lambda kind, columns: head_to_tail_metrics(columns),
    "questions": lambda kind, columns: head_to_tail_metrics(columns),
    "reliability": reliability_metrics,
    "edits": edits_metrics,
}


def metrics_for(
    probe: str, slice_name: str, columns: Sequence[str]
) -> tuple[MetricFormula, ...]:
    """Return the metrics of a table with ``columns`` that ``probe`` made of the slice ``slice_name``."""
    of_probe = probe_named(probe)
    assert of_probe is not None, probe
    return FORMULAS[of_probe.name](of_probe.kind(slice_name), columns)
