from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics.monitor import degree, ird, monitor_metrics, pad, pfd
from tests.golden import rows_of


@pytest.mark.parametrize(
    ("anchor", "framing", "negative", "expected"),
    [
        # BLOOMZ-3b and Vicuna-7b in Table 7: one fact, one frame, one negative context.
        (0.761, 0.527, 0.411, (0.234, 0.350, 0.29391, 0.38622)),
        (0.928, 0.849, 0.622, (0.079, 0.306, 0.20335, 0.21912)),
    ],
)
def test_the_example_of_table_7(
    anchor: float, framing: float, negative: float, expected: tuple[float, ...]
) -> None:
    framed, interfered = pfd([anchor], [[framing]]), ird([anchor], [[negative]])
    term = degree(framed, interfered)
    found = (framed, interfered, term, term / anchor)
    assert found == pytest.approx(expected, abs=6e-6)


def test_degrees_are_means_over_tokens_and_prompts() -> None:
    anchor = np.array([0.9, 0.5])
    frames = np.array([[0.9, 0.5], [0.5, 0.7], [1.0, 0.1]])
    assert pfd(anchor, frames) == pytest.approx((0.0 + (0.4 + 0.2) / 2 + (0.1 + 0.4) / 2) / 3)
    assert ird(anchor, frames[1:]) == pytest.approx((0.3 + 0.25) / 2)


@pytest.mark.parametrize(
    ("anchor", "others"),
    [([0.5], [0.5]), ([0.5], [[0.5, 0.5]]), ([], [[]]), ([0.5], np.empty((0, 1)))],
)
def test_wrong_shapes_are_refused(anchor: list[float], others: list[float]) -> None:
    with pytest.raises(ValueError, match="shape"):
        pfd(anchor, others)


def test_a_shorter_run_is_filled_and_a_longer_one_cut() -> None:
    assert pad([0.5, 0.25], 4) == [0.5, 0.25, 0.0, 0.0]
    assert pad((0.5, 0.25), 1) == [0.5]


COLUMNS = ("kept", "pfd", "ird", "term", "anchor", "cell:none:0", "cell:none:1", "cell:positive:0")
ROWS = np.array(
    [
        [1, 0.2, 0.4, 0.3, 0.9, 1, 1, 1],
        [1, 0.0, 0.2, 0.1, 0.3, 0, 1, 1],
        [0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0],
        [1, 0.1, 0.3, 0.2, 0.8, 0, 0, 1],
    ]
)


def test_metrics_of_a_relation_by_hand() -> None:
    found = {
        metric.name: metric.of(ROWS[:, [COLUMNS.index(name) for name in metric.columns]])
        for metric in monitor_metrics(COLUMNS)
    }
    cells = [1 / 3, 2 / 3, 1.0]
    assert found == pytest.approx(
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
        }
    )


def test_nothing_kept_is_undefined_and_not_zero() -> None:
    for metric in monitor_metrics(COLUMNS):
        assert math.isnan(metric.of(np.zeros((3, len(metric.columns))))), metric.name
        assert metric.undefined.startswith("no fact was kept")


def test_published_overall_scores_are_twenty_of_twenty_one_macro_means() -> None:
    rows = rows_of("monitor.csv")
    for model in {row["model"] for row in rows}:
        by = {row["relation"]: float(row["monitor"]) for row in rows if row["model"] == model}
        overall = by.pop("ALL20")
        assert len(by) == 20
        assert overall == pytest.approx(20 / 21 * np.mean(list(by.values())), abs=6e-4)
