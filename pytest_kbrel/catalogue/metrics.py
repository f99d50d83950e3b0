"""Metrics: name, range and better direction of each, and which slices and which aggregates have it.

The checks of suite files, their JSON Schema, reports and the formulas in ``metrics/`` follow this table.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.records import CaseKind, ProbeName, record

Better = Literal["higher", "lower"]
# Slices of one kind have the same metrics.
SliceKind = Literal[ProbeName, "seen", "unseen"]


@record
class Metric:
    """A metric before any model has answered: its range and direction. ``high`` may be infinite.

    ``about`` is what it is, in one sentence. Rules that compare with a baseline are for metrics that are
    ``comparable`` only, those that compare with a control for those that are ``controlled``.
    """

    name: str
    better: Better
    about: str
    low: float = 0.0
    high: float = 1.0
    comparable: bool = True
    controlled: bool = False

    @property
    def most(self) -> float:
        """The most that a gate may state of it: ``high``, or a number far beyond all there are."""
        return min(self.high, FIGURE)

    @property
    def plain_rule(self) -> Literal["min", "max"]:
        """The rule that a bare number stands for: the worst value that is still good."""
        return "min" if self.better == "higher" else "max"


# What each metric is, for whoever writes a gate on it: the JSON Schema of suite files shows it in editors.
_ABOUT: Mapping[str, str] = {
    "monitor": "MONITOR: how far the probability of the right answer moves with the wording and after "
    "misleading contexts, divided by that probability.",
    "pfd": "Prompt-framing degree: how far the probability of the right answer moves with the wording.",
    "ird": "Interference-relevance degree: how far that probability moves after wrong contexts.",
    "anchor_prob": "Anchor probability: mean probability of the right answer behind a prompt that states it.",
    "monitor_ablated": "MONITOR over fewer frames, as many as the key 'ablation' says.",
    "calls_monitor": "Requests that MONITOR itself needs for one fact.",
    "calls_study": "Requests that the accuracy study needs for one fact (study: full).",
    "tokens_monitor": "Tokens that MONITOR itself needs for one fact, of prompts and continuations together.",
    "tokens_study": "Tokens that the accuracy study needs for one fact (study: full).",
    "saving_calls": "Requests of the accuracy study divided by those of MONITOR (study: full).",
    "saving_tokens": "Tokens of the accuracy study divided by those of MONITOR (study: full).",
    "accuracy": "Share of right answers; in monitor the mean over all frames and contexts that are asked.",
    "accuracy_avg": "The paper's name of accuracy: the mean over all frames and contexts that are asked.",
    "accuracy_max": "Accuracy of the frame and context with the most right answers.",
    "accuracy_min": "Accuracy of the frame and context with the fewest right answers.",
    "accuracy_std": "Standard deviation of the accuracy over frames and contexts.",
    "accuracy_base": "Accuracy of the first frame without context.",
    "accuracy_qa": "Mean accuracy of all frames without context.",
    "accuracy_wp": "Accuracy of word prediction: statements up to the place of the answer (formats: all).",
    "accuracy_fc_pos": "Accuracy of fact checking of statements with the right object (formats: all).",
    "accuracy_fc_neg": "Mean accuracy of fact checking of statements with wrong objects (formats: all).",
    "accuracy_positive": "Accuracy of the first frame after the right answer.",
    "accuracy_negative": "Mean accuracy of the first frame after wrong answers.",
    "delta_positive": "accuracy_positive minus accuracy_base.",
    "delta_negative": "accuracy_negative minus accuracy_base.",
    "accuracy_em": "Share of answers that equal an accepted one.",
    "accuracy_f1": "Mean token F1 of the answers with the accepted answer that suits best.",
    "accuracy_rouge_l": "Mean ROUGE-L of the answers with the accepted answer that suits best.",
    "accuracy_rules": "Share of right answers by the rule judge, whoever else judges.",
    "accuracy_macro": "Mean over the domains, each the mean of its buckets' accuracies.",
    "accuracy_head": "Accuracy over the facts of the most popular third (head) of all domains.",
    "accuracy_torso": "Accuracy over the facts of the middle third (torso) of all domains.",
    "accuracy_tail": "Accuracy over the facts of the least popular third (tail) of all domains.",
    "accuracy_top10": "Accuracy over the most popular tenth of the head.",
    "hallucination": "Share of wrong answers: neither right nor missing.",
    "hallucination_em": "What is left of 1 after accuracy_em and missing.",
    "hallucination_f1": "What is left of 1 after accuracy_f1 and missing.",
    "hallucination_rouge_l": "What is left of 1 after accuracy_rouge_l and missing.",
    "hallucination_rules": "What is left of 1 after accuracy_rules and missing.",
    "hallucination_macro": "Mean over the domains, each the mean of its buckets' shares of wrong answers.",
    "missing": "Share of answers that say that the model does not know, or nothing.",
    "missing_macro": "Mean over the domains, each the mean of its buckets' shares of missing answers.",
    "unparsable": "Share of answers for which a model as judge gave no readable verdict.",
    "choices_unread": "Share of replies to multiple-choice questions that pick none of the options.",
    "gap": "accuracy_head minus accuracy_tail.",
    "cr": "Correct rate: share of right answers to questions that can be known.",
    "c_correct": "Consistency of right answers: how often one is picked again among other options.",
    "ccr": "Consistently correct rate: cr times c_correct.",
    "ur": "Uninformative rate: share of answers without information to questions that nobody can answer.",
    "iur": "Inconsistent or uninformative rate: 1 minus the share of answers that are wrong and kept to.",
    "wr": "Wrong rate: share of wrong answers.",
    "c_wrong": "Consistency of wrong answers: how often one is picked again among other options.",
    "cwr": "Consistently wrong rate: wr times c_wrong.",
    "uninformative": "Share of answers without information: repetition, none or unsure.",
    "repetition": "Share of answers that repeat the same words over and over.",
    "none": "Share of answers that say nothing, or repeat the question.",
    "unsure": "Share of answers that say that the model does not know.",
    "ncr": "Net correct rate: cr minus wr.",
    "nccr": "Net consistently correct rate: ccr minus cwr.",
    "avg": "Mean of nccr and of iur on the same scale: (nccr + 2 iur - 1) / 2.",
    "as_expected": "Share of answers of all slices that are right, or uninformative where nobody can answer.",
    "selective_risk": "Share of wrong answers among those that are given.",
    "brier": "Mean squared difference between an answer's probability and 1 (right) or 0 (wrong).",
    "auroc": "How often a right answer is more probable than a wrong one.",
    "accuracy_at_80": "Share of right ones among the 80 % most probable answers.",
    "accuracy_at_50": "Share of right ones among the 50 % most probable answers.",
    "ece": "Expected calibration error, in ten bins of equal width.",
    "kl": "KL divergence of the most probable tokens of answers from the baseline's, in nats (--kb-top-k).",
    "top1_agreement": "Share of positions with the same most probable token as the baseline (--kb-top-k).",
    "churn": "Share of facts with another text as answer than in the baseline.",
    "flips": "Share of facts with another verdict than in the baseline: right, wrong, uninformative.",
    "cr_control_majority": "cr if every answer were the most frequent object of its relation.",
    "cr_control_shuffled": "cr if the question about another subject were asked.",
    "c_correct_control_random": "c_correct if any option were picked with equal chance.",
    "c_correct_control_shuffled": "c_correct with the same options under the question about another subject.",
    "c_wrong_control_random": "c_wrong if any option were picked with equal chance.",
    "c_wrong_control_shuffled": "c_wrong with the same options under the question about another subject.",
    "ccr_control_majority": "ccr if every answer were the most frequent object of its relation.",
    "ccr_control_random": "ccr if any option were picked with equal chance.",
    "ccr_control_shuffled": "ccr with the same options under the question about another subject.",
    "cwr_control_random": "cwr if any option were picked with equal chance.",
    "cwr_control_shuffled": "cwr with the same options under the question about another subject.",
    "ncr_control_majority": "ncr if every answer were the most frequent object of its relation.",
    "nccr_control_majority": "nccr if every answer were the most frequent object of its relation.",
    "nccr_control_random": "nccr if any option were picked with equal chance.",
    "nccr_control_shuffled": "nccr with the same options under the question about another subject.",
    "distractors_written": "Share of the distractors that the model wrote.",
    "distractors_alike": "Share of the distractors that are of the answer's kind.",
    "distractors_length": "Similarity of the distractors to the answer in length.",
}


# What a metric is held against: what would be measured without knowledge (metrics/reliability.py).
CONTROLS: Mapping[str, tuple[str, ...]] = {
    "cr": ("cr_control_majority", "cr_control_shuffled"),
    "ncr": ("ncr_control_majority",),
    "c_correct": ("c_correct_control_random", "c_correct_control_shuffled"),
    "c_wrong": ("c_wrong_control_random", "c_wrong_control_shuffled"),
    "ccr": ("ccr_control_majority", "ccr_control_random", "ccr_control_shuffled"),
    "cwr": ("cwr_control_random", "cwr_control_shuffled"),
    "nccr": ("nccr_control_majority", "nccr_control_random", "nccr_control_shuffled"),
}


def _metrics(
    better: Better, low: float, high: float, names: str, *, comparable: bool = True
) -> dict[str, Metric]:
    return {
        name: Metric(
            name=name,
            better=better,
            about=_ABOUT[name],
            low=low,
            high=high,
            comparable=comparable,
            controlled=name in CONTROLS,
        )
        for name in names.split()
    }


METRICS: Mapping[str, Metric] = {
    **_metrics(
        "lower",
        0,
        math.inf,
        "monitor monitor_ablated calls_monitor calls_study tokens_monitor tokens_study",
    ),
    **_metrics("higher", 0, math.inf, "saving_calls saving_tokens"),
    **_metrics("lower", 0, 0.5, "accuracy_std"),
    # Saying that one does not know is the open way of not answering, and the one that unsure shots teach.
    **_metrics(
        "higher",
        0,
        1,
        "anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_base accuracy_qa accuracy_wp "
        "accuracy_fc_pos accuracy_fc_neg accuracy_positive accuracy_negative accuracy_em accuracy_f1 "
        "accuracy_rouge_l accuracy_rules accuracy_macro accuracy_head accuracy_torso accuracy_tail "
        "accuracy_top10 cr c_correct ccr ur iur unsure as_expected",
    ),
    **_metrics(
        "lower",
        0,
        1,
        "pfd ird hallucination hallucination_em hallucination_f1 hallucination_rouge_l hallucination_rules "
        "hallucination_macro missing missing_macro unparsable choices_unread wr c_wrong cwr uninformative "
        "repetition none selective_risk brier",
    ),
    **_metrics("higher", -1, 1, "delta_positive delta_negative ncr nccr avg"),
    **_metrics("lower", -1, 1, "gap"),
    # They depend on the order or the bins of all facts: what one fact adds to a difference is not defined.
    **_metrics("higher", 0, 1, "auroc accuracy_at_80 accuracy_at_50", comparable=False),
    **_metrics("lower", 0, 1, "ece", comparable=False),
}

# How far the most probable tokens of answers moved, where they are recorded (--kb-top-k).
DIVERGENCE_METRICS: Mapping[str, Metric] = {
    **_metrics("lower", 0, math.inf, "kl"),
    **_metrics("higher", 0, 1, "top1_agreement"),
}
# How much a candidate changed, whichever way: the share of facts with another answer, and with another
# verdict, and the divergence. They need a baseline, and no formula.
CHANGE_METRICS: Mapping[str, Metric] = {
    **_metrics("lower", 0, 1, "churn flips"),
    **DIVERGENCE_METRICS,
}

# What is measured and shown and no gate may be about: what would be measured without knowledge
# (metrics/reliability.py), and what the distractors are like.
SHOWN_ONLY: Mapping[str, Metric] = {
    **_metrics(
        "higher",
        0,
        1,
        "cr_control_majority cr_control_shuffled c_correct_control_random c_correct_control_shuffled "
        "ccr_control_majority ccr_control_random ccr_control_shuffled distractors_written "
        "distractors_alike distractors_length",
    ),
    **_metrics(
        "lower",
        0,
        1,
        "c_wrong_control_random c_wrong_control_shuffled cwr_control_random cwr_control_shuffled",
    ),
    **_metrics(
        "higher",
        -1,
        1,
        "ncr_control_majority nccr_control_majority nccr_control_random nccr_control_shuffled",
    ),
}

_CALIBRATION = "selective_risk brier auroc ece accuracy_at_80 accuracy_at_50"
_SLICE_NAMES: Mapping[SliceKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_std "
    "accuracy_base accuracy_qa accuracy_wp accuracy_fc_pos accuracy_fc_neg accuracy_positive "
    "accuracy_negative delta_positive delta_negative monitor_ablated calls_monitor calls_study "
    "tokens_monitor tokens_study saving_calls saving_tokens",
    "head_to_tail": "accuracy hallucination missing accuracy_em hallucination_em accuracy_f1 "
    "hallucination_f1 accuracy_rouge_l hallucination_rouge_l accuracy_rules hallucination_rules unparsable "
    f"{_CALIBRATION}",
    "seen": "cr wr ncr uninformative repetition none unsure unparsable c_correct c_wrong ccr cwr nccr "
    f"choices_unread {_CALIBRATION}",
    "unseen": "ur wr repetition none unsure c_wrong iur choices_unread",
}
_OVERALL_NAMES: Mapping[CaseKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_max accuracy_min accuracy_std accuracy_base "
    "monitor_ablated",
    "head_to_tail": "gap accuracy_head accuracy_torso accuracy_tail accuracy_top10 accuracy hallucination "
    "missing accuracy_macro hallucination_macro missing_macro",
    "reliability": "nccr iur ncr ur c_wrong avg",
    "pooled": "as_expected",
}

SLICE_METRICS: Mapping[SliceKind, Mapping[str, Metric]] = {
    kind: {name: METRICS[name] for name in names.split()}
    for kind, names in _SLICE_NAMES.items()
}
OVERALL_METRICS: Mapping[CaseKind, Mapping[str, Metric]] = {
    # The controls are those of single slices.
    probe: {
        name: dataclasses.replace(METRICS[name], controlled=False)
        for name in names.split()
    }
    for probe, names in _OVERALL_NAMES.items()
}

# A model that gives every answer the same small probability has good figures of MONITOR without knowing
# anything, so they are shown with two others beside them.
BESIDE: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("monitor", "pfd", "ird", "monitor_ablated"), ("accuracy", "anchor_prob")
)
