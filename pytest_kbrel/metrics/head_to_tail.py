"""Head-to-Tail: Sun et al., "How Knowledgeable are Large Language Models (LLM)?", arXiv 2308.10168.

Accuracy + hallucination + missing rate = 1 (section 2.2), also with soft scores, because a missing answer
scores 0 in them. An answer that a judging model left unjudged is none of the three; it is counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.metrics.base import (
    MetricFormula,
    computable,
    formula,
    mean,
    rate,
    ratio,
)
from pytest_kbrel.metrics.calibration import calibration_metrics


def head_to_tail_metrics(columns: Sequence[str]) -> tuple[MetricFormula, ...]:
    """Return the metrics of a table with the columns correct, missing (0 or 1), f1 and rouge_l (0..1).

    Where the table has them, also of ``em`` (equal to an accepted answer), ``rules`` (right by the rule
    judge) and ``unparsable`` (a judging model's reply could not be read), each 0 or 1. All scores of a
    missing answer are 0. The others are those of :mod:`pytest_kbrel.metrics.calibration`.
    """
    unread = ("unparsable",) if "unparsable" in columns else ()
    metrics = (
        rate("accuracy", "correct"),
        _hallucination("hallucination", "correct", *unread, rate=True),
        rate("missing"),
        rate("accuracy_em", "em"),
        _hallucination("hallucination_em", "em", rate=True),
        mean("accuracy_f1", "f1"),
        _hallucination("hallucination_f1", "f1"),
        mean("accuracy_rouge_l", "rouge_l"),
        _hallucination("hallucination_rouge_l", "rouge_l"),
        rate("accuracy_rules", "rules"),
        _hallucination("hallucination_rules", "rules", rate=True),
        rate("unparsable"),
    )
    return (*computable(metrics, columns), *calibration_metrics(columns))


def _hallucination(
    name: str, score: str, *unread: str, rate: bool = False
) -> MetricFormula:
    return formula(
        name,
        (score, "missing", *unread),
        lambda t, n: ratio(n - t.sum(axis=-1), n),
        rate=rate,
    )
