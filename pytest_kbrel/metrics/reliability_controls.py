"""Controls of the Reliable KB metrics: what would be measured of a model that does not use what it knows.

A model that always gives the same answer has perfect consistency (eq. 4 asks only whether an answer is picked
again), so consistency means little without these figures beside it. They are ours; the paper has none.

majority: every question is answered with the most frequent object of its relation, always consistently.
random: the answers are the model's own, and any of the options is picked with equal chance.
shuffled: the answers are the model's own, and the same options are offered under a question about another
subject. What is still picked there was not picked for what the model knows about the subject.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_kbrel.catalogue.metrics import Better
from pytest_kbrel.metrics.base import SIGNED, Array, MetricFormula, difference, mean, quotient, ratio

# The answer, three distractors and "unsure" (section 3.3).
OPTIONS = 5
_LABELS: tuple[tuple[str, Better, str], ...] = (
    ("correct", "higher", "no correct answer"),
    ("wrong", "lower", "no wrong answer"),
)


def measured_by(name: str) -> str:
    """Return the metric that the control ``name`` stands beside."""
    return name.partition("_control_")[0]


def control_metrics(columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the controls that a table with ``columns`` has.

    ``majority`` is 1 where the relation's most frequent object is right; ``shuffled_right`` where the
    question about another subject is answered with the fact's own object; ``shuffled_correct`` and
    ``shuffled_wrong`` are the shares of shuffled questions in which a correct or wrong answer is picked
    again. All are 0..1.
    """
    metrics = (
        mean("cr_control_majority", "higher", "majority", rate=True),
        mean("cr_control_shuffled", "higher", "shuffled_right", rate=True),
        _net("ncr_control_majority"),
        *(_random(label, better, undefined) for label, better, undefined in _LABELS),
        *(
            quotient(
                f"c_{label}_control_shuffled",
                better,
                f"shuffled_{label}",
                label,
                over=label,
                undefined=undefined,
                vacuous=label == "wrong",
            )
            for label, better, undefined in _LABELS
        ),
        mean("ccr_control_majority", "higher", "majority"),
        _share("ccr_control_random", "higher", "correct"),
        mean("ccr_control_shuffled", "higher", "shuffled_correct"),
        _share("cwr_control_random", "lower", "wrong"),
        mean("cwr_control_shuffled", "lower", "shuffled_wrong"),
        _net("nccr_control_majority"),
        difference("nccr_control_random", "correct", "wrong", OPTIONS),
        difference("nccr_control_shuffled", "shuffled_correct", "shuffled_wrong"),
    )
    return tuple(metric for metric in metrics if set(metric.columns) <= set(columns))


def _random(label: str, better: Better, undefined: str) -> MetricFormula:
    def formula(totals: Array, n: Array) -> Array:
        return np.where(totals[..., 0] > 0, 1.0 / OPTIONS, math.nan)

    return MetricFormula(
        name=f"c_{label}_control_random",
        better=better,
        columns=(label,),
        formula=formula,
        over=label,
        undefined=undefined,
        vacuous=label == "wrong",
    )


def _share(name: str, better: Better, column: str) -> MetricFormula:
    return MetricFormula(
        name=name, better=better, columns=(column,), formula=lambda t, n: ratio(t[..., 0] / OPTIONS, n)
    )


def _net(name: str) -> MetricFormula:
    """Right minus wrong, all answers that are not right being wrong."""
    return MetricFormula(
        name=name,
        better="higher",
        columns=("majority",),
        formula=lambda t, n: ratio(2 * t[..., 0] - n, n),
        bounds=SIGNED,
    )
