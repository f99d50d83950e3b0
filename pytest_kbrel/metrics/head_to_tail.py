"""Head-to-Tail: Sun et al., "How Knowledgeable are Large Language Models (LLM)?", arXiv 2308.10168.

Accuracy + hallucination + missing rate = 1 (section 2.2), also with soft scores, because a missing answer
scores 0 in them. Ours: an answer that a judging model left unjudged, or that was right once ("outdated", only
where facts have former objects), is none of the three; it is counted apart, and scores 0.
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
    judge), ``unparsable`` (a judging model's reply could not be read) and ``outdated``, each 0 or 1. All scores
    of a missing or outdated answer are 0. The others are those of :mod:`pytest_kbrel.metrics.calibration`.
    """
    unread = ("unparsable",) if "unparsable" in columns else ()
    old = ("outdated",) if "outdated" in columns else ()
    metrics = (
        rate("accuracy", "correct"),
        _hallucination("hallucination", "correct", *unread, *old, rate=True),
        rate("missing"),
        rate("outdated"),
        rate("accuracy_em", "em"),
        _hallucination("hallucination_em", "em", *old, rate=True),
        mean("accuracy_f1", "f1"),
        _hallucination("hallucination_f1", "f1", *old),
        mean("accuracy_rouge_l", "rouge_l"),
        _hallucination("hallucination_rouge_l", "rouge_l", *old),
        rate("accuracy_rules", "rules"),
        _hallucination("hallucination_rules", "rules", *old, rate=True),
        rate("unparsable"),
    )
    return (*computable(metrics, columns), *calibration_metrics(columns))


def _hallucination(
    name: str, score: str, *neither: str, rate: bool = False
) -> MetricFormula:
    return formula(
        name,
        (score, "missing", *neither),
        lambda t, n: ratio(n - t.sum(axis=-1), n),
        rate=rate,
    )
