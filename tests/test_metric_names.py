"""The names suites may use and the metrics there are: two rooms, one list."""

from __future__ import annotations

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.suites.names import OVERALL_METRICS, SLICE_METRICS

MONITOR_COLUMNS = ("kept", "pfd", "ird", "term", "anchor", "cell:positive:0", "cell:none:0")
SLICES = [
    ("monitor", "P17", "monitor"),
    ("head_to_tail", "open-tail", "head_to_tail"),
    ("reliability", "seen-zero-shot", "seen"),
    ("reliability", "unseen-zero-shot", "unseen"),
]


@pytest.mark.parametrize(("probe", "slice_name", "kind"), SLICES)
def test_every_name_a_gate_may_use_is_measured_in_the_same_direction_and_range(probe, slice_name, kind):
    measured = {metric.name: metric for metric in metrics_for(probe, slice_name, MONITOR_COLUMNS)}
    allowed = SLICE_METRICS[kind]
    assert set(allowed) == set(measured)
    for name, metric in measured.items():
        assert (name, allowed[name].better) == (name, metric.better)
        assert (name, (allowed[name].low, allowed[name].high)) == (name, metric.bounds)


@pytest.mark.parametrize("probe", ["monitor", "head_to_tail", "reliability"])
def test_every_name_an_overall_gate_may_use_is_measured(probe):
    import json

    from pytest_kbrel.bundled import baselines

    blessed = json.loads((baselines() / "reference" / "baseline.json").read_text(encoding="utf-8"))
    measured = blessed["aggregates"][f"world.kb.yaml::{probe}[overall]"]["metrics"]
    assert set(OVERALL_METRICS[probe]) == set(measured)
