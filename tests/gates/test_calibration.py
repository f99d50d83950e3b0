"""Measured calibration: intervals and baselines of figures that are no functions of column totals."""

from __future__ import annotations

import dataclasses

import pytest

from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Table
from tests.gates.tables import answers, measure

MARKS = "++-+-?+--+" * 4


def rated(marks: str, shift: float = 0.0) -> Table:
    """A table of Head-to-Tail whose right answers tend to be more probable than its wrong ones."""
    table = answers(marks)
    rows = []
    for number, (mark, row) in enumerate(zip(marks, table.rows, strict=True)):
        probability = (0.9 if mark == "+" else 0.7) - (number % 7) * 0.06 - shift
        right, answered = float(mark == "+"), float(mark != "?")
        error = answered * (probability - right) ** 2
        rows.append(
            dataclasses.replace(
                row, values=(*row.values, answered, probability, probability, error)
            )
        )
    columns = (*table.columns, "answered", "answer_prob", "first_prob", "squared_error")
    return Table(columns=columns, rows=tuple(rows))


def measured(table, baseline=None):
    metrics = metrics_for("head_to_tail", "open-tail", table.columns)
    return {value.name: value for value in measure(table, metrics, baseline)}


def test_figures_are_over_the_answers_given_and_have_the_interval_that_suits_them():
    values = measured(rated(MARKS))
    for name in ("auroc", "brier", "accuracy_at_80", "selective_risk"):
        assert values[name].n == 36
        assert values[name].low < values[name].value < values[name].high
    # Draws of few facts have a larger error than the facts.
    assert (values["ece"].low, values["ece"].high) == (None, None)
    assert values["ece"].value is not None
    assert measured(rated(MARKS)) == values


def test_a_baseline_without_probabilities_is_compared_in_all_but_the_new_figures():
    before = answers(MARKS)
    values = measured(rated(MARKS), before)
    assert (values["accuracy"].delta, values["accuracy"].note) == (
        0,
        "no outcome changed",
    )
    for name in ("auroc", "ece", "brier", "accuracy_at_80", "selective_risk"):
        assert (values[name].baseline, values[name].delta) == (None, None)


def test_a_difference_in_ranks_has_no_test_and_one_in_the_brier_score_has():
    values = measured(rated(MARKS, shift=0.03), rated(MARKS))
    assert (values["auroc"].delta, values["auroc"].paired, values["auroc"].p) == (
        0,
        40,
        None,
    )
    assert values["ece"].delta > 0
    assert values["ece"].delta_low is None
    assert values["brier"].p is not None
    assert (
        values["brier"].delta_low < values["brier"].delta < values["brier"].delta_high
    )


@pytest.mark.parametrize(
    "rule", ["max_drop", "recovery", "max_regression", "min_absolute_change"]
)
@pytest.mark.parametrize("metric", ["auroc", "accuracy_at_80"])
def test_a_gate_compares_no_ranks_with_a_baseline(metric, rule):
    from pytest_kbrel.catalogue.metrics import METRICS
    from pytest_kbrel.suites.gates import as_gate

    bound = -0.1 if rule == "min_absolute_change" else 0.1
    with pytest.raises(
        ValueError,
        match=rf"'{rule}' of {metric}: .* no test .* allowed: min, or .* of brier",
    ):
        as_gate(rule, bound, METRICS[metric])
    assert as_gate("min", 0.7, METRICS[metric]) == ("min", 0.7)
    assert as_gate("max_drop", 0.1, METRICS["brier"]) == ("max_drop", 0.1)
