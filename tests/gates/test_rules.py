"""What a judgement says where there is little to go by: nothing measured, one fact, no spread, a paper."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from pytest_kbrel.gates import decide
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import measure_figures
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.base import mean, quotient
from pytest_kbrel.records import GateResult, Table
from tests.gates.tables import (
    HEAD_TO_TAIL,
    MONITOR,
    answers,
    case,
    decided,
    gate,
    measure,
    only,
    outcome,
)


def judged(
    metric: str, rule: Any, bound: float, after: Table, before: Table, **more: Any
) -> GateResult:
    return only(decided(case(gate(metric, rule, bound)), after, before, **more))


def test_a_metric_that_is_not_there_is_told_with_those_that_are() -> None:
    figures = figures_of(
        [
            mean(name, "correct", better="higher")
            for name in ("accuracy", "missing", "f1")
        ]
    )
    (actual,) = decide(
        [gate("acuracy", "min", 0.5)],
        measure_figures(figures, (answers("++"),), ()),
    )
    assert (actual.verdict, actual.reason) == (
        "invalid",
        "no metric 'acuracy' was measured; did you mean 'accuracy'?; there are accuracy, missing, f1",
    )


CONTROLS = [f"wr_control_{name}" for name in ("a", "b")]


def against_controls(better: Any, own: float, *controls: float | None) -> GateResult:
    """Judge ``above_control`` over three facts; a control without a value is undefined."""
    columns = ("c", "one", *CONTROLS, *(f"n_{name}" for name in CONTROLS))
    values = (
        own,
        1.0,
        *(of or 0.0 for of in controls),
        *(float(of is not None) for of in controls),
    )
    rows = tuple(outcome(f"Q{at}", values, "correct") for at in range(3))
    metrics = [
        quotient("wr", "c", "one", better=better),
        *(
            quotient(
                name, name, f"n_{name}", better=better, undefined=f"{name} is not there"
            )
            for name in CONTROLS[: len(controls)]
        ),
    ]
    measured = measure_figures(
        figures_of(metrics), (Table(columns=columns, rows=rows),), ()
    )
    (actual,) = decide([gate("wr", "above_control", 0.25)], measured)
    return actual


def test_a_value_is_held_against_the_best_of_the_controls_that_have_one() -> None:
    rows = [
        (
            "higher",
            0.5,
            (0.0, 0.25),
            "pass",
            "over 3 facts, 0.250 above its control wr_control_b, 0.250",
        ),
        (
            "higher",
            0.25,
            (0.0, None),
            "pass",
            "over 3 facts, 0.250 above its control wr_control_a, 0.000",
        ),
        (
            "higher",
            0.0,
            (0.5, 0.25),
            "fail",
            "over 3 facts, -0.500 above its control wr_control_a, 0.500",
        ),
        (
            "lower",
            0.0,
            (0.25, 0.75),
            "pass",
            "over 3 facts, 0.250 below its control wr_control_a, 0.250",
        ),
        (
            "lower",
            0.5,
            (0.0, 0.25),
            "fail",
            "over 3 facts, -0.500 below its control wr_control_a, 0.000",
        ),
    ]
    for better, own, controls, verdict, said in rows:
        actual = against_controls(better, own, *controls)
        # Where all facts are alike an interval stands behind each value.
        plain = re.sub(r" \[[^]]*\]", "", actual.reason)
        assert (actual.verdict, plain) == (
            verdict,
            f"wr is {own:.3f} {said}; allowed: at least 0.250",
        )


def test_without_a_value_of_its_own_or_of_a_control_nothing_can_be_said() -> None:
    nothing = against_controls("higher", 0.5, None, None)
    assert (nothing.verdict, nothing.reason) == (
        "inconclusive",
        "wr has no control to compare with: wr_control_a is not there; allowed: at least 0.250",
    )
    metrics = [
        quotient(
            "wr", "missing", "missing", better="higher", undefined="nothing is missing"
        )
    ]
    measured = measure_figures(figures_of(metrics), (answers("++"),), ())
    for vacuous, verdict in ((False, "fail"), (True, "inconclusive")):
        (one,) = measured.figures
        figure = dataclasses.replace(one.figure, vacuous=vacuous)
        known = dataclasses.replace(
            measured, figures=(dataclasses.replace(one, figure=figure),)
        )
        (actual,) = decide([gate("wr", "above_control", 0.25)], known)
        assert (actual.verdict, actual.reason) == (
            verdict,
            "wr is undefined: nothing is missing; allowed: at least 0.250",
        )


def test_what_the_baseline_has_not_measured_is_told() -> None:
    old = Table(
        columns=HEAD_TO_TAIL[:2],
        rows=tuple(outcome(f"Q00{at}", (1, 0), "correct") for at in range(2)),
    )
    for rule in ("max_drop", "recovery"):
        actual = judged("accuracy_f1", rule, 0.9, answers("++"), old)
        assert (actual.verdict, actual.observed) == ("not comparable", None)
        assert actual.reason.startswith(
            "the baseline has not measured what accuracy_f1 needs: bless all suites anew; allowed: "
        )


def test_as_many_facts_as_are_said_to_decide_do_decide() -> None:
    """A twentieth of the facts is lost: 0.8 of 0.85 is above nine tenths, and over 240 facts surely so."""
    after, before = "+" * 16 + "-" * 4, "+" * 17 + "-" * 3
    actual = {
        times: judged(
            "accuracy", "recovery", 0.9, answers(after * times), answers(before * times)
        )
        for times in (1, 11, 12)
    }
    assert [actual[times].verdict for times in (1, 11, 12)] == [
        "inconclusive",
        "inconclusive",
        "pass",
    ]
    for times in (1, 11):
        assert (
            "; about 240 facts would decide, were the difference the same"
            in actual[times].reason
        )


def anchored(*rows: tuple[float, float, float], shift: float = 0.0) -> Table:
    """A table of MONITOR: the term, the anchor and whether the base answer is right, one row a fact."""
    return Table(
        columns=MONITOR,
        rows=tuple(
            outcome(
                f"Q{at}", (1, term, term, term, anchor + shift, right, 1), "correct"
            )
            for at, (term, anchor, right) in enumerate(rows)
        ),
    )


BEFORE = anchored((0.2, 0.5, 1), (0.3, 0.7, 1))
AFTER = anchored((0.4, 0.5, 0), (0.3, 0.7, 1))


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
