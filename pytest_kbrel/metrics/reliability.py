"""Reliable KB: Zheng, Lapata and Pan, "How Reliable are LLMs as Knowledge Bases?", arXiv 2407.13578 v1.

Section 2 defines factuality (NCR, UR) and consistency (NCCR, IUR). An uninformative answer stays in every
denominator, and so does one that a judging model left unjudged, or that is outdated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_kbrel.catalogue.metrics import SliceKind
from pytest_kbrel.metrics.base import (
    Array,
    MetricFormula,
    computable,
    difference,
    formula,
    mean,
    quotient,
    rate,
    ratio,
)
from pytest_kbrel.metrics.calibration import calibration_metrics

# The columns every table has, also one of an older version.
COLUMNS = (
    "correct",
    "wrong",
    "uninformative",
    "consistency_correct",
    "consistency_wrong",
)

# The answer, three distractors and "unsure" (section 3.3).
OPTIONS = 5
_LABELS = (("correct", "no correct answer"), ("wrong", "no wrong answer"))


def c_wrong(known: Array, unseen: Array) -> Array:
    """Return the unweighted mean of the slices' C_wrong, and the other one where one is nan.

    Table 10 has the known one where no unseen answer is wrong; the reverse is ours.
    """
    return np.where(
        np.isnan(unseen), known, np.where(np.isnan(known), unseen, (known + unseen) / 2)
    )


def average(nccr: Array, iur: Array) -> Array:
    """Return Table 1's AVG: NCCR with IUR rescaled to -1..1, (NCCR + 2 * IUR - 1) / 2, -1..1."""
    return (nccr + 2 * iur - 1) / 2


_C_WRONG = quotient(
    "c_wrong", "consistency_wrong", "wrong", undefined="no wrong answer", vacuous=True
)

# The three kinds of uninformative answers (section 3.3), shares of all answers as in Figure 11.
_UNINFORMATIVE = tuple(map(rate, ("repetition", "none", "unsure")))

# Not in the paper: a reply that picks no option counts as not keeping to the answer.
_UNREAD = quotient(
    "choices_unread",
    "choices_unread",
    "choices",
    undefined="no multiple-choice question was asked",
    vacuous=True,
)

# Not in the paper: how much of what is offered beside an answer a model wrote, where one writes.
_WRITTEN = quotient(
    "distractors_written",
    "distractors_written",
    "distractors",
    undefined="no multiple-choice question was asked",
)

# Not in the paper: of the distractors that were drawn by the kind of the answer, how many are of that kind,
# and how alike they are to it in length.
_ALIKE = quotient(
    "distractors_alike",
    "distractors_alike",
    "distractors_drawn",
    undefined="no distractors were drawn by kind",
)
_LENGTH = quotient(
    "distractors_length",
    "distractors_length",
    "distractors_drawn",
    undefined="no distractors were drawn by kind",
)
_KNOWN = (
    rate("cr", "correct"),
    rate("wr", "wrong"),
    difference("ncr", "correct", "wrong"),
    rate("uninformative"),
    *_UNINFORMATIVE,
    rate("unparsable"),
    rate("outdated"),
    quotient(
        "c_correct", "consistency_correct", "correct", undefined="no correct answer"
    ),
    _C_WRONG,
    mean("ccr", "consistency_correct"),
    mean("cwr", "consistency_wrong"),
    difference("nccr", "consistency_correct", "consistency_wrong"),
    _UNREAD,
    _WRITTEN,
    _ALIKE,
    _LENGTH,
)
_UNSEEN = (
    rate("ur", "uninformative"),
    rate("wr", "wrong"),
    *_UNINFORMATIVE,
    _C_WRONG,
    formula("iur", ("consistency_wrong",), lambda t, n: ratio(n - t[..., 0], n)),
    _UNREAD,
    _WRITTEN,
    _ALIKE,
)


def reliability_metrics(
    kind: SliceKind, columns: Sequence[str] = COLUMNS
) -> tuple[MetricFormula, ...]:
    """Return the metrics of a known or unseen slice whose table has ``columns``.

    Every table has correct, wrong, uninformative (0 or 1), consistency_correct and consistency_wrong (the
    consistency score, 0..1, of answers so labelled, else 0). Others are repetition, none and unsure (0 or 1:
    the kind of an uninformative answer), unparsable (0 or 1: the judging model's reply could not be read, and
    the answer is neither correct nor wrong nor uninformative), choices and choices_unread (how many
    multiple-choice questions were asked, and how many replies pick none of the options), distractors and
    distractors_written (how many wrong options there were to draw from, and how many of them a model wrote),
    distractors_drawn (0 or 1: whether the wrong options were drawn by the kind of the answer),
    distractors_alike (the share of them that are of its kind), distractors_length (the mean of the smaller
    length divided by the larger one), and those of the controls. Seen slices have those of
    :mod:`pytest_kbrel.metrics.calibration` too; of unseen knowledge no answer is right.
    """
    own = computable(_KNOWN if kind == "known" else _UNSEEN, columns)
    if kind == "known":
        own += calibration_metrics(columns)
    names = {metric.name for metric in own}
    controls = (
        control
        for control in control_metrics(columns)
        if control.name.partition("_control_")[0] in names
    )
    return (*own, *controls)


def control_metrics(columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the controls that a table with ``columns`` has.

    ``majority`` is 1 where the relation's most frequent object is right; ``shuffled_right`` where the
    question about another subject is answered with the fact's own object; ``shuffled_correct`` and
    ``shuffled_wrong`` are the shares of shuffled questions in which a correct or wrong answer is picked
    again. All are 0..1.
    """
    metrics = (
        rate("cr_control_majority", "majority"),
        rate("cr_control_shuffled", "shuffled_right"),
        _net("ncr_control_majority"),
        *(_random(label, undefined) for label, undefined in _LABELS),
        *(
            quotient(
                f"c_{label}_control_shuffled",
                f"shuffled_{label}",
                label,
                undefined=undefined,
                vacuous=label == "wrong",
            )
            for label, undefined in _LABELS
        ),
        mean("ccr_control_majority", "majority"),
        _share("ccr_control_random", "correct"),
        mean("ccr_control_shuffled", "shuffled_correct"),
        _share("cwr_control_random", "wrong"),
        mean("cwr_control_shuffled", "shuffled_wrong"),
        _net("nccr_control_majority"),
        difference("nccr_control_random", "correct", "wrong", OPTIONS),
        difference("nccr_control_shuffled", "shuffled_correct", "shuffled_wrong"),
    )
    return computable(metrics, columns)


def _random(label: str, undefined: str) -> MetricFormula:
    def chance(totals: Array, n: Array) -> Array:
        return np.where(totals[..., 0] > 0, 1.0 / OPTIONS, math.nan)

    name, vacuous = f"c_{label}_control_random", label == "wrong"
    return formula(
        name, (label,), chance, over=label, undefined=undefined, vacuous=vacuous
    )


def _share(name: str, column: str) -> MetricFormula:
    return formula(name, (column,), lambda t, n: ratio(t[..., 0] / OPTIONS, n))


def _net(name: str) -> MetricFormula:
    # All answers that are not right are wrong.
    return formula(name, ("majority",), lambda t, n: ratio(2 * t[..., 0] - n, n))
