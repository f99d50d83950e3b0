from __future__ import annotations

import math

import pytest

from pytest_kbrel.metrics.reliability import reliability_metrics
from tests.metrics import value_of

COLUMNS = (
    *(
        "correct",
        "wrong",
        "uninformative",
        "consistency_correct",
        "consistency_wrong",
        "majority",
    ),
    *("shuffled_right", "shuffled_correct", "shuffled_wrong"),
)
# Four facts: two right (once consistent, once half), one wrong, one "unsure"; the majority is right once.
ROWS = (
    {
        "correct": 1,
        "consistency_correct": 1.0,
        "majority": 1,
        "shuffled_right": 1,
        "shuffled_correct": 0.5,
    },
    {"correct": 1, "consistency_correct": 0.5, "shuffled_correct": 0.25},
    {"wrong": 1, "consistency_wrong": 1.0, "shuffled_wrong": 0.25},
    {"uninformative": 1},
)


def measured(
    kind: str, columns: tuple[str, ...] = COLUMNS, rows=ROWS
) -> dict[str, float]:
    return {
        metric.name: value_of(
            metric, [[row.get(column, 0) for column in metric.columns] for row in rows]
        )
        for metric in reliability_metrics(kind, columns)  # type: ignore[arg-type]
        if "_control_" in metric.name
    }


def test_by_hand() -> None:
    assert measured("known") == pytest.approx(
        {
            "cr_control_majority": 1 / 4,
            "cr_control_shuffled": 1 / 4,
            "ncr_control_majority": 1 / 4 - 3 / 4,
            "c_correct_control_random": 1 / 5,
            "c_correct_control_shuffled": 0.75 / 2,
            "c_wrong_control_random": 1 / 5,
            "c_wrong_control_shuffled": 0.25,
            # Two of four are right, and each is picked again once in five.
            "ccr_control_majority": 1 / 4,
            "ccr_control_random": 2 / 4 / 5,
            "ccr_control_shuffled": 0.75 / 4,
            "cwr_control_random": 1 / 4 / 5,
            "cwr_control_shuffled": 0.25 / 4,
            "nccr_control_majority": 1 / 4 - 3 / 4,
            "nccr_control_random": (2 - 1) / 4 / 5,
            "nccr_control_shuffled": (0.75 - 0.25) / 4,
        }
    )


def test_unseen_knowledge_has_those_of_wrong_answers() -> None:
    assert set(measured("unseen")) == {
        "c_wrong_control_random",
        "c_wrong_control_shuffled",
    }


def test_what_was_not_asked_is_not_measured() -> None:
    names = measured("known", COLUMNS[:6])
    assert not [name for name in names if name.endswith("shuffled")]
    assert "cr_control_majority" in names
    assert "cr_control_majority" not in measured("known", COLUMNS[:5])


def test_without_such_an_answer_there_is_no_control() -> None:
    result = measured("known", rows=({"uninformative": 1},))
    assert math.isnan(result["c_correct_control_random"])
    assert math.isnan(result["c_wrong_control_shuffled"])
    assert result["nccr_control_random"] == 0
