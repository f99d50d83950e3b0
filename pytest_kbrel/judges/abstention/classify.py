"""Classifier of uninformative answers, in three kinds; its rules are in ``uninformative.yaml``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, Literal

from pytest_kbrel.judges.abstention.patterns import (
    Abstention,
    AbstentionPatterns,
    read_abstention,
    strip_frames,
)
from pytest_kbrel.judges.language import is_english, language_of
from pytest_kbrel.judges.text.tokens import LONGEST
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import base_language, record

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
    abstaining: AbstentionPatterns
    denials: tuple[re.Pattern[str], ...]
    lacks: tuple[re.Pattern[str], ...]
    counting: re.Pattern[str]
    signs: tuple[tuple[str, re.Pattern[str]], ...]


@lru_cache(maxsize=1)
def _rules() -> _Rules:
    import yaml

    text = (
        resources.files("pytest_kbrel.judges.abstention")
        .joinpath("uninformative.yaml")
        .read_text(encoding="utf-8")
    )
    data: Any = yaml.safe_load(text)
    unsure = data["unsure"]
    return _Rules(
        **data["repetition"],
        question_words=data["none"]["question_words"],
        none=_all(data["none"]["patterns"]),
        abstaining=AbstentionPatterns(
            patterns=_all(unsure["patterns"]),
            denials=(),
            frames=_all(unsure["frames"]),
            hedges=_all(unsure["hedges"]),
            asides=re.compile(unsure["asides"]),
        ),
        denials=_all(data["denials"]["patterns"]),
        lacks=_all(data["denials"]["lacks"]),
        counting=re.compile(data["denials"]["counting"], re.IGNORECASE),
        signs=tuple((code, re.compile(sign, re.IGNORECASE)) for code, sign in data["signs"].items()),
    )


def _all(patterns: Sequence[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern) for pattern in patterns)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def is_not_applicable(answer: str) -> bool:
    """Return True if an answer is "N/A", which normalisation would make "n", an answer."""
    return bool(_NOT_APPLICABLE.fullmatch(answer))


def is_uninformative(
    answer: str, question: str = "", extra: Sequence[tuple[str, str]] = (), *, language: str = ""
) -> bool:
    """Return True if an answer says nothing; see :func:`uninformative_kind`."""
    return bool(uninformative_kind(answer, question, extra, language=language))


def uninformative_kind(
    answer: str,
    question: str = "",
    extra: Sequence[tuple[str, str]] = (),
    *,
    language: str = "",
    unanswerable: bool = False,
) -> str:
    """Return "repetition", "none" or "unsure", ``""`` for an answer that says something.

    Reliable KB (arXiv 2407.13578), section 3.3: "repetition" echoes one string, "none" is empty or the
    question again, "unsure" says in its first sentence that the
    model cannot answer, and does not go on with "but" and a statement. ``extra`` are a user's own (kind,
    regular expression), tried after the shipped ones, in the answer as it is and normalised, capitals or not.
    The patterns of ``language`` come beside the English ones; an answer that is nothing but an abstention in
    another of the languages is "unsure" too. Where the question is ``unanswerable``, an
    answer that denies what it takes for granted ("No such person exists.") is "unsure" as well.
    """
    rules = _rules()
    normal = normalise(answer[:LONGEST])
    if not normal or is_not_applicable(answer):
        return "none"
    words = normal.split()
    if is_repetition(words):
        return "repetition"
    if question and _repeats_question(words, normalise(question[:LONGEST]).split(), rules.question_words):
        return "none"
    if any(pattern.search(normal) for pattern in rules.none):
        return "none"
    denying = _denying(question, language) if unanswerable else ""
    if _abstention(answer[:LONGEST], base_language(language), denying).abstains:
        return "unsure"
    for kind, expression in extra:
        pattern = _compiled(expression)
        if pattern.search(normal) or pattern.search(answer[:LONGEST]):
            return kind
    return "unsure" if _abstains_elsewhere(answer[:LONGEST], base_language(language), denying) else ""


def _abstains_elsewhere(answer: str, code: str, denying: Denying) -> bool:
    """Return True if an answer is nothing but an abstention in another language than the one stated.

    A model may be asked in one language and decline in another. Only languages of which a sign is in the
    answer are looked at.
    """
    for other, sign in _rules().signs:
        if other != code and sign.search(answer):
            abstention = _abstention(answer, other, denying)
            if abstention.abstains and not abstention.besides:
                return True
    return False


@lru_cache(maxsize=256)
def _abstention(answer: str, code: str, denying: Denying) -> Abstention:
    language = language_of(code)
    if not is_english(code):
        answer = language.folded(answer)
        if language.contrast is not None:
            answer = language.contrast.sub(", but ", answer)
    return read_abstention(answer, _abstaining(code, denying))


Denying = Literal["", "what is", "how many"]


def _denying(question: str, tag: str) -> Denying:
    """Return which denials count: "There are no bridges" is a number where one is asked for."""
    own = language_of(tag).counting
    counts = _rules().counting.search(question) or (own is not None and own.search(question))
    return "how many" if counts else "what is"


@lru_cache(maxsize=64)
def _abstaining(code: str, denying: Denying) -> AbstentionPatterns:
    rules, language = _rules(), language_of(code)
    english = rules.abstaining
    denials = [*rules.denials, *language.denials] if denying else []
    if denying == "what is":
        denials += [*rules.lacks, *language.lacks]
    asides = [english.asides.pattern, *([language.asides] if language.asides else [])]
    return AbstentionPatterns(
        patterns=(*english.patterns, *language.unsure),
        denials=tuple(denials),
        frames=(*english.frames, *language.frames),
        hedges=(*english.hedges, *language.hedges),
        asides=re.compile("|".join(asides)),
    )


def statement_besides(answer: str, language: str = "") -> str:
    """Return what an answer states beside an abstention, ``""`` for nothing or a guess."""
    return _abstention(answer[:LONGEST], base_language(language), "").besides


def without_frame(answer: str, language: str = "") -> str:
    """Return an answer without introductory clauses ("As far as I know, ...")."""
    return strip_frames(answer, _abstaining(base_language(language), ""), language_of(language).folded)


def is_repetition(words: Sequence[str]) -> bool:
    """Return True if one word, or one stretch of words in a row, makes up most of a text."""
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
    for index in range(length, len(words)):
        same = same + 1 if words[index] == words[index - length] else 0
        best = max(best, same)
    return best + length if best + length >= times * length else 0


def _repeats_question(words: Sequence[str], question: Sequence[str], least: int) -> bool:
    if list(words) == list(question):
        return True
    if len(question) < least:
        return False
    # "Q: ... A:", whose "A" goes as an article, and the question asked twice are the question still.
    frame = {"question", "answer", "q"}
    rest = [word for word in words if word not in frame]
    body = [word for word in question if word not in frame]
    return bool(body and rest) and len(rest) % len(body) == 0 and rest == body * (len(rest) // len(body))
