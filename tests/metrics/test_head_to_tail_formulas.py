from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.head_to_tail import HEAD_TO_TAIL_METRICS, hallucination
from pytest_kbrel.suites.names import METRICS, SLICE_METRICS
from tests.golden import rows_of

COLUMNS = ("correct", "missing", "f1", "rouge_l")


def measured(rows: list[list[float]]) -> dict[str, float]:
    array = np.array(rows, dtype=float)
    return {
        metric.name: metric.of(array[:, [COLUMNS.index(name) for name in metric.columns]])
        for metric in HEAD_TO_TAIL_METRICS
    }


def test_by_hand() -> None:
    found = measured([[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0.5, 0.25], [0, 0, 0, 0]])
    assert found == pytest.approx(
        {
            "accuracy": 0.25,
            "hallucination": 0.5,
            "missing": 0.25,
            "accuracy_f1": 0.375,
            "hallucination_f1": 0.375,
            "accuracy_rouge_l": 0.3125,
            "hallucination_rouge_l": 0.4375,
        }
    )


ANSWERS = st.one_of(
    st.just([0.0, 1.0, 0.0, 0.0]),
    st.tuples(st.booleans(), st.floats(0, 1), st.floats(0, 1)).map(lambda t: [float(t[0]), 0.0, t[1], t[2]]),
)


@given(st.lists(ANSWERS, min_size=1, max_size=20))
def test_accuracy_hallucination_and_missing_make_one(rows: list[list[float]]) -> None:
    found = measured(rows)
    for score in ("", "_f1", "_rouge_l"):
        parts = (found[f"accuracy{score}"], found[f"hallucination{score}"], found["missing"])
        assert sum(parts) == pytest.approx(1)
        assert all(-1e-12 <= part <= 1 + 1e-12 for part in parts)


def test_printed_hallucination_is_what_accuracy_and_missing_leave() -> None:
    printed: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows_of("head_to_tail.csv"):
        printed.setdefault((row["model"], row["bucket"]), {})[row["metric"]] = float(row["value"])
    assert len(printed) == 14 * 4
    for figures in printed.values():
        for score in ("em", "f1", "rl", "lm"):
            left = hallucination(figures[f"a_{score}"] / 100, figures["m"] / 100)
            assert left == pytest.approx(figures[f"h_{score}"] / 100, abs=0.0015)


@pytest.mark.parametrize(
    ("probe", "slice_name", "kind"),
    [
        ("monitor", "P37", "monitor"),
        ("head_to_tail", "open-tail", "head_to_tail"),
        ("reliability", "seen-zero-shot", "seen"),
        ("reliability", "unseen-zero-shot", "unseen"),
    ],
)
def test_suites_allow_exactly_the_metrics_there_are(probe: str, slice_name: str, kind: str) -> None:
    metrics = {m.name: m for m in metrics_for(probe, slice_name, ("cell:none:0",))}
    assert metrics.keys() == SLICE_METRICS[kind].keys()
    for name, metric in metrics.items():
        assert metric.better == METRICS[name].better
        assert metric.bounds[0] >= METRICS[name].low
        assert metric.bounds[1] <= METRICS[name].high


def test_an_unknown_probe_is_named() -> None:
    with pytest.raises(ValueError, match="'guess'"):
        metrics_for("guess", "", ())
