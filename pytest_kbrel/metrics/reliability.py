"""Reliable KB: Zheng, Lapata and Pan, "How Reliable are LLMs as Knowledge Bases?", arXiv 2407.13578 v1.

Section 2 defines factuality (NCR, UR) and consistency (NCCR, IUR). An uninformative answer stays in every
denominator, and so does one that a judging model left unjudged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pytest_kbrel.catalogue.metrics import SliceKind
from pytest_kbrel.metrics.base import Array, MetricFormula, difference, mean, quotient, ratio
from pytest_kbrel.metrics.reliability_controls import control_metrics, measured_by

# The columns every table has, also one of an older version.
COLUMNS = ("correct", "wrong", "uninformative", "consistency_correct", "consistency_wrong")


def ncr(cr: float, wr: float) -> float:
    """Net correct rate on seen knowledge: CR - WR, -1..1."""
    return cr - wr


def ccr(cr: float, c_correct: float) -> float:
    """Consistently correct rate on seen knowledge: CR * C_correct, 0..1."""
    return cr * c_correct


def cwr(wr: float, c_wrong: float) -> float:
    """Consistently wrong rate on seen knowledge: WR * C_wrong, 0..1."""
    return wr * c_wrong


def nccr(ccr: float, cwr: float) -> float:
    """Net consistently correct rate on seen knowledge: CCR - CWR, -1..1."""
    return ccr - cwr


def iur(ur: float, c_wrong: float) -> float:
    """Inconsistent or uninformative rate on unseen knowledge: 1 - (1 - UR) * C_wrong, 0..1.

    With UR = 1 no answer is wrong, C_wrong is undefined (nan) and the rate 1.
    """
    return 1.0 if ur == 1 else 1.0 - (1.0 - ur) * c_wrong


def c_wrong(seen: Array, unseen: Array) -> Array:
    """Return the unweighted mean of the slices' C_wrong, and the other one where one is nan.

    Table 10 has the seen one where no unseen answer is wrong; the reverse is ours.
    """
    return np.where(np.isnan(unseen), seen, np.where(np.isnan(seen), unseen, (seen + unseen) / 2))


def average(nccr: Array, iur: Array) -> Array:
    """Return Table 1's AVG: NCCR with IUR rescaled to -1..1, (NCCR + 2 * IUR - 1) / 2, -1..1."""
    return (nccr + 2 * iur - 1) / 2


_C_WRONG = quotient(
    "c_wrong",
    "lower",
    "consistency_wrong",
    "wrong",
    over="wrong",
    undefined="no wrong answer",
    vacuous=True,
)


# The three kinds of uninformative answers (section 3.3), shares of all answers as in Figure 11.
_UNINFORMATIVE = (
    mean("repetition", "lower", "repetition", rate=True),
    mean("none", "lower", "none", rate=True),
    mean("unsure", "higher", "unsure", rate=True),
)
# Not in the paper: a reply that picks no option counts as not keeping to the answer.
_UNREAD = quotient(
    "choices_unread",
    "lower",
    "choices_unread",
    "choices",
    over="choices",
    undefined="no multiple-choice question was asked",
    vacuous=True,
)
# Not in the paper: how much of what is offered beside an answer a model wrote, where one writes.
_WRITTEN = quotient(
    "distractors_written",
    "higher",
    "distractors_written",
    "distractors",
    over="distractors",
    undefined="no multiple-choice question was asked",
)
# Not in the paper: of the distractors that were drawn by the kind of the answer, how many are of that kind,
# and how alike they are to it in length.
_ALIKE = quotient(
    "distractors_alike",
    "higher",
    "distractors_alike",
    "distractors_drawn",
    over="distractors_drawn",
    undefined="no distractors were drawn by kind",
)
_LENGTH = quotient(
    "distractors_length",
    "higher",
    "distractors_length",
    "distractors_drawn",
    over="distractors_drawn",
    undefined="no distractors were drawn by kind",
)
_SEEN = (
    mean("cr", "higher", "correct", rate=True),
    mean("wr", "lower", "wrong", rate=True),
    difference("ncr", "correct", "wrong"),
    mean("uninformative", "lower", "uninformative", rate=True),
    *_UNINFORMATIVE,
    mean("unparsable", "lower", "unparsable", rate=True),
    quotient(
        "c_correct",
        "higher",
        "consistency_correct",
        "correct",
        over="correct",
        undefined="no correct answer",
    ),
    _C_WRONG,
    mean("ccr", "higher", "consistency_correct"),
    mean("cwr", "lower", "consistency_wrong"),
    difference("nccr", "consistency_correct", "consistency_wrong"),
    _UNREAD,
    _WRITTEN,
    _ALIKE,
    _LENGTH,
)
_UNSEEN = (
    mean("ur", "higher", "uninformative", rate=True),
    mean("wr", "lower", "wrong", rate=True),
    *_UNINFORMATIVE,
    _C_WRONG,
    MetricFormula(
        name="iur",
        better="higher",
        columns=("consistency_wrong",),
        formula=lambda t, n: ratio(n - t[..., 0], n),
    ),
    _UNREAD,
    _WRITTEN,
    _ALIKE,
)


def reliability_metrics(kind: SliceKind, columns: Sequence[str] = COLUMNS) -> tuple[MetricFormula, ...]:
    """Return the metrics of a seen or unseen slice whose table has ``columns``.

    Every table has correct, wrong, uninformative (0 or 1), consistency_correct and consistency_wrong (the
    consistency score, 0..1, of answers so labelled, else 0). Others are repetition, none and unsure (0 or 1:
    the kind of an uninformative answer), unparsable (0 or 1: the judging model's reply could not be read, and
    the answer is neither correct nor wrong nor uninformative), choices and choices_unread (how many
    multiple-choice questions were asked, and how many replies pick none of the options), distractors and
    distractors_written (how many wrong options there were to draw from, and how many of them a model wrote),
    distractors_drawn (0 or 1: whether the wrong options were drawn by the kind of the answer),
    distractors_alike (the share of them that are of its kind), distractors_length (the mean of the smaller
    length divided by the larger one), and those of the controls.
    """
    own = tuple(m for m in (_SEEN if kind == "seen" else _UNSEEN) if set(m.columns) <= set(columns))
    names = {metric.name for metric in own}
    return (*own, *(control for control in control_metrics(columns) if measured_by(control.name) in names))
