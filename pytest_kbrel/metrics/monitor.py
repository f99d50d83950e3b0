"""MONITOR: Wang et al., "Assessing the Reliability of Large Language Model Knowledge", arXiv 2310.09820.

The three coefficients of eq. 3 are exactly 1/3, as in the authors' code (the paper prints 0.33).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pytest_kbrel.metrics.base import Array, Metric, quotient, ratio

CELL = "cell:"
BASE_CELL = "cell:none:0"


def pfd(anchor: npt.ArrayLike, frames: npt.ArrayLike) -> float:
    """Return the prompt-framing degree of one fact (eq. 1), 0..1.

    ``anchor`` holds the primary anchor's token probabilities, shape (L,); ``frames`` those of the same tokens
    in each frame without context, shape (R, L). Raises ``ValueError`` on other shapes.
    """
    return _distance(anchor, frames, "frames")


def ird(anchor: npt.ArrayLike, negatives: npt.ArrayLike) -> float:
    """Return the interference-relevance degree of one fact (eq. 2), 0..1.

    As :func:`pfd`, with the probabilities after each of M wrong contexts, shape (M, L).
    """
    return _distance(anchor, negatives, "negatives")


def degree(pfd: float, ird: float) -> float:
    """Return one fact's term of the numerator of eq. 3: sqrt((PFD^2 + IRD^2 + PFD * IRD) / 3)."""
    return math.sqrt((pfd * pfd + ird * ird + pfd * ird) / 3)


def pad(probabilities: Sequence[float], length: int) -> list[float]:
    """Return ``probabilities`` cut at ``length`` or filled up with zeros, as the authors' script does."""
    kept = list(probabilities[:length])
    return kept + [0.0] * (length - len(kept))


def _distance(anchor: npt.ArrayLike, others: npt.ArrayLike, what: str) -> float:
    primary = np.asarray(anchor, dtype=float)
    foreign = np.asarray(others, dtype=float)
    if primary.ndim != 1 or foreign.ndim != 2 or foreign.shape[1:] != primary.shape or not foreign.size:
        raise ValueError(
            f"anchor of shape (L,) and {what} of shape (at least 1, L), L > 0, are needed; "
            f"found {primary.shape} and {foreign.shape}"
        )
    return float(np.abs(foreign - primary).mean())


def monitor_metrics(columns: Sequence[str]) -> tuple[Metric, ...]:
    """Return the metrics of a table with ``columns``.

    These are kept, pfd, ird, term, anchor, then one ``cell:CONTEXT:FRAME`` for each cell, all of them already
    multiplied by "kept" (0 for facts the published variant drops). Accuracy is the mean of the cells'
    accuracies (``accuracy_avg`` is the paper's name for it), beside their highest, lowest and population
    standard deviation and the base cell's own.
    """
    undefined = "no fact was kept"
    unit = {"over": "kept", "undefined": undefined}
    metrics = [
        quotient(
            "monitor",
            "lower",
            "term",
            "anchor",
            bounds=(0.0, math.inf),
            over="kept",
            undefined="no fact was kept, or every primary anchor has probability 0",
        ),
        quotient("pfd", "lower", "pfd", "kept", **unit),
        quotient("ird", "lower", "ird", "kept", **unit),
        quotient("anchor_prob", "higher", "anchor", "kept", **unit),
    ]
    cells = tuple(column for column in columns if column.startswith(CELL))
    if cells:

        def over_cells(name: str, reduce: str) -> Metric:
            def formula(totals: Array, n: Array) -> Array:
                accuracies = ratio(totals[..., :-1], totals[..., -1:])
                reduced: Array = getattr(np, reduce)(accuracies, axis=-1)
                return reduced

            return Metric(
                name=name,
                better="lower" if reduce == "std" else "higher",
                columns=(*cells, "kept"),
                formula=formula,
                bounds=(0.0, 0.5) if reduce == "std" else (0.0, 1.0),
                over="kept",
                undefined=undefined,
            )

        metrics += [
            over_cells("accuracy", "mean"),
            over_cells("accuracy_avg", "mean"),
            over_cells("accuracy_max", "max"),
            over_cells("accuracy_min", "min"),
            over_cells("accuracy_std", "std"),
        ]
    if BASE_CELL in cells:
        metrics.append(quotient("accuracy_base", "higher", BASE_CELL, "kept", rate=True, **unit))
    return tuple(metrics)
