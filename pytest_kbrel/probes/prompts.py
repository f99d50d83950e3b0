"""Every sentence that is put to a model, in one place.

The recipe of the embedded checkpoint trains on these builders, so prompts and training cannot drift apart.
"""

from __future__ import annotations

from collections.abc import Sequence

UNSURE = "unsure"
LETTERS = "ABCDEFGHIJ"

_QA_INSTRUCTION = 'Give only the answer to the question. Write "unsure" if you do not know it.'
_BRIEF_INSTRUCTION = 'Reply in as few words as you can. Write "unsure" if you do not know.'
_CHOICE_INSTRUCTION = "Pick the option that answers the question. Reply with that option only."

# One answerable and one unanswerable example, as Head-to-Tail section 3.2 has it.
BRIEF_SHOTS: tuple[tuple[str, str], ...] = (
    ("Which planet is closest to the Sun?", "Mercury"),
    ("Which river flows through the town of Ombrelvane?", UNSURE),
)


def fill(template: str, subject: str, obj: str = "[Y]") -> str:
    """Put subject and object into a frame or statement."""
    return template.replace("[X]", subject).replace("[Y]", obj)


def with_context(context: str, question: str) -> str:
    """Put a context entity in front of a question (MONITOR, probes 4 and 5 of Table 1)."""
    return f"{context}. {question}"


def qa(question: str) -> str:
    """Zero-shot question of the Reliable KB probe."""
    return f"{_QA_INSTRUCTION}\nQuestion: {question}\nAnswer:"


def brief(question: str, shots: Sequence[tuple[str, str]] = BRIEF_SHOTS) -> str:
    """Head-to-Tail question; ``shots`` are (question, answer) examples, empty for zero-shot."""
    blocks = [f"Question: {q}\nAnswer: {a}" for q, a in shots]
    return "\n\n".join([_BRIEF_INSTRUCTION, *blocks, f"Question: {question}\nAnswer:"])


def choice(question: str, options: Sequence[str]) -> str:
    """Multiple-choice question with lettered options."""
    lines = [f"{letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    return "\n".join([_CHOICE_INSTRUCTION, f"Question: {question}", *lines, "Answer:"])


def check(statement: str) -> str:
    """Fact-checking question about a statement."""
    return f"Statement: {statement} Is the statement true or false?"
