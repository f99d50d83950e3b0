"""Reliable KB (arXiv 2407.13578 v1) against all that its Tables 1, 2, 9, 10 and 11 print."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics import metrics_for, reliability
from pytest_kbrel.metrics.correlations import correlate
from tests.golden import rows_of

ROWS = rows_of("reliable_kb.csv")
N = 3000
# Their printed CWR does not follow from the printed WR and C_wrong, and their NCCR follows from that CWR.
MISPRINTS = {("Gemma-Instruct", "7B", "four-shot"), ("Llama 2", "7B", "zero-shot")}
# In percentage points: so much comes from rounding one, two or three figures to the last printed digit.
ONE_ROUNDING, TWO_ROUNDINGS, THREE_ROUNDINGS = 0.0051, 0.0101, 0.0151


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


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['model']}-{row['params']}-{row['setting']}"
)
def test_formulas_agree_with_the_tables(row: dict[str, str]) -> None:
    of = shares(row)
    both = reliability.c_wrong(
        np.array(of["c_wrong_seen"]), np.array(of["c_wrong_unseen"])
    )
    assert float(both) == near(float(row["c_wrong"]), ONE_ROUNDING)
    if row["t1_avg"]:
        average = reliability.average(np.array(of["nccr"]), np.array(of["iur"]))
        assert float(average) == near(float(row["t1_avg"]), 0.06)
        assert (of["nccr"], of["iur"]) == (
            near(float(row["t1_nccr"]), 0.06),
            near(float(row["t1_iur"]), 0.06),
        )


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row['model']}-{row['params']}-{row['setting']}"
)
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
        "consistency_wrong": unseen_wrong * of["c_wrong_unseen"]
        if unseen_wrong
        else 0.0,
    }
    checked = 0
    for kind, paper, totals in (("known", "seen", seen), ("unseen", "unseen", unseen)):
        slice_name = f"{kind}-{row['setting']}"
        for metric in metrics_for("reliability", slice_name, tuple(seen)):
            if "_control_" in metric.name:
                continue
            value = float(
                metric.formula(
                    np.array([totals[c] for c in metric.columns]), np.array(float(N))
                )
            )
            name = metric.name
            column = f"c_wrong_{paper}" if name == "c_wrong" else name
            checked += 1
            if kind == "unseen" and name == "wr":
                assert value == pytest.approx(unseen_wrong / N)
            elif name == "uninformative":
                assert value == pytest.approx(seen["uninformative"] / N)
            elif math.isnan(of[column]):
                assert math.isnan(value)
            elif not (name in ("cwr", "nccr") and is_misprint(row)):
                assert value == near(float(row[column]), THREE_ROUNDINGS), name
    assert checked == 9 + 4


# Printed without the sign that the tables give them.
UNSIGNED = {("zero-shot", "nccr", "iur"), ("four-shot", "nccr", "iur")}
# 0.786 is printed as 0.78: cut, not rounded.
CUT = {("four-shot", "c_correct", "c_wrong")}


@pytest.mark.parametrize(
    "row",
    rows_of("reliable_kb_correlations.csv"),
    ids=lambda row: f"{row['setting']}-{row['x']}",
)
def test_table_2_over_the_models(row: dict[str, str]) -> None:
    place = (row["setting"], row["x"], row["y"])
    models = [shares(other) for other in ROWS if other["setting"] == row["setting"]]
    pearson, _ = correlate(
        row["x"],
        row["y"],
        [(of[row["x"]], of[row["y"]]) for of in models],
        over="models",
    )
    printed = -float(row["r"]) if place in UNSIGNED else float(row["r"])
    assert pearson.r == pytest.approx(printed, abs=0.0101 if place in CUT else 0.0051)
    assert (pearson.n, pearson.note) == (26, "")
    if place in CUT:
        assert pearson.r != pytest.approx(printed, abs=0.0051)
