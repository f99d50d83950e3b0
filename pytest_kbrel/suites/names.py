"""The names a suite file may use for metrics, with the range and the better direction of each.

This is the one table: the checks, the JSON Schema and the documentation of the format follow it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pytest_kbrel.records import ProbeName, record

Better = Literal["higher", "lower"]
SliceKind = Literal["monitor", "head_to_tail", "seen", "unseen"]

SEEN = "seen-zero-shot"
UNSEEN = "unseen-zero-shot"
RELIABILITY_SLICES = (SEEN, UNSEEN)


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
        top = "" if math.isinf(self.high) else f" and at most {self.high:g}"
        return f"at least {self.low:g}{top}"


def _metrics(better: Better, low: float, high: float, names: str) -> dict[str, Metric]:
    return {name: Metric(name=name, better=better, low=low, high=high) for name in names.split()}


METRICS: Mapping[str, Metric] = {
    **_metrics("lower", 0, math.inf, "monitor"),
    **_metrics("lower", 0, 1, "pfd ird"),
    **_metrics("lower", 0, 0.5, "accuracy_std"),
    **_metrics("higher", 0, 1, "anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_base"),
    **_metrics("higher", 0, 1, "accuracy_f1 accuracy_rouge_l accuracy_head accuracy_torso accuracy_tail"),
    **_metrics("lower", 0, 1, "hallucination hallucination_f1 hallucination_rouge_l missing"),
    **_metrics("lower", -1, 1, "gap"),
    **_metrics("higher", 0, 1, "cr c_correct ccr ur iur"),
    **_metrics("lower", 0, 1, "wr c_wrong cwr uninformative"),
    **_metrics("higher", -1, 1, "ncr nccr avg"),
}
BETTER: Mapping[str, Better] = {name: metric.better for name, metric in METRICS.items()}

_SLICE_NAMES: Mapping[SliceKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_std "
    "accuracy_base",
    "head_to_tail": "accuracy hallucination missing accuracy_f1 hallucination_f1 accuracy_rouge_l "
    "hallucination_rouge_l",
    "seen": "cr wr ncr uninformative c_correct c_wrong ccr cwr nccr",
    "unseen": "ur wr c_wrong iur",
}
_OVERALL_NAMES: Mapping[ProbeName, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy",
    "head_to_tail": "gap accuracy_head accuracy_torso accuracy_tail accuracy hallucination missing",
    "reliability": "nccr iur ncr ur c_wrong avg",
}

SLICE_METRICS: Mapping[SliceKind, Mapping[str, Metric]] = {
    kind: {name: METRICS[name] for name in names.split()} for kind, names in _SLICE_NAMES.items()
}
OVERALL_METRICS: Mapping[ProbeName, Mapping[str, Metric]] = {
    probe: {name: METRICS[name] for name in names.split()} for probe, names in _OVERALL_NAMES.items()
}

# Figures over slices that mean nothing unless these slices are there; head_to_tail names its buckets only.
OVERALL_NEEDS: Mapping[ProbeName, Mapping[str, tuple[str, ...]]] = {
    "monitor": {},
    "head_to_tail": {
        "gap": ("head", "tail"),
        "accuracy_head": ("head",),
        "accuracy_torso": ("torso",),
        "accuracy_tail": ("tail",),
    },
    "reliability": {
        "nccr": (SEEN,),
        "ncr": (SEEN,),
        "ur": (UNSEEN,),
        "iur": (UNSEEN,),
        "c_wrong": (SEEN, UNSEEN),
        "avg": (SEEN, UNSEEN),
    },
}


def slice_kinds(probe: ProbeName) -> tuple[SliceKind, ...]:
    """Return the kinds of slice a probe has."""
    return ("seen", "unseen") if probe == "reliability" else (probe,)


def slice_kind(probe: ProbeName, name: str) -> SliceKind:
    """Return the kind of the slice ``name`` of a probe."""
    if probe == "reliability":
        return "unseen" if name == UNSEEN else "seen"
    return probe


def probe_metrics(probe: ProbeName) -> dict[str, Metric]:
    """Return all metrics that some slice of the probe has."""
    return {name: metric for kind in slice_kinds(probe) for name, metric in SLICE_METRICS[kind].items()}
