"""What is promised of every metric beside its value: gates, reports and the planning of tests rely on it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pytest_kbrel.metrics import MetricFormula, metrics_for
from pytest_kbrel.metrics.reliability import control_metrics

BOUNDS = {
    "share": (0.0, 1.0),
    "signed": (-1.0, 1.0),
    "half": (0.0, 0.5),
    "amount": (0.0, math.inf),
}
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


def promised(table: str) -> dict[str, tuple[object, ...]]:
    """Read of each metric the better direction, the bounds, whether it is a plain share of facts, the column that
    counts these, why it can be undefined, and whether it is so only where there is nothing bad to measure."""
    fields = {}
    for line in table.strip().splitlines():
        name, better, bounds, kind, over, why = line.split(maxsplit=5)
        counted = "" if over == "facts" else over
        undefined = why.removeprefix("vacuous: ")
        vacuous = undefined != why
        fields[name] = (
            better,
            BOUNDS[bounds],
            kind == "rate",
            counted,
            undefined,
            vacuous,
        )
    return fields


MONITOR = promised("""
monitor                    lower  amount mean kept              no fact was kept, or every primary anchor has probability 0
pfd                        lower  share  mean kept              no fact was kept
ird                        lower  share  mean kept              no fact was kept
anchor_prob                higher share  mean kept              no fact was kept
accuracy                   higher share  mean kept              no fact was kept
accuracy_avg               higher share  mean kept              no fact was kept
accuracy_max               higher share  mean kept              no fact was kept
accuracy_min               higher share  mean kept              no fact was kept
accuracy_std               lower  half   mean kept              no fact was kept
accuracy_base              higher share  rate kept              no fact was kept
accuracy_qa                higher share  mean kept              no fact was kept
accuracy_positive          higher share  rate kept              no fact was kept
accuracy_negative          higher share  mean kept              no fact was kept
delta_positive             higher signed mean kept              no fact was kept
delta_negative             higher signed mean kept              no fact was kept
monitor_ablated            lower  amount mean kept              no fact was kept
accuracy_wp                higher share  mean kept              no fact was kept
accuracy_fc_pos            higher share  mean kept              no fact was kept
accuracy_fc_neg            higher share  mean kept              no fact was kept
calls_monitor              lower  amount mean kept              no fact was kept
calls_study                lower  amount mean kept              no fact was kept
tokens_monitor             lower  amount mean kept              no fact was kept
tokens_study               lower  amount mean kept              no fact was kept
saving_calls               higher amount mean kept              no fact was kept
saving_tokens              higher amount mean kept              no fact was kept
""")
CALIBRATION = promised("""
selective_risk             lower  share  rate answered          vacuous: no answer was right or wrong
brier                      lower  share  mean answered          no answer was right or wrong
auroc                      higher share  mean answered          no right or no wrong answer
ece                        lower  share  mean answered          no answer was right or wrong
accuracy_at_80             higher share  mean answered          no answer was right or wrong
accuracy_at_50             higher share  mean answered          no answer was right or wrong
""")
HEAD_TO_TAIL = CALIBRATION | promised("""
accuracy                   higher share  rate facts             no fact
hallucination              lower  share  rate facts             no fact
missing                    lower  share  rate facts             no fact
accuracy_em                higher share  rate facts             no fact
hallucination_em           lower  share  rate facts             no fact
accuracy_f1                higher share  mean facts             no fact
hallucination_f1           lower  share  mean facts             no fact
accuracy_rouge_l           higher share  mean facts             no fact
hallucination_rouge_l      lower  share  mean facts             no fact
accuracy_rules             higher share  rate facts             no fact
hallucination_rules        lower  share  rate facts             no fact
unparsable                 lower  share  rate facts             no fact
""")
BOTH_KINDS = promised("""
wr                         lower  share  rate facts             no fact
repetition                 lower  share  rate facts             no fact
none                       lower  share  rate facts             no fact
unsure                     higher share  rate facts             no fact
c_wrong                    lower  share  mean wrong             vacuous: no wrong answer
choices_unread             lower  share  mean choices           vacuous: no multiple-choice question was asked
distractors_written        higher share  mean distractors       no multiple-choice question was asked
distractors_alike          higher share  mean distractors_drawn no distractors were drawn by kind
c_wrong_control_random     lower  share  mean wrong             vacuous: no wrong answer
c_wrong_control_shuffled   lower  share  mean wrong             vacuous: no wrong answer
""")
KNOWN = (
    BOTH_KINDS
    | CALIBRATION
    | promised("""
cr                         higher share  rate facts             no fact
ncr                        higher signed mean facts             no fact
distractors_length         higher share  mean distractors_drawn no distractors were drawn by kind
uninformative              lower  share  rate facts             no fact
unparsable                 lower  share  rate facts             no fact
c_correct                  higher share  mean correct           no correct answer
ccr                        higher share  mean facts             no fact
cwr                        lower  share  mean facts             no fact
nccr                       higher signed mean facts             no fact
cr_control_majority        higher share  rate facts             no fact
cr_control_shuffled        higher share  rate facts             no fact
ncr_control_majority       higher signed mean facts             no fact
c_correct_control_random   higher share  mean correct           no correct answer
c_correct_control_shuffled higher share  mean correct           no correct answer
ccr_control_majority       higher share  mean facts             no fact
ccr_control_random         higher share  mean facts             no fact
ccr_control_shuffled       higher share  mean facts             no fact
cwr_control_random         lower  share  mean facts             no fact
cwr_control_shuffled       lower  share  mean facts             no fact
nccr_control_majority      higher signed mean facts             no fact
nccr_control_random        higher signed mean facts             no fact
nccr_control_shuffled      higher signed mean facts             no fact
""")
)
UNSEEN = BOTH_KINDS | promised("""
ur                         higher share  rate facts             no fact
iur                        higher share  mean facts             no fact
""")


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
