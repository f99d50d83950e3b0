"""Questions as the probes put them by default: what the embedded checkpoint is trained on."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.probes.prompts import (
    BRIEF,
    BRIEF_SHOTS,
    CHOICE,
    LEAD_QUESTION,
    QA,
    SOLVED_CHOICES,
    Examples,
    SolvedChoices,
    lettered,
    template,
)
from pytest_kbrel.records import ANSWER_CUE


def qa(question: str, shots: Examples = BRIEF_SHOTS) -> str:
    """Return a Reliable KB question; ``shots`` are (question, answer) examples, empty for zero-shot."""
    return template(QA).in_text(question, shots)


def brief(question: str, shots: Examples = BRIEF_SHOTS) -> str:
    """Return a Head-to-Tail question; ``shots`` are (question, answer) examples, empty for zero-shot."""
    return template(BRIEF).in_text(question, shots)


def led(question: str, lead: str) -> str:
    """Return a MONITOR question with the beginning of its answer."""
    return f"{template(LEAD_QUESTION, ANSWER_CUE).question(question)} {lead}"


def choice(
    question: str, options: Sequence[str], solved: SolvedChoices = SOLVED_CHOICES
) -> str:
    """Return a multiple-choice question with lettered options; ``solved`` ones stand before it."""
    return template(CHOICE).in_text(question, solved, lettered(options))
