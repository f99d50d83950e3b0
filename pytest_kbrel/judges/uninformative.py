"""Answers that say nothing, in three kinds; the rules stand in ``uninformative.yaml`` beside this file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from pytest_kbrel.judges.abstaining import Abstaining, Abstention, read_abstention
from pytest_kbrel.judges.tokens import LONGEST
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import record

_LONGEST_STRETCH = 12
_NOT_APPLICABLE = re.compile(r"[^\w/]*n\s*/\s*a[^\w/]*", re.IGNORECASE)


@record
class _Rules:
    word_times: int
    word_share: float
    stretch_times: int
    stretch_share: float
    question_words: int
    none: tuple[re.Pattern[str], ...]
    abstaining: Abstaining


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    import yaml

    text = resources.files("pytest_kbrel.judges").joinpath("uninformative.yaml").read_text(encoding="utf-8")
    data: Any = yaml.safe_load(text)
    unsure = data["unsure"]
    return _Rules(
        **data["repetition"],
        question_words=data["none"]["question_words"],
        none=_all(data["none"]["patterns"]),
        abstaining=Abstaining(
            patterns=_all(unsure["patterns"]),
            frames=_all(unsure["frames"]),
            hedges=_all(unsure["hedges"]),
            asides=re.compile(unsure["asides"]),
        ),
    )


def _all(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def is_not_applicable(answer: str) -> bool:
    """Tell whether an answer is "N/A", which normalisation would make "n", an answer."""
    return bool(_NOT_APPLICABLE.fullmatch(answer))


def is_uninformative(answer: str, question: str = "", extra: Sequence[tuple[str, str]] = ()) -> bool:
    """Tell whether an answer says nothing; see :func:`uninformative_kind`."""
    return bool(uninformative_kind(answer, question, extra))


def uninformative_kind(answer: str, question: str = "", extra: Sequence[tuple[str, str]] = ()) -> str:
    """Return "repetition", "none" or "unsure", ``""`` for an answer that says something.

    Reliable KB (arXiv 2407.13578), section 3.3: "repetition" echoes one string, "none" is empty or the
    question again, "unsure" says in its first sentence that the
    model cannot answer, and does not go on with "but" and a statement. ``extra`` are a user's own (kind,
    regular expression), tried after the shipped ones, in the answer as it is and normalised, capitals or not.
    """
    rules = _rules()
    said = normalise(answer[:LONGEST])
    if not said or is_not_applicable(answer):
        return "none"
    words = said.split()
    if is_repetition(words):
        return "repetition"
    if question and _repeats_question(words, normalise(question[:LONGEST]).split(), rules.question_words):
        return "none"
    if any(pattern.search(said) for pattern in rules.none):
        return "none"
    if _abstention(answer[:LONGEST]).abstains:
        return "unsure"
    for kind, expression in extra:
        pattern = _compiled(expression)
        if pattern.search(said) or pattern.search(answer[:LONGEST]):
            return kind
    return ""


@lru_cache(maxsize=256)
def _abstention(answer: str) -> Abstention:
    return read_abstention(answer, _rules().abstaining)


def said_besides(answer: str) -> str:
    """Return what an answer with an abstention in it says besides, ``""`` for nothing or a guess."""
    return _abstention(answer[:LONGEST]).besides


def is_repetition(words: Sequence[str]) -> bool:
    """Tell whether one word, or one stretch of words in a row, makes up most of a text."""
    rules = _rules()
    size = len(words)
    if size < rules.word_times:
        return False
    longest = max(Counter(words).values())
    if longest >= rules.word_times and longest / size >= rules.word_share:
        return True
    return any(
        _longest_run(words, length, rules.stretch_times) >= rules.stretch_share * size
        for length in range(2, min(_LONGEST_STRETCH, size // rules.stretch_times) + 1)
    )


def _longest_run(words: Sequence[str], length: int, times: int) -> int:
    """Return how many words the longest repetition of a stretch of ``length`` takes, 0 below ``times``."""
    best = same = 0
    for place in range(length, len(words)):
        same = same + 1 if words[place] == words[place - length] else 0
        best = max(best, same)
    return best + length if best + length >= times * length else 0


def _repeats_question(words: Sequence[str], asked: Sequence[str], least: int) -> bool:
    if list(words) == list(asked):
        return True
    if len(asked) < least:
        return False
    # "Q: ... A:", whose "A" goes as an article, and the question asked twice are the question still.
    frame = {"question", "answer", "q"}
    left = [word for word in words if word not in frame]
    body = [word for word in asked if word not in frame]
    return bool(body and left) and len(left) % len(body) == 0 and left == body * (len(left) // len(body))
