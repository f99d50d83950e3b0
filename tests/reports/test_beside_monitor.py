"""Wherever a figure of MONITOR is printed, accuracy and anchor probability stand beside it."""

from dataclasses import replace

import pytest

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.probes import MONITOR
from pytest_kbrel.records import GateResult, MetricValue
from pytest_kbrel.reports.terminal import terminal_lines

FIGURES = {
    "monitor": 0.16,
    "pfd": 0.02,
    "ird": 0.03,
    "anchor_prob": 0.25,
    "accuracy": 0.125,
}
MORE = {**FIGURES, "accuracy_max": 0.5, "monitor_ablated": 0.17}


def figures(deltas=None):
    return tuple(
        MetricValue(
            name=name,
            better="lower"
            if name in ("monitor", "pfd", "ird", "monitor_ablated")
            else "higher",
            value=value,
            n=120,
            delta=(deltas or {}).get(name),
        )
        for name, value in MORE.items()
    )


def gate(verdict="fail", metric="monitor", **more):
    given = {
        "metric": metric,
        "rule": "max",
        "bound": 0.1,
        "verdict": verdict,
        "reasons": (),
        **more,
    }
    return GateResult(**given)


@pytest.fixture
def run(small_run, make_case):
    # A gate brings a column of its own.
    sliced = make_case(
        "monitor", "P36", "fail", figures(), gates=(gate(metric="monitor_ablated"),)
    )
    overall = make_case(
        "monitor", "overall", "pass", figures(), gates=(gate("pass"),), aggregate=True
    )
    return replace(small_run, cases=(sliced, overall))


@pytest.mark.parametrize("width", range(20, 101))
def test_no_table_of_the_terminal_is_too_narrow_for_them(run, width):
    lines = [text for text, _ in terminal_lines(run, width=width, verbosity=1)]
    (head,) = (line.split() for line in lines if line.split()[:1] == ["slice"])
    names = [name.rstrip("↑↓…") for name in head]
    shown = set(names) & {"monitor", "pfd", "ird", "monitor_ablated"}
    assert not shown or set(BESIDE["monitor"]) <= set(names)
    if width == 100:
        assert names == ["slice", "n", *FIGURES, "monitor_ablated", "verdict"]


def test_key_metrics_of_monitor_hold_them():
    assert set(BESIDE["monitor"]) < set(MONITOR.headlines)
