"""What is promised of every metric beside its value: gates, reports and the planning of tests rely on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.catalogue.metrics import METRICS
from pytest_kbrel.metrics import MetricFormula, metrics_for
from pytest_kbrel.metrics.reliability import control_metrics
from tests.metrics import value_of

SHARE, SIGNED, HALF, AMOUNT = (0.0, 1.0), (-1.0, 1.0), (0.0, 0.5), (0.0, math.inf)
RATE = True
VACUOUS = True
FACT, KEPT = "no fact", "no fact was kept"
ANSWER = "no answer was right or wrong"
ANCHOR = "no fact was kept, or every primary anchor has probability 0"
CORRECT, WRONG, CHOICE = (
    "no correct answer",
    "no wrong answer",
    "no multiple-choice question was asked",
)
DRAWN = "no distractors were drawn by kind"

MONITOR_COLUMNS = (
    *(
        "kept",
        "pfd",
        "ird",
        "term",
        "anchor",
        "ablated:0+1",
        "format:wp",
        "format:fc_pos",
        "format:fc_neg",
    ),
    *(
        "cell:none:0",
        "cell:none:1",
        "cell:none:2",
        "cell:positive:0",
        "cell:negative1:0",
        "cell:negative2:0",
    ),
    *("calls:monitor", "calls:study", "tokens:monitor", "tokens:study"),
)
PROBABILITIES = ("answered", "answer_prob", "first_prob", "squared_error")
HEAD_TO_TAIL_COLUMNS = (
    "correct",
    "missing",
    "f1",
    "rouge_l",
    "em",
    "rules",
    "unparsable",
    *PROBABILITIES,
)
RELIABILITY_COLUMNS = (
    *("correct", "wrong", "uninformative", "consistency_correct", "consistency_wrong"),
    *("repetition", "none", "unsure", "unparsable"),
    *("choices", "choices_unread", "distractors", "distractors_written"),
    *("distractors_drawn", "distractors_alike", "distractors_length"),
    *("majority", "shuffled_right", "shuffled_correct", "shuffled_wrong"),
    *PROBABILITIES,
)
# Of each metric: the better direction, the bounds, whether it is a plain share of facts, the column that
# counts its facts, why it can be undefined, and whether it is so only where there is nothing bad to measure.
MONITOR = {
    "monitor": ("lower", AMOUNT, not RATE, "kept", ANCHOR, not VACUOUS),
    "pfd": ("lower", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "ird": ("lower", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "anchor_prob": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_avg": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_max": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_min": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_std": ("lower", HALF, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_base": ("higher", SHARE, RATE, "kept", KEPT, not VACUOUS),
    "accuracy_qa": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_positive": ("higher", SHARE, RATE, "kept", KEPT, not VACUOUS),
    "accuracy_negative": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "delta_positive": ("higher", SIGNED, not RATE, "kept", KEPT, not VACUOUS),
    "delta_negative": ("higher", SIGNED, not RATE, "kept", KEPT, not VACUOUS),
    "monitor_ablated": ("lower", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_wp": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_fc_pos": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "accuracy_fc_neg": ("higher", SHARE, not RATE, "kept", KEPT, not VACUOUS),
    "calls_monitor": ("lower", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "calls_study": ("lower", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "tokens_monitor": ("lower", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "tokens_study": ("lower", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "saving_calls": ("higher", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
    "saving_tokens": ("higher", AMOUNT, not RATE, "kept", KEPT, not VACUOUS),
}
CALIBRATION = {
    "selective_risk": ("lower", SHARE, RATE, "answered", ANSWER, VACUOUS),
    "brier": ("lower", SHARE, not RATE, "answered", ANSWER, not VACUOUS),
    "auroc": (
        "higher",
        SHARE,
        not RATE,
        "answered",
        "no right or no wrong answer",
        not VACUOUS,
    ),
    "ece": ("lower", SHARE, not RATE, "answered", ANSWER, not VACUOUS),
    "accuracy_at_80": ("higher", SHARE, not RATE, "answered", ANSWER, not VACUOUS),
    "accuracy_at_50": ("higher", SHARE, not RATE, "answered", ANSWER, not VACUOUS),
}
HEAD_TO_TAIL = CALIBRATION | {
    "accuracy": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
    "hallucination": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "missing": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "accuracy_em": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
    "hallucination_em": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "accuracy_f1": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
    "hallucination_f1": ("lower", SHARE, not RATE, "", FACT, not VACUOUS),
    "accuracy_rouge_l": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
    "hallucination_rouge_l": ("lower", SHARE, not RATE, "", FACT, not VACUOUS),
    "accuracy_rules": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
    "hallucination_rules": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "unparsable": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
}
BOTH_KINDS = {
    "wr": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "repetition": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "none": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
    "unsure": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
    "c_wrong": ("lower", SHARE, not RATE, "wrong", WRONG, VACUOUS),
    "choices_unread": ("lower", SHARE, not RATE, "choices", CHOICE, VACUOUS),
    "distractors_written": (
        "higher",
        SHARE,
        not RATE,
        "distractors",
        CHOICE,
        not VACUOUS,
    ),
    "distractors_alike": (
        "higher",
        SHARE,
        not RATE,
        "distractors_drawn",
        DRAWN,
        not VACUOUS,
    ),
    "c_wrong_control_random": ("lower", SHARE, not RATE, "wrong", WRONG, VACUOUS),
    "c_wrong_control_shuffled": ("lower", SHARE, not RATE, "wrong", WRONG, VACUOUS),
}
KNOWN = (
    BOTH_KINDS
    | CALIBRATION
    | {
        "cr": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
        "ncr": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
        "distractors_length": (
            "higher",
            SHARE,
            not RATE,
            "distractors_drawn",
            DRAWN,
            not VACUOUS,
        ),
        "uninformative": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
        "unparsable": ("lower", SHARE, RATE, "", FACT, not VACUOUS),
        "c_correct": ("higher", SHARE, not RATE, "correct", CORRECT, not VACUOUS),
        "ccr": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
        "cwr": ("lower", SHARE, not RATE, "", FACT, not VACUOUS),
        "nccr": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
        "cr_control_majority": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
        "cr_control_shuffled": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
        "ncr_control_majority": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
        "c_correct_control_random": (
            "higher",
            SHARE,
            not RATE,
            "correct",
            CORRECT,
            not VACUOUS,
        ),
        "c_correct_control_shuffled": (
            "higher",
            SHARE,
            not RATE,
            "correct",
            CORRECT,
            not VACUOUS,
        ),
        "ccr_control_majority": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
        "ccr_control_random": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
        "ccr_control_shuffled": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
        "cwr_control_random": ("lower", SHARE, not RATE, "", FACT, not VACUOUS),
        "cwr_control_shuffled": ("lower", SHARE, not RATE, "", FACT, not VACUOUS),
        "nccr_control_majority": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
        "nccr_control_random": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
        "nccr_control_shuffled": ("higher", SIGNED, not RATE, "", FACT, not VACUOUS),
    }
)
UNSEEN = BOTH_KINDS | {
    "ur": ("higher", SHARE, RATE, "", FACT, not VACUOUS),
    "iur": ("higher", SHARE, not RATE, "", FACT, not VACUOUS),
}


def all_metrics() -> dict[str, tuple[MetricFormula, ...]]:
    return {
        "monitor": metrics_for("monitor", "P19", MONITOR_COLUMNS),
        "head_to_tail": metrics_for("head_to_tail", "open-tail", HEAD_TO_TAIL_COLUMNS),
        "known": metrics_for("reliability", "known-zero-shot", RELIABILITY_COLUMNS),
        "unseen": metrics_for("reliability", "unseen-zero-shot", RELIABILITY_COLUMNS),
    }


@pytest.mark.parametrize(
    ("kind", "promised"),
    [
        ("monitor", MONITOR),
        ("head_to_tail", HEAD_TO_TAIL),
        ("known", KNOWN),
        ("unseen", UNSEEN),
    ],
)
def test_each_metric_has_its_direction_bounds_and_facts(
    kind: str, promised: dict[str, tuple[object, ...]]
) -> None:
    metrics = all_metrics()[kind]
    result = {
        m.name: (m.better, m.bounds, m.rate, m.over, m.undefined, m.vacuous)
        for m in metrics
    }
    assert len(result) == len(metrics)
    assert result == promised


def test_suites_know_of_each_metric_what_it_is() -> None:
    for metric in (metric for metrics in all_metrics().values() for metric in metrics):
        if metric.name in METRICS:
            known = METRICS[metric.name]
            assert (known.better, (known.low, known.high)) == (
                metric.better,
                metric.bounds,
            ), metric.name


def test_many_totals_at_once_have_the_values_that_each_has_alone() -> None:
    """Leaving facts out in turn gives a stack of totals, and some may have no fact left."""
    draw = np.random.default_rng(0)
    for metric in (metric for metrics in all_metrics().values() for metric in metrics):
        totals = draw.integers(0, 3, (4, 2, len(metric.columns))).astype(float)
        n = draw.integers(0, 3, (4, 2)).astype(float)
        alone = [
            [metric.formula(totals[i, j], n[i, j]) for j in range(2)] for i in range(4)
        ]
        together = metric.formula(totals, n)
        assert together.shape == (4, 2), metric.name
        assert together == pytest.approx(np.array(alone), nan_ok=True), metric.name


def test_a_relation_with_too_few_frames_for_the_ablation_says_so() -> None:
    columns = [name for name in MONITOR_COLUMNS if name != "cell:none:2"]
    metric = {m.name: m for m in metrics_for("monitor", "P19", columns)}[
        "monitor_ablated"
    ]
    assert metric.undefined == "the relation has no more frames than the ablation takes"
    result = metric.formula(np.ones((4, 2)), np.ones(4))
    assert result.shape == (4,)
    assert np.isnan(result).all()


def test_a_delta_needs_both_of_its_cells() -> None:
    columns = [name for name in MONITOR_COLUMNS if name != "cell:none:0"]
    names = {metric.name for metric in metrics_for("monitor", "P19", columns)}
    assert {"accuracy_positive", "accuracy_negative"} <= names
    assert not names & {"accuracy_base", "delta_positive", "delta_negative"}


def test_a_table_of_one_column_has_the_metrics_of_that_column() -> None:
    assert [
        metric.name
        for metric in metrics_for("reliability", "known-zero-shot", ("correct",))
    ] == ["cr"]
    assert [metric.name for metric in control_metrics(("majority",))] == [
        "cr_control_majority",
        "ncr_control_majority",
        "ccr_control_majority",
        "nccr_control_majority",
    ]


def test_rows_in_single_precision_are_added_in_double() -> None:
    metric = {
        m.name: m for m in metrics_for("head_to_tail", "x", HEAD_TO_TAIL_COLUMNS)
    }["accuracy_f1"]
    assert (
        value_of(metric, np.array([[2.0**24], [1.0]], dtype=np.float32))
        == (2**24 + 1) / 2
    )
