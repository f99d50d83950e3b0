"""The names a suite file may use for metrics, with the range and the better direction of each.

This is the one table: the checks, the JSON Schema and the documentation of the format follow it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Literal

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.records import ANSWER_TYPES, CaseKind, ProbeName, record

Better = Literal["higher", "lower"]
SliceKind = Literal["monitor", "head_to_tail", "seen", "unseen"]

KINDS = ("seen", "unseen")
PROMPTS = ("zero-shot", "four-shot", "four-shot-2")
SLICE_BY = ("none", "answer_type", "dataset")
_RELIABILITY_SLICE = re.compile(rf"({'|'.join(KINDS)})(?:-(.+?))?-({'|'.join(PROMPTS)})")
# The most popular tenth of a domain's head; the other buckets share out all facts.
TOP10 = "top10"


@record
class Metric:
    """What is known of a metric before any model has answered. ``high`` may be infinite."""

    name: str
    better: Better
    low: float = 0.0
    high: float = 1.0

    @property
    def range(self) -> str:
        """The possible values in words."""
        return f"at least {self.low:g} and at most {self.most:g}"

    @property
    def most(self) -> float:
        """The most that a gate may state of it: ``high``, or a number far beyond all there are."""
        return min(self.high, FIGURE)


def _metrics(better: Better, low: float, high: float, names: str) -> dict[str, Metric]:
    return {name: Metric(name=name, better=better, low=low, high=high) for name in names.split()}


METRICS: Mapping[str, Metric] = {
    **_metrics("lower", 0, math.inf, "monitor monitor_ablated"),
    **_metrics("lower", 0, math.inf, "calls_monitor calls_study tokens_monitor tokens_study"),
    **_metrics("higher", 0, math.inf, "saving_calls saving_tokens"),
    **_metrics("lower", 0, 1, "pfd ird"),
    **_metrics("lower", 0, 0.5, "accuracy_std"),
    **_metrics("higher", 0, 1, "anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_base"),
    **_metrics("higher", 0, 1, "accuracy_qa accuracy_wp accuracy_fc_pos accuracy_fc_neg"),
    **_metrics("higher", 0, 1, "accuracy_positive accuracy_negative"),
    **_metrics("higher", -1, 1, "delta_positive delta_negative"),
    **_metrics("higher", 0, 1, "accuracy_em accuracy_f1 accuracy_rouge_l accuracy_rules accuracy_macro"),
    **_metrics("higher", 0, 1, "accuracy_head accuracy_torso accuracy_tail accuracy_top10"),
    **_metrics("lower", 0, 1, "hallucination hallucination_em hallucination_f1 hallucination_rouge_l"),
    **_metrics("lower", 0, 1, "hallucination_rules hallucination_macro missing missing_macro unparsable"),
    **_metrics("lower", 0, 1, "choices_unread"),
    **_metrics("lower", -1, 1, "gap"),
    **_metrics("higher", 0, 1, "cr c_correct ccr ur iur"),
    **_metrics("lower", 0, 1, "wr c_wrong cwr uninformative repetition none"),
    # Saying that one does not know is the open way of not answering, and the one that unsure shots teach.
    **_metrics("higher", 0, 1, "unsure"),
    **_metrics("higher", -1, 1, "ncr nccr avg"),
    **_metrics("higher", 0, 1, "as_expected"),
}
BETTER: Mapping[str, Better] = {name: metric.better for name, metric in METRICS.items()}

_SLICE_NAMES: Mapping[SliceKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_std "
    "accuracy_base accuracy_qa accuracy_wp accuracy_fc_pos accuracy_fc_neg accuracy_positive "
    "accuracy_negative delta_positive delta_negative monitor_ablated calls_monitor calls_study "
    "tokens_monitor tokens_study saving_calls saving_tokens",
    "head_to_tail": "accuracy hallucination missing accuracy_em hallucination_em accuracy_f1 "
    "hallucination_f1 accuracy_rouge_l hallucination_rouge_l accuracy_rules hallucination_rules unparsable",
    "seen": "cr wr ncr uninformative repetition none unsure unparsable c_correct c_wrong ccr cwr nccr "
    "choices_unread",
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
    kind: {name: METRICS[name] for name in names.split()} for kind, names in _SLICE_NAMES.items()
}
OVERALL_METRICS: Mapping[CaseKind, Mapping[str, Metric]] = {
    probe: {name: METRICS[name] for name in names.split()} for probe, names in _OVERALL_NAMES.items()
}

# Metrics of single slices that there are only with this setting: (key, value).
SETTING_NEEDS: Mapping[ProbeName, Mapping[str, tuple[str, str]]] = {
    "monitor": {
        **dict.fromkeys(("accuracy_wp", "accuracy_fc_pos", "accuracy_fc_neg"), ("formats", "all")),
        **dict.fromkeys(("calls_study", "tokens_study", "saving_calls", "saving_tokens"), ("study", "full")),
    },
    "head_to_tail": {},
    "reliability": {},
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

# Figures over slices that mean nothing unless these slices are there: head_to_tail names its buckets only,
# reliability seen or unseen.
OVERALL_NEEDS: Mapping[ProbeName, Mapping[str, tuple[str, ...]]] = {
    "monitor": {},
    "head_to_tail": {
        "gap": ("head", "tail"),
        "accuracy_head": ("head",),
        "accuracy_torso": ("torso",),
        "accuracy_tail": ("tail",),
        "accuracy_top10": (TOP10,),
    },
    "reliability": {
        "nccr": ("seen",),
        "ncr": ("seen",),
        "ur": ("unseen",),
        "iur": ("unseen",),
        "c_wrong": ("seen", "unseen"),
        "avg": ("seen", "unseen"),
    },
}


@record
class ReliabilitySlice:
    """What the name of a reliability slice says; ``group`` is empty where the suite makes no groups."""

    kind: str
    group: str
    prompt: str


def reliability_slice(name: str) -> ReliabilitySlice | None:
    """Take a slice's name apart: seen or unseen, group if any, prompt; ``None`` where it is no such name."""
    match = _RELIABILITY_SLICE.fullmatch(name)
    if match is None:
        return None
    kind, group, prompt = match.groups()
    return ReliabilitySlice(kind=kind, group=group or "", prompt=prompt)


def slice_name(kind: str, group: str, prompt: str) -> str:
    """Return the name of a reliability slice."""
    return "-".join(part for part in (kind, group, prompt) if part)


def reliability_slices(slice_by: str) -> tuple[str, ...]:
    """Return the slices that can be known without the facts: with datasets, those that belong to none."""
    groups: tuple[str, ...] = ANSWER_TYPES if slice_by == "answer_type" else ("",)
    return tuple(slice_name(kind, group, prompt) for prompt in PROMPTS for group in groups for kind in KINDS)


def slice_kinds(probe: ProbeName) -> tuple[SliceKind, ...]:
    """Return the kinds of slice a probe has."""
    return ("seen", "unseen") if probe == "reliability" else (probe,)


def slice_kind(probe: ProbeName, name: str) -> SliceKind:
    """Return the kind of the slice ``name`` of a probe."""
    if probe == "reliability":
        return "unseen" if name.startswith("unseen-") else "seen"
    return probe


def probe_metrics(probe: ProbeName) -> dict[str, Metric]:
    """Return all metrics that some slice of the probe has."""
    return {name: metric for kind in slice_kinds(probe) for name, metric in SLICE_METRICS[kind].items()}
