"""MONITOR: Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

The three coefficients of eq. 3 are exactly 1/3, as in the authors' code (the paper prints 0.33).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pytest_kbrel.metrics.base import (
    Array,
    MetricFormula,
    computable,
    formula,
    quotient,
    ratio,
)

CELL = "cell:"
BASE_CELL = "cell:none:0"
POSITIVE_CELL = "cell:positive:0"
# Behind it stand the numbers of the frames: "ablated:0+2+3+5".
ABLATED = "ablated:"
_FEW_FRAMES = "the relation has no more frames than the ablation takes"


def pfd(anchor: npt.ArrayLike, frames: npt.ArrayLike) -> float:
    """Return the prompt-framing degree of one fact (eq. 1), 0..1, or its interference-relevance degree (eq. 2).

    ``anchor`` holds the primary anchor's token probabilities, shape (L,); ``frames`` those of the same tokens
    in each frame without context, shape (R, L), or after each wrong context. Raises ``ValueError`` on other
    shapes.
    """
    primary = np.asarray(anchor, dtype=float)
    foreign = np.asarray(frames, dtype=float)
    if primary.ndim != 1 or foreign.shape[1:] != primary.shape or not foreign.size:
        raise ValueError(
            "an anchor of shape (L,) and others of shape (at least 1, L), L > 0, are needed; "
            f"found {primary.shape} and {foreign.shape}"
        )
    return float(np.abs(foreign - primary).mean())


def degree(pfd: float, ird: float) -> float:
    """Return one fact's term of the numerator of eq. 3: sqrt((PFD^2 + IRD^2 + PFD * IRD) / 3)."""
    return math.sqrt((pfd * pfd + ird * ird + pfd * ird) / 3)


def pad(probabilities: Sequence[float], length: int) -> list[float]:
    """Return ``probabilities`` cut at ``length`` or filled up with zeros, as the authors' script does."""
    cut = list(probabilities[:length])
    return cut + [0.0] * (length - len(cut))


def monitor_metrics(columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the metrics of a table with ``columns``.

    These are kept, pfd, ird, term, anchor; ``ablated:FRAMES``, the term with these frames only; calls and
    tokens of MONITOR (``calls:monitor``) and of the accuracy study; one ``cell:CONTEXT:FRAME`` for each cell;
    ``format:wp``, ``format:fc_pos`` and ``format:fc_neg``. All are already multiplied by "kept" (0 for facts
    the published variant drops); those that a table lacks bring no metric. Accuracy is the mean of all cells'
    accuracies (``accuracy_avg`` is the paper's name for it), beside their highest, lowest and population
    standard deviation. ``accuracy_qa``, ``accuracy_positive``, ``accuracy_negative`` and the deltas are those
    of Tables 2 and 3: over frames without context, and over the base frame after right and wrong contexts.
    """
    cells = [name for name in columns if name.startswith(CELL)]
    frames = [name for name in cells if name.startswith(f"{CELL}none:")]
    negatives = [
        name
        for name in cells
        if name.startswith(f"{CELL}negative") and name.endswith(":0")
    ]
    metrics = (
        quotient(
            "monitor",
            "term",
            "anchor",
            over="kept",
            undefined="no fact was kept, or every primary anchor has probability 0",
        ),
        _share("pfd", "pfd"),
        _share("ird", "ird"),
        _share("anchor_prob", "anchor"),
        *_over_cells("accuracy", cells),
        *_over_cells("accuracy_avg", cells),
        *_over_cells("accuracy_max", cells, "max"),
        *_over_cells("accuracy_min", cells, "min"),
        *_over_cells("accuracy_std", cells, "std"),
        _share("accuracy_base", BASE_CELL, rate=True),
        *_over_cells("accuracy_qa", frames),
        _share("accuracy_positive", POSITIVE_CELL, rate=True),
        *_over_cells("accuracy_negative", negatives),
        _delta("delta_positive", [POSITIVE_CELL]),
        *([_delta("delta_negative", negatives)] if negatives else ()),
        *(_ablated(name, len(frames)) for name in columns if name.startswith(ABLATED)),
        *(
            _share(f"accuracy_{name}", f"format:{name}")
            for name in ("wp", "fc_pos", "fc_neg")
        ),
        # Calls and tokens a kept fact, and how many times MONITOR's the study's are (Table 8).
        *(
            _share(f"{unit}_{what}", f"{unit}:{what}")
            for unit in ("calls", "tokens")
            for what in ("monitor", "study")
        ),
        *(
            quotient(
                f"saving_{unit}",
                f"{unit}:study",
                f"{unit}:monitor",
                over="kept",
                undefined=_UNDEFINED,
            )
            for unit in ("calls", "tokens")
        ),
    )
    return computable(metrics, columns)


_UNDEFINED = "no fact was kept"


def _share(name: str, column: str, **more: Any) -> MetricFormula:
    return quotient(name, column, "kept", undefined=_UNDEFINED, **more)


def _over_cells(
    name: str, cells: Sequence[str], reduce: str = "mean"
) -> Iterator[MetricFormula]:
    def reduced(totals: Array, n: Array) -> Array:
        accuracies: Array = getattr(np, reduce)(
            ratio(totals[..., :-1], totals[..., -1:]), axis=-1
        )
        return accuracies

    if cells:
        columns = (*cells, "kept")
        yield formula(name, columns, reduced, over="kept", undefined=_UNDEFINED)


def _delta(name: str, cells: Sequence[str]) -> MetricFormula:
    """Mean accuracy of ``cells`` minus that of the base cell (Table 3 prints it in brackets)."""

    def delta(totals: Array, n: Array) -> Array:
        return ratio(totals[..., :-2].mean(axis=-1) - totals[..., -2], totals[..., -1])

    return formula(
        name, (*cells, BASE_CELL, "kept"), delta, over="kept", undefined=_UNDEFINED
    )


def _ablated(column: str, frames: int) -> MetricFormula:
    drawn = len(column.removeprefix(ABLATED).split("+"))
    if drawn < frames:
        return quotient(
            "monitor_ablated", column, "anchor", over="kept", undefined=_UNDEFINED
        )
    return formula(
        "monitor_ablated",
        (column, "anchor"),
        lambda t, n: np.full_like(t[..., 0], math.nan),
        over="kept",
        undefined=_FEW_FRAMES,
    )
