from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pytest_kbrel.metrics.monitor import monitor_metrics, pad, pfd
from tests.metrics import value_of


def test_degrees_are_means_over_tokens_and_prompts() -> None:
    anchor = np.array([0.9, 0.5])
    frames = np.array([[0.9, 0.5], [0.5, 0.7], [1.0, 0.1]])
    assert pfd(anchor, frames) == pytest.approx(
        (0.0 + (0.4 + 0.2) / 2 + (0.1 + 0.4) / 2) / 3
    )
    assert pfd(anchor, frames[1:]) == pytest.approx((0.3 + 0.25) / 2)


@pytest.mark.parametrize(
    ("anchor", "others"),
    [
        ([0.5], [0.5]),
        ([0.5], [[[0.5]]]),
        ([[0.5]], [[0.5]]),
        (0.5, [0.5]),
        ([0.5], [[0.5, 0.5]]),
        ([], [[]]),
        ([0.5], np.empty((0, 1))),
    ],
)
def test_wrong_shapes_are_refused(anchor: list[float], others: list[float]) -> None:
    for degree_of in (pfd,):
        with pytest.raises(ValueError, match="and others of shape"):
            degree_of(anchor, others)


def test_a_shorter_run_is_filled_and_a_longer_one_cut() -> None:
    assert pad([0.5, 0.25], 4) == [0.5, 0.25, 0.0, 0.0]
    assert pad((0.5, 0.25), 1) == [0.5]


COLUMNS = (
    "kept",
    "pfd",
    "ird",
    "term",
    "anchor",
    "cell:none:0",
    "cell:none:1",
    "cell:positive:0",
)
ROWS = np.array(
    [
        [1, 0.2, 0.4, 0.3, 0.9, 1, 1, 1],
        [1, 0.0, 0.2, 0.1, 0.3, 0, 1, 1],
        [0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0],
        [1, 0.1, 0.3, 0.2, 0.8, 0, 0, 1],
    ]
)


def test_metrics_of_a_relation_by_hand() -> None:
    result = {
        metric.name: value_of(
            metric, ROWS[:, [COLUMNS.index(name) for name in metric.columns]]
        )
        for metric in monitor_metrics(COLUMNS)
    }
    cells = [1 / 3, 2 / 3, 1.0]
    assert result == pytest.approx(
        {
            "monitor": 0.6 / 2.0,
            "pfd": 0.1,
            "ird": 0.3,
            "anchor_prob": 2 / 3,
            "accuracy": 2 / 3,
            "accuracy_avg": 2 / 3,
            "accuracy_max": 1.0,
            "accuracy_min": 1 / 3,
            "accuracy_std": float(np.std(cells)),
            "accuracy_base": 1 / 3,
            "accuracy_qa": 1 / 2,
            "accuracy_positive": 1.0,
            "delta_positive": 2 / 3,
        }
    )


def test_nothing_kept_is_undefined_and_not_zero() -> None:
    for metric in monitor_metrics(COLUMNS):
        assert math.isnan(value_of(metric, np.zeros((3, len(metric.columns))))), (
            metric.name
        )
        assert metric.undefined.startswith("no fact was kept")


CELLS = tuple(
    f"cell:{name}:{r}"
    for name in ("positive", "none", "negative1", "negative2")
    for r in range(3)
)
OWN = (
    "cell:positive:0",
    "cell:none:0",
    "cell:none:1",
    "cell:none:2",
    "cell:negative1:0",
    "cell:negative2:0",
)


def of(columns: tuple[str, ...], values: np.ndarray) -> dict[str, float]:
    """The metrics of a table whose columns are all of one shape but for "kept", which is 1."""
    table = {name: values[:, number] for number, name in enumerate(columns)}
    table.setdefault("kept", np.ones(len(values)))
    return {
        metric.name: value_of(
            metric, np.stack([table[name] for name in metric.columns], axis=1)
        )
        for metric in monitor_metrics(("kept", *columns))
        if set(metric.columns) <= table.keys()
    }


right_or_wrong = arrays.arrays(
    float,
    st.tuples(st.integers(1, 8), st.just(12)),
    elements=st.sampled_from([0.0, 1.0]),
)


@given(right_or_wrong)
def test_the_mean_lies_between_the_extremes_and_the_deltas_are_differences(
    rows: np.ndarray,
) -> None:
    result = of(CELLS, rows)
    slack = 1e-12
    assert (
        result["accuracy_min"] - slack
        <= result["accuracy_avg"]
        <= result["accuracy_max"] + slack
    )
    assert result["accuracy_avg"] == pytest.approx(rows.mean())
    assert 0 <= result["accuracy_std"] <= 0.5 + slack
    assert (
        result["accuracy_std"]
        <= (result["accuracy_max"] - result["accuracy_min"]) / 2 + slack
    )
    for name in ("positive", "negative"):
        difference = result[f"accuracy_{name}"] - result["accuracy_base"]
        assert result[f"delta_{name}"] == pytest.approx(difference)


@given(right_or_wrong)
def test_tables_2_and_3_do_not_change_with_the_full_study(rows: np.ndarray) -> None:
    whole, own = of(CELLS, rows), of(OWN, rows[:, [CELLS.index(name) for name in OWN]])
    for name in ("base", "qa", "positive", "negative"):
        assert whole[f"accuracy_{name}"] == pytest.approx(own[f"accuracy_{name}"])


def test_frames_after_wrong_contexts_do_not_count_in_the_accuracy_after_them() -> None:
    rows = np.array([[float(name == "cell:negative1:1") for name in CELLS]])
    assert of(CELLS, rows)["accuracy_negative"] == 0
    assert of(CELLS, rows)["accuracy_max"] == 1


def test_the_ablated_score_is_a_ratio_of_sums_like_the_whole_one() -> None:
    frames = tuple(f"cell:none:{r}" for r in range(3))
    metric = next(
        m
        for m in monitor_metrics(("ablated:0+2", "anchor", *frames))
        if m.name == "monitor_ablated"
    )
    assert metric.columns == ("ablated:0+2", "anchor")
    assert value_of(metric, [[0.2, 0.5], [0.1, 1.0]]) == pytest.approx(0.3 / 1.5)
    whole = next(
        m
        for m in monitor_metrics(("ablated:0+1+2", "anchor", *frames))
        if m.name == "monitor_ablated"
    )
    assert math.isnan(value_of(whole, [[0.2, 0.5]]))


def test_each_form_of_answering_has_its_own_accuracy() -> None:
    result = of(
        ("format:wp", "format:fc_pos", "format:fc_neg"),
        np.array([[1.0, 1, 0], [1, 0, 0]]),
    )
    assert result == {
        "accuracy_wp": 1.0,
        "accuracy_fc_pos": 0.5,
        "accuracy_fc_neg": 0.0,
    }


def test_the_saving_is_study_by_monitor() -> None:
    """Table 8 prints 2.97 for GPU hours; in calls it is 49 / 13."""
    rows = np.array([[13.0, 49.0, 130.0, 500.0], [13.0, 49.0, 170.0, 700.0]])
    result = of(
        ("calls:monitor", "calls:study", "tokens:monitor", "tokens:study"), rows
    )
    assert result["saving_calls"] == pytest.approx(3.769, abs=5e-4)
    assert result["saving_tokens"] == pytest.approx(1200 / 300)
    assert (result["calls_monitor"], result["tokens_study"]) == (13, 600)
