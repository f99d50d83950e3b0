"""The names suites may use and the metrics there are: two rooms, one list."""

from __future__ import annotations

import pytest

from pytest_kbrel.catalogue.metrics import CONTROLS, OVERALL_METRICS, SLICE_METRICS
from pytest_kbrel.gates.figures import pooled_figures
from pytest_kbrel.metrics import metrics_for

PROBABILITIES = ("answered", "answer_prob", "first_prob", "squared_error")
MONITOR_COLUMNS = (
    *(
        "kept",
        "pfd",
        "ird",
        "term",
        "anchor",
        "ablated:0",
        "cell:positive:0",
        "cell:none:0",
        "cell:none:1",
    ),
    *(
        "cell:negative1:0",
        "calls:monitor",
        "calls:study",
        "tokens:monitor",
        "tokens:study",
    ),
    *("format:wp", "format:fc_pos", "format:fc_neg"),
)
RELIABILITY_COLUMNS = (
    *(
        "correct",
        "wrong",
        "uninformative",
        "consistency_correct",
        "consistency_wrong",
        "repetition",
        "none",
    ),
    *("choices", "choices_unread"),
    *(
        "unsure",
        "unparsable",
        "outdated",
        "majority",
        "shuffled_right",
        "shuffled_correct",
        "shuffled_wrong",
    ),
    *PROBABILITIES,
)
COLUMNS = {
    "monitor": MONITOR_COLUMNS,
    "head_to_tail": (
        "correct",
        "missing",
        "f1",
        "rouge_l",
        "em",
        "rules",
        "unparsable",
        "outdated",
        *PROBABILITIES,
    ),
    "reliability": RELIABILITY_COLUMNS,
}
SLICES = [
    ("monitor", "P17", "monitor"),
    ("head_to_tail", "open-tail", "head_to_tail"),
    ("reliability", "known-zero-shot", "known"),
    ("reliability", "unseen-zero-shot", "unseen"),
]


@pytest.mark.parametrize(("probe", "slice_name", "kind"), SLICES)
def test_every_name_a_gate_may_use_is_measured_in_the_same_direction_and_range(
    probe, slice_name, kind
):
    result = metrics_for(probe, slice_name, COLUMNS[probe])
    # A control is no demand: it is what other metrics are held against.
    measured = {
        metric.name: metric for metric in result if "_control_" not in metric.name
    }
    allowed = SLICE_METRICS[kind]
    assert set(allowed) == set(measured)
    for name, metric in measured.items():
        assert (name, allowed[name].better) == (name, metric.better)
        assert (name, (allowed[name].low, allowed[name].high)) == (name, metric.bounds)


@pytest.mark.parametrize("probe", ["monitor", "head_to_tail", "reliability"])
def test_every_name_an_overall_gate_may_use_is_measured(probe):
    import json

    from pytest_kbrel.resources import baselines

    blessed = json.loads(
        (baselines() / "reference" / "baseline.json").read_text(encoding="utf-8")
    )
    measured = blessed["aggregates"][f"world.kb.yaml::{probe}[overall]"]["metrics"]
    # The world has no slice of the top tenth, and no former objects.
    absent = {"accuracy_top10", "outdated"}
    assert set(OVERALL_METRICS[probe]) - absent == set(measured)


def test_the_name_a_gate_over_all_probes_may_use_is_measured():
    (figure,) = pooled_figures(2)
    metric = OVERALL_METRICS["pooled"][figure.name]
    assert (figure.name, figure.better) == (metric.name, metric.better)
    assert figure.bounds == (metric.low, metric.high)


@pytest.mark.parametrize("kind", ["known", "unseen"])
def test_every_control_has_its_metric(kind):
    measured = {
        m.name: m
        for m in metrics_for("reliability", f"{kind}-zero-shot", RELIABILITY_COLUMNS)
    }
    controls = {name for name in measured if "_control_" in name}
    assert controls == {
        name for metric in SLICE_METRICS[kind] for name in CONTROLS.get(metric, ())
    }
    for metric, names in CONTROLS.items():
        for name in set(names) & controls:
            assert (name, measured[name].better) == (name, measured[metric].better)
            assert measured[name].bounds == measured[metric].bounds
