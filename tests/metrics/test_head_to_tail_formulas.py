from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kbrel.metrics.head_to_tail import head_to_tail_metrics
from tests.metrics import value_of

COLUMNS = ("correct", "missing", "f1", "rouge_l", "em", "rules", "unparsable")


def measured(rows: list[list[float]]) -> dict[str, float]:
    array = np.array(rows, dtype=float)
    return {
        metric.name: value_of(
            metric, array[:, [COLUMNS.index(name) for name in metric.columns]]
        )
        for metric in head_to_tail_metrics(COLUMNS)
    }


def test_by_hand() -> None:
    right, missing = [1, 0, 1, 1, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0]
    # A judge calls it right where no rule does; one whose reply nobody could read; a wrong one.
    judged, unread, wrong = (
        [1, 0, 0.5, 0.25, 0, 0, 0],
        [0, 0, 0.5, 0.5, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 0],
    )
    result = measured([right, missing, judged, unread, wrong])
    assert result == pytest.approx(
        {
            "accuracy": 0.4,
            "hallucination": 0.2,
            "missing": 0.2,
            "accuracy_em": 0.2,
            "hallucination_em": 0.6,
            "accuracy_f1": 0.4,
            "hallucination_f1": 0.4,
            "accuracy_rouge_l": 0.35,
            "hallucination_rouge_l": 0.45,
            "accuracy_rules": 0.4,
            "hallucination_rules": 0.4,
            "unparsable": 0.2,
        }
    )


BIT = st.sampled_from([0.0, 1.0])
ANSWERS = st.one_of(
    st.just([0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
    st.tuples(
        st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]),
        st.floats(0, 1),
        st.floats(0, 1),
        BIT,
        BIT,
    ).map(lambda t: [t[0][0], 0.0, t[1], t[2], t[3], t[4], t[0][1]]),
)


@given(st.lists(ANSWERS, min_size=1, max_size=20))
def test_accuracy_hallucination_and_missing_make_one(rows: list[list[float]]) -> None:
    result = measured(rows)
    for score in ("", "_em", "_f1", "_rouge_l", "_rules"):
        parts = [
            result[f"accuracy{score}"],
            result[f"hallucination{score}"],
            result["missing"],
        ]
        parts += [] if score else [result["unparsable"]]
        assert sum(parts) == pytest.approx(1)
        assert all(-1e-12 <= part <= 1 + 1e-12 for part in parts)


def test_a_table_from_before_the_later_columns_keeps_its_metrics() -> None:
    names = [metric.name for metric in head_to_tail_metrics(COLUMNS[:4])]
    assert names == [
        "accuracy",
        "hallucination",
        "missing",
        "accuracy_f1",
        "hallucination_f1",
        "accuracy_rouge_l",
        "hallucination_rouge_l",
    ]
    hallucinated = {
        metric.name: metric for metric in head_to_tail_metrics(COLUMNS[:4])
    }["hallucination"]
    assert value_of(hallucinated, [[1, 0], [0, 1], [0, 0], [0, 0]]) == 0.5
