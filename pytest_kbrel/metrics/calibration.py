"""Calibration of a model's own probabilities: how well they tell its right answers from its wrong ones.

An answer's probability is the mean over its tokens. All figures are over the answers that were right or
wrong: how sure a model is of "I don't know" is no claim about the fact. AUROC, the calibration error and the
accuracy at a coverage depend on the order or the bins of all facts, and are no functions of column totals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pytest_kbrel.metrics.base import (
    Array,
    MetricFormula,
    RowStatistic,
    computable,
    formula,
    quotient,
    ratio,
)

# Whether an answer was right or wrong, its probability, that of its first token, and the squared difference
# between its probability and 1 (right) or 0 (wrong). Backends without probabilities have the first only.
ANSWERED = "answered"
PROBABILITIES = ("answer_prob", "first_prob", "squared_error")
BINS = 10
_NOTHING = "no answer was right or wrong"


def auroc(rows: Array, weights: Array) -> Array:
    """Return how often a right answer is more probable than a wrong one, ties counted half (0..1).

    This is the area under the ROC curve (Hanley and McNeil 1982). ``rows`` has shape (facts, 3): answered,
    correct (0 or 1) and the answer's probability (0..1). ``weights``, shape (..., facts), say how often each
    fact counts. The result has shape (...), nan without a right or a wrong answer.
    """
    _, right, wrong = _by_probability(rows, weights)
    below = np.cumsum(wrong, axis=-1) - wrong / 2
    return ratio((right * below).sum(axis=-1), right.sum(axis=-1) * wrong.sum(axis=-1))


def ece(rows: Array, weights: Array) -> Array:
    """Return the expected calibration error (0..1), arguments as in :func:`auroc`.

    It is the mean distance of the probabilities from the share of right answers in ten bins of equal width,
    weighted by their answers (Guo et al. 2017, eq. 3). A probability on an edge is in the lower bin.
    """
    answered, correct, probability = rows.T
    bins = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], probability)
    members = (bins[:, None] == np.arange(BINS)) * (answered * (probability - correct))[
        :, None
    ]
    return ratio(np.abs(weights @ members).sum(axis=-1), weights @ answered)


def accuracy_at(coverage: float) -> RowStatistic:
    """Return the share of right ones among so many of the most probable answers, arguments as in `auroc`.

    That is one minus the selective risk at this coverage (Geifman and El-Yaniv 2017, eq. 2). Of equally
    probable answers at the edge each counts in part, as if it were drawn.
    """

    def statistic(rows: Array, weights: Array) -> Array:
        counts, right, _ = (part[..., ::-1] for part in _by_probability(rows, weights))
        wanted = coverage * counts.sum(axis=-1, keepdims=True)
        covered = np.clip(wanted - (np.cumsum(counts, axis=-1) - counts), 0, counts)
        shares = np.divide(
            covered, counts, out=np.zeros_like(covered), where=counts > 0
        )
        return ratio((shares * right).sum(axis=-1), wanted[..., 0])

    return statistic


def _by_probability(rows: Array, weights: Array) -> tuple[Array, Array, Array]:
    """Return how many answers, right and wrong ones there are of each probability, the least first."""
    answered, correct, probability = rows.T
    order = np.argsort(probability, kind="stable")
    ordered = probability[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    counts, right = (
        np.add.reduceat((weights * share)[..., order], starts, axis=-1)
        for share in (answered, answered * correct)
    )
    return counts, right, counts - right


def calibration_metrics(columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the metrics of a table with the columns correct, :data:`ANSWERED` and :data:`PROBABILITIES`.

    ``selective_risk`` needs no probabilities: it is the share of wrong answers among those given, at the rate
    at which the model abstains by itself (El-Yaniv and Wiener 2010). What it would have answered instead of
    abstaining is not known. ``brier`` is the mean squared error of the probabilities (Brier 1950).
    """
    metrics = (
        formula(
            "selective_risk",
            ("correct", ANSWERED),
            lambda t, n: ratio(t[..., 1] - t[..., 0], t[..., 1]),
            rate=True,
            over=ANSWERED,
            undefined=_NOTHING,
            vacuous=True,
        ),
        quotient("brier", "squared_error", ANSWERED, undefined=_NOTHING),
        _of_rows("auroc", auroc, "no right or no wrong answer"),
        # In draws from few facts it is larger than in the facts: such an interval may leave the value out.
        _of_rows("ece", ece, _NOTHING, has_interval=False),
        _of_rows("accuracy_at_80", accuracy_at(0.8), _NOTHING),
        _of_rows("accuracy_at_50", accuracy_at(0.5), _NOTHING),
    )
    return computable(metrics, columns)


def _of_rows(
    name: str, statistic: RowStatistic, undefined: str, *, has_interval: bool = True
) -> MetricFormula:
    return formula(
        name,
        (ANSWERED, "correct", "answer_prob"),
        lambda totals, n: np.full(np.shape(n), math.nan),
        of_rows=statistic,
        has_interval=has_interval,
        over=ANSWERED,
        undefined=undefined,
    )
