from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics import reliability
from pytest_kbrel.metrics.reliability import reliability_metrics, slice_kind
from tests.golden import rows_of

ROWS = rows_of("reliable_kb.csv")
N = 3000
# Their printed CWR does not follow from the printed WR and C_wrong, and their NCCR follows from that CWR.
MISPRINTS = {("Gemma-Instruct", "7B", "four-shot"), ("Llama 2", "7B", "zero-shot")}
# In percentage points: so much comes from rounding two, or three, figures to the last printed digit.
TWO_ROUNDINGS, THREE_ROUNDINGS = 0.0101, 0.0151


def shares(row: dict[str, str]) -> dict[str, float]:
    return {
        name: float(text) / 100 if text else math.nan
        for name, text in row.items()
        if name not in ("model", "params", "setting")
    }


def near(percent: float, tolerance: float) -> object:
    return pytest.approx(percent / 100, abs=tolerance / 100)


def is_misprint(row: dict[str, str]) -> bool:
    return (row["model"], row["params"], row["setting"]) in MISPRINTS


def test_all_rows_are_here() -> None:
    assert len(ROWS) == 78
    assert sum(map(is_misprint, ROWS)) == 2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['params']}-{row['setting']}")
def test_formulas_agree_with_the_tables(row: dict[str, str]) -> None:
    of = shares(row)
    assert reliability.ncr(of["cr"], of["wr"]) == near(float(row["ncr"]), TWO_ROUNDINGS)
    assert reliability.ccr(of["cr"], of["c_correct"]) == near(float(row["ccr"]), TWO_ROUNDINGS)
    cwr = reliability.cwr(of["wr"], of["c_wrong_seen"])
    assert (cwr == near(float(row["cwr"]), TWO_ROUNDINGS)) is not is_misprint(row)
    assert reliability.nccr(of["ccr"], of["cwr"]) == near(float(row["nccr"]), TWO_ROUNDINGS)
    assert reliability.iur(of["ur"], of["c_wrong_unseen"]) == near(float(row["iur"]), TWO_ROUNDINGS)
    both = reliability.c_wrong(np.array(of["c_wrong_seen"]), np.array(of["c_wrong_unseen"]))
    assert float(both) == near(float(row["c_wrong"]), 0.0051)
    if row["t1_avg"]:
        average = reliability.average(np.array(of["nccr"]), np.array(of["iur"]))
        assert float(average) == near(float(row["t1_avg"]), 0.06)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['model']}-{row['params']}-{row['setting']}")
def test_metrics_agree_with_the_tables(row: dict[str, str]) -> None:
    """The metrics themselves, on column totals that follow from the tables."""
    of = shares(row)
    correct, wrong = float(row["n_correct_seen"]), float(row["n_wrong_seen"])
    unseen_wrong = float(row["n_wrong_unseen"])
    seen = {
        "correct": correct,
        "wrong": wrong,
        "uninformative": float(row["n_uninformative_seen"]),
        "consistency_correct": correct * of["c_correct"],
        "consistency_wrong": wrong * of["c_wrong_seen"],
    }
    unseen = {
        "wrong": unseen_wrong,
        "uninformative": float(row["n_uninformative_unseen"]),
        "consistency_wrong": unseen_wrong * of["c_wrong_unseen"] if unseen_wrong else 0.0,
    }
    for kind, totals in (("seen", seen), ("unseen", unseen)):
        found = {
            metric.name: float(
                metric.formula(np.array([totals[c] for c in metric.columns]), np.array(float(N)))
            )
            for metric in reliability_metrics(kind)
        }
        for name, value in found.items():
            column = f"c_wrong_{kind}" if name == "c_wrong" else name
            if kind == "unseen" and name == "wr":
                assert value == pytest.approx(unseen_wrong / N)
            elif column not in of:
                assert (name, value) == ("uninformative", pytest.approx(seen["uninformative"] / N))
            elif math.isnan(of[column]):
                assert math.isnan(value)
            elif not (name in ("cwr", "nccr") and is_misprint(row)):
                assert value == near(float(row[column]), THREE_ROUNDINGS), name


def test_a_model_that_says_unsure_to_all_unseen_is_fully_reliable_there() -> None:
    assert reliability.iur(1.0, math.nan) == 1.0


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("seen", "seen"),
        ("unseen", "unseen"),
        ("unseen-zero-shot", "unseen"),
        ("seen-zero-shot", "seen"),
        ("nq-unseen", "unseen"),
        ("nq", "seen"),
    ],
)
def test_the_kind_of_a_slice(name: str, kind: str) -> None:
    assert slice_kind(name) == kind


@pytest.mark.parametrize(
    ("seen", "unseen", "both"),
    [(0.2, 0.4, 0.3), (0.2, math.nan, 0.2), (math.nan, 0.4, 0.4), (math.nan, math.nan, math.nan)],
)
def test_the_overall_consistency_of_wrong_answers_is_undefined_only_where_there_are_none(
    seen: float, unseen: float, both: float
) -> None:
    found = float(reliability.c_wrong(np.array(seen), np.array(unseen)))
    assert found == pytest.approx(both, nan_ok=True)
