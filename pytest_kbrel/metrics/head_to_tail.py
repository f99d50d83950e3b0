"""Head-to-Tail: Sun et al., "How Knowledgeable are Large Language Models (LLM)?", arXiv 2308.10168.

Accuracy + hallucination + missing rate = 1 (section 2.2), also with soft scores, because a missing answer
scores 0 in them.
"""

from __future__ import annotations

from pytest_kbrel.metrics.base import Metric, mean, ratio


def hallucination(accuracy: float, missing: float) -> float:
    """Return the hallucination rate H = 1 - A - M (section 2.2); all are shares of the facts, 0..1."""
    return 1.0 - accuracy - missing


def _hallucination(name: str, score: str, *, rate: bool = False) -> Metric:
    return Metric(
        name=name,
        better="lower",
        columns=(score, "missing"),
        formula=lambda t, n: ratio(n - t[..., 0] - t[..., 1], n),
        rate=rate,
    )


# On tables with the columns correct, missing (0 or 1), f1 and rouge_l (0..1, 0 where missing).
HEAD_TO_TAIL_METRICS = (
    mean("accuracy", "higher", "correct", rate=True),
    _hallucination("hallucination", "correct", rate=True),
    mean("missing", "lower", "missing", rate=True),
    mean("accuracy_f1", "higher", "f1"),
    _hallucination("hallucination_f1", "f1"),
    mean("accuracy_rouge_l", "higher", "rouge_l"),
    _hallucination("hallucination_rouge_l", "rouge_l"),
)
