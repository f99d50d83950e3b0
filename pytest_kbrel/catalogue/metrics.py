"""Metrics: name, range and better direction of each, and which slices and which aggregates have it.

The checks of suite files, their JSON Schema, reports and the formulas in ``metrics/`` follow this table.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Literal, cast

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.records import CaseKind, ProbeName, record
from pytest_kbrel.resources import tsv_rows

Better = Literal["higher", "lower"]
# Slices of one kind have the same metrics.
SliceKind = Literal[ProbeName, "known", "unseen", "edit", "keep", "follow", "forget"]


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


_TABLES: dict[str, dict[str, Metric]] = {}
for _table, _name, _better, _low, _high, _what in tsv_rows("catalogue/metrics.tsv"):
    _TABLES.setdefault(_table, {})[_name] = Metric(
        name=_name,
        better=cast(Better, _better),
        about=_what,
        low=json.loads(_low),
        high=json.loads(_high),
        comparable=_table not in ("order", "kept"),
        controlled=_name in CONTROLS,
    )

METRICS: Mapping[str, Metric] = _TABLES["value"] | _TABLES["order"] | _TABLES["kept"]
# How far the most probable tokens of answers moved, where they are recorded (--kb-top-k).
DIVERGENCE_METRICS: Mapping[str, Metric] = _TABLES["divergence"]
# How much a candidate changed, whichever way: the share of facts with another answer, and with another
# verdict, and the divergence. They need a baseline, and no formula.
CHANGE_METRICS: Mapping[str, Metric] = _TABLES["change"] | _TABLES["divergence"]
# All that is measured against a baseline only; a gate is about the figure itself.
BASELINE_METRICS: Mapping[str, Metric] = {**CHANGE_METRICS, **_TABLES["kept"]}
# What is measured and shown and no gate may be about: what would be measured without knowledge
# (metrics/reliability.py), and what the distractors are like.
SHOWN_ONLY: Mapping[str, Metric] = _TABLES["shown"]
ALL_METRICS: Mapping[str, Metric] = {**METRICS, **CHANGE_METRICS, **SHOWN_ONLY}

_CALIBRATION = "selective_risk brier auroc ece accuracy_at_80 accuracy_at_50"
_SLICE_NAMES: Mapping[SliceKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_avg accuracy_max accuracy_min accuracy_std "
    "accuracy_base accuracy_qa accuracy_wp accuracy_fc_pos accuracy_fc_neg accuracy_positive "
    "accuracy_negative delta_positive delta_negative monitor_ablated calls_monitor calls_study "
    "tokens_monitor tokens_study saving_calls saving_tokens",
    "head_to_tail": "accuracy hallucination missing outdated accuracy_em hallucination_em accuracy_f1 "
    "hallucination_f1 accuracy_rouge_l hallucination_rouge_l accuracy_rules hallucination_rules unparsable "
    f"{_CALIBRATION}",
    "known": "cr wr ncr uninformative outdated repetition none unsure unparsable c_correct c_wrong ccr cwr nccr "
    f"choices_unread {_CALIBRATION}",
    "unseen": "ur wr repetition none unsure c_wrong iur choices_unread",
    "edit": "edited still_old preferred preferred_reworded",
    "keep": "contained accuracy preferred preferred_reworded truth_ratio",
    "follow": "followed accuracy",
    "forget": "forgotten leaked missing rouge_l truth_ratio",
    "edits": "",
}
_OVERALL_NAMES: Mapping[CaseKind, str] = {
    "monitor": "monitor pfd ird anchor_prob accuracy accuracy_max accuracy_min accuracy_std accuracy_base "
    "monitor_ablated",
    "head_to_tail": "gap accuracy_head accuracy_torso accuracy_tail accuracy_top10 accuracy hallucination "
    "missing outdated accuracy_macro hallucination_macro missing_macro",
    "questions": "accuracy hallucination missing outdated",
    "reliability": "nccr iur ncr ur c_wrong avg",
    "edits": "",
    "pooled": "as_expected consistency agreement",
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

# What other probes call the same figure, as gates may too.
_OTHER_NAMES = {"accuracy": "cr", "hallucination": "wr", "missing": "uninformative"}


def by_all_names(metrics: Mapping[str, Metric]) -> dict[str, Metric]:
    """Return metrics by name, and by what other probes call the same figure where no other is called so."""
    others = {
        other: metrics[name] for other, name in _OTHER_NAMES.items() if name in metrics
    }
    return {**others, **metrics}


# A model that gives every answer the same small probability has good figures of MONITOR without knowing
# anything, so they are shown with two others beside them.
BESIDE: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("monitor", "pfd", "ird", "monitor_ablated"), ("accuracy", "anchor_prob")
)
