"""Calibration of probabilities: worked examples, scikit-learn's figures, and weights as repeated facts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics.calibration import (
    accuracy_at,
    auroc,
    calibration_metrics,
    ece,
)
from tests.metrics import value_of

# Answered, correct, probability: the most probable answer is right, the least probable one wrong.
ROWS = np.array([[1, 1, 0.9], [1, 0, 0.8], [1, 1, 0.6], [1, 0, 0.2], [0, 0, 0.99]])
ONES = np.ones(len(ROWS))
COLUMNS = ("correct", "answered", "answer_prob", "first_prob", "squared_error")


def of(name, rows):
    """The metric of rows of (answered, correct, probability)."""
    (metric,) = [
        metric for metric in calibration_metrics(COLUMNS) if metric.name == name
    ]
    values = {
        "answered": rows[:, 0],
        "correct": rows[:, 1],
        "answer_prob": rows[:, 2],
        "squared_error": rows[:, 0] * (rows[:, 2] - rows[:, 1]) ** 2,
    }
    return value_of(
        metric, np.stack([values[column] for column in metric.columns], axis=1)
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # Of the four pairs of a right and a wrong answer only (0.6, 0.8) is in the wrong order.
        ("auroc", 3 / 4),
        # Bins (.8, .9], (.7, .8], (.5, .6] and (.1, .2]: one answer each.
        ("ece", (0.1 + 0.8 + 0.4 + 0.2) / 4),
        ("brier", (0.01 + 0.64 + 0.16 + 0.04) / 4),
        # 3.2 of 4 answers: the first three, two of which are right, and a fifth of the last.
        ("accuracy_at_80", 2 / 3.2),
        ("accuracy_at_50", 1 / 2),
        ("selective_risk", 2 / 4),
    ],
)
def test_a_figure_is_over_the_answers_that_were_right_or_wrong(name, value):
    assert of(name, ROWS) == pytest.approx(value)


def test_equal_probabilities_tell_nothing_apart():
    rows = np.array([[1, 1, 0.5], [1, 0, 0.5], [1, 0, 0.5], [1, 0, 0.5]])
    assert of("auroc", rows) == 0.5
    # Whichever of them are drawn: a quarter is right.
    assert of("accuracy_at_50", rows) == of("accuracy_at_80", rows) == 0.25
    assert of("ece", rows) == 0.25


@pytest.mark.parametrize("edge", [number / 10 for number in range(1, 11)])
def test_a_probability_on_an_edge_belongs_to_the_bin_below_it(edge):
    # In one bin their errors cancel out, in two they add up.
    beside = edge - 0.05
    rows = np.array([[1, 1, edge], [1, 0, beside]])
    assert of("ece", rows) == pytest.approx(abs(edge + beside - 1) / 2)


def test_without_answers_a_figure_is_undefined():
    nothing = np.array([[0, 0, 0.9], [0, 0, 0.2]])
    assert all(
        math.isnan(of(metric.name, nothing)) for metric in calibration_metrics(COLUMNS)
    )
    assert math.isnan(of("auroc", ROWS[[0, 2]]))
    assert math.isnan(of("auroc", ROWS[[1, 3]]))


@pytest.mark.parametrize("statistic", [auroc, ece, accuracy_at(0.8), accuracy_at(0.5)])
def test_a_weight_counts_a_fact_so_often(statistic):
    rng = np.random.default_rng(1)
    rows = (
        np.stack(
            [rng.random(60) < 0.8, rng.random(60) < 0.5, rng.random(60).round(1)],
            axis=1,
        )
        * 1.0
    )
    counts = rng.multinomial(60, np.full(60, 1 / 60), size=5).astype(float)
    repeated = [rows[np.repeat(np.arange(60), one.astype(int))] for one in counts]
    assert statistic(rows, counts) == pytest.approx(
        [float(statistic(one, np.ones(len(one)))) for one in repeated]
    )


def test_a_table_without_probabilities_has_the_selective_risk_only():
    assert [metric.name for metric in calibration_metrics(("correct", "answered"))] == [
        "selective_risk"
    ]
    assert calibration_metrics(("correct", "missing")) == ()


@pytest.mark.parametrize("seed", range(5))
def test_figures_are_those_of_scikit_learn(seed):
    pytest.importorskip("sklearn")
    from sklearn.calibration import calibration_curve
    from sklearn.metrics import brier_score_loss, roc_auc_score

    rng = np.random.default_rng(seed)
    probability = rng.random(150).round(1 if seed % 2 else 6)
    correct = (rng.random(150) < probability**2).astype(float)
    rows = np.stack([np.ones(150), correct, probability], axis=1)
    assert of("auroc", rows) == pytest.approx(roc_auc_score(correct, probability))
    assert of("brier", rows) == pytest.approx(brier_score_loss(correct, probability))
    right, mean = calibration_curve(correct, probability, n_bins=10)
    inner = np.linspace(0, 1, 11)[1:-1]
    counts = np.bincount(np.searchsorted(inner, probability), minlength=10)
    sizes = counts[counts > 0]
    assert of("ece", rows) == pytest.approx((sizes * np.abs(right - mean)).sum() / 150)
