"""Classifier of uninformative answers, in three kinds; its rules are in ``uninformative.yaml``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from importlib import resources
from itertools import count
from typing import Any, Literal

from pytest_kbrel.judges.language import is_english, language_of
from pytest_kbrel.judges.text.lexicon import word_set
from pytest_kbrel.judges.text.tokens import LONGEST
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import base_language, record

_LONGEST_STRETCH = 12
_NOT_APPLICABLE = re.compile(r"[^\w/]*n\s*/\s*a[^\w/]*", re.IGNORECASE)
_BLANKED = re.compile(r"quoted(\d{1,4})z")
_SENTENCE = re.compile(r"(?<=[.!?…؟۔])\s+|(?<=[。！？｡।])\s*|\n+")
_CLAUSE = re.compile(
    r"[,;:()\[\]]\s+|[，；：、،؛]\s*|\s[-–—]+\s|[—]|[()](?=\W|$)|\s(?=but\s)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,:]\s+|[，：、،]\s*")
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|«[^»]*»|„[^“”]*[“”]|「[^」]*」|『[^』]*』")
_APOSTROPHES = str.maketrans(dict.fromkeys("´`ʼ′’‘", "'"))
_APART = re.compile(r"\s+(n't)\b", re.IGNORECASE)
_CONTRAST = re.compile(
    r"^\W*(?:but|however|though|still|nevertheless)\b", re.IGNORECASE
)
_WORD = re.compile(r"[^\W\d_][\w']*")
_SMALL = word_set("a an and as at but by de for from in is la le of on or the to with")
_TITLE_WORDS = 5
_FRAMES = 4
# An adverbial in front of the sentence proper; a relative clause speaks of what stands before it.
_LEAD = 3
_RELATIVE = re.compile(
    r"(?:who|whom|whose|which|that|where|der|die|das|dessen|deren|qui|que|dont|che|cui|quem|котор\w+)\b"
)
# Which denials of what a question takes for granted count: "lacks" only where no number is asked for.
_Denials = Literal["", "what is", "how many"]


@record
class _Patterns:
    """Compiled patterns of English and one other language, for normalised texts."""

    unsure: tuple[re.Pattern[str], ...]
    denials: tuple[re.Pattern[str], ...]
    frames: tuple[re.Pattern[str], ...]
    hedges: tuple[re.Pattern[str], ...]
    asides: re.Pattern[str]


@record
class _Abstention:
    """An abstention, and what else the answer states: ``""`` for nothing or a guess."""

    abstains: bool
    besides: str = ""


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
    rules, answer, code = _rules(), answer[:LONGEST], base_language(language)
    normal = normalise(answer)
    if not normal or is_not_applicable(answer):
        return "none"
    words = normal.split()
    if is_repetition(words):
        return "repetition"
    if question and _repeats_question(words, normalise(question[:LONGEST]).split()):
        return "none"
    if _matches(rules["none"]["patterns"], normal):
        return "none"
    denials = _denials(question, code) if unanswerable else ""
    if _read(answer, code, denials).abstains:
        return "unsure"
    for kind, pattern in extra:
        if re.search(pattern, normal, re.IGNORECASE) or re.search(
            pattern, answer, re.IGNORECASE
        ):
            return kind
    # A model may be asked in one language and decline in another, of which there are signs then.
    for other, sign in rules["signs"].items():
        if other != code and sign.search(answer):
            abstention = _read(answer, other, denials)
            if abstention.abstains and not abstention.besides:
                return "unsure"
    return ""


def is_not_applicable(answer: str) -> bool:
    """Return True if an answer is "N/A", which normalisation would make "n", an answer."""
    return bool(_NOT_APPLICABLE.fullmatch(answer))


def statement_besides(answer: str, language: str = "") -> str:
    """Return what an answer states beside an abstention, ``""`` for nothing or a guess."""
    return _read(answer[:LONGEST], base_language(language), "").besides


def without_frame(answer: str, language: str = "") -> str:
    """Return an answer without introductory clauses ("As far as I know, ...")."""
    patterns = _patterns(base_language(language), "")
    for _ in range(_FRAMES):
        end = _CLAUSE_END.search(answer)
        if (
            end is None
            or not answer[end.end() :].strip()
            or not _WORD.search(answer[: end.start()])
        ):
            return answer
        if _bare(language_of(language).folded(answer[: end.start()]), patterns):
            return answer
        answer = answer[end.end() :]
    return answer


def is_repetition(words: Sequence[str]) -> bool:
    """Return True if one word, or one stretch of words in a row, makes up most of a text."""
    limits, size = _rules()["repetition"], len(words)
    if size < limits["word_times"]:
        return False
    longest = max(Counter(words).values())
    if longest >= limits["word_times"] and longest / size >= limits["word_share"]:
        return True
    times = limits["stretch_times"]
    return any(
        _longest_run(words, length, times) >= limits["stretch_share"] * size
        for length in range(2, min(_LONGEST_STRETCH, size // times) + 1)
    )


def _longest_run(words: Sequence[str], length: int, times: int) -> int:
    """Return how many words the longest repetition of a stretch of ``length`` takes, 0 below ``times``."""
    best = same = 0
    for index in range(length, len(words)):
        same = same + 1 if words[index] == words[index - length] else 0
        best = max(best, same)
    return best + length if best + length >= times * length else 0


def _repeats_question(words: Sequence[str], question: Sequence[str]) -> bool:
    if words == question:
        return True
    if len(question) < _rules()["none"]["question_words"]:
        return False
    # "Q: ... A:", whose "A" goes as an article, and the question asked twice are the question still.
    frame = {"question", "answer", "q"}
    rest = [word for word in words if word not in frame]
    body = [word for word in question if word not in frame]
    return (
        bool(body and rest)
        and len(rest) % len(body) == 0
        and rest == body * (len(rest) // len(body))
    )


@lru_cache(maxsize=1)
def _rules() -> Any:
    """Return ``uninformative.yaml`` with its lists of patterns and its signs compiled."""
    import yaml

    text = (
        resources.files("pytest_kbrel.judges")
        .joinpath("uninformative.yaml")
        .read_text(encoding="utf-8")
    )
    rules: Any = yaml.safe_load(text)
    for kind in ("none", "unsure", "denials"):
        for key, patterns in rules[kind].items():
            if isinstance(patterns, list):
                rules[kind][key] = tuple(map(re.compile, patterns))
    rules["signs"] = {
        language: re.compile(sign, re.IGNORECASE)
        for language, sign in rules["signs"].items()
    }
    return rules


@lru_cache(maxsize=64)
def _patterns(code: str, denials: _Denials) -> _Patterns:
    unsure, denying, own = (
        _rules()["unsure"],
        _rules()["denials"],
        language_of(code).patterns,
    )
    counted = [*denying["patterns"], *own.get("denials", ())] if denials else []
    if denials == "what is":
        counted += [*denying["lacks"], *own.get("lacks", ())]
    return _Patterns(
        unsure=(*unsure["patterns"], *own.get("unsure", ())),
        denials=tuple(counted),
        frames=(*unsure["frames"], *own.get("frames", ())),
        hedges=(*unsure["hedges"], *own.get("hedges", ())),
        asides=re.compile(
            "|".join(filter(None, (unsure["asides"], language_of(code).asides)))
        ),
    )


def _denials(question: str, code: str) -> _Denials:
    """Return which denials count: "There are no bridges" is a number where one is asked for."""
    own = language_of(code).counting
    english = re.search(_rules()["denials"]["counting"], question, re.IGNORECASE)
    return (
        "how many"
        if english or (own is not None and own.search(question))
        else "what is"
    )


@lru_cache(maxsize=256)
def _read(answer: str, code: str, denials: _Denials) -> _Abstention:
    """Read an answer: the first sentence that is no mere frame tells whether it abstains.

    Quoted text and titles (five words and more with a capital each) are no abstention. One that goes on with
    "but" and a statement about something else than the model or the reader is none either.
    """
    if not is_english(code):
        language = language_of(code)
        answer = language.folded(answer)
        if language.contrast is not None:
            answer = language.contrast.sub(", but ", answer)
    answer = _APART.sub(r"\1", answer.translate(_APOSTROPHES))
    quoted = _QUOTED.findall(answer)
    if _WORD.search(_QUOTED.sub("", answer)):
        numbers = count()
        blanked = _QUOTED.sub(lambda _: f" quoted{next(numbers)}z ", answer)
    else:
        blanked = answer.translate(dict.fromkeys(map(ord, '"“”«»„')))
    abstention = _read_blanked(blanked, _patterns(code, denials))
    besides = _BLANKED.sub(
        lambda name: quoted[int(name[1])] if int(name[1]) < len(quoted) else name[0],
        abstention.besides,
    )
    return _Abstention(abstains=abstention.abstains, besides=besides)


def _read_blanked(blanked: str, patterns: _Patterns) -> _Abstention:
    """Read an answer with names in place of what it quotes."""
    sentences = [part for part in _SENTENCE.split(blanked) if _WORD.search(part)]
    if not sentences:
        return _Abstention(abstains=False)
    first = _first_that_says(sentences, patterns)
    clauses = [clause for clause in _CLAUSE.split(sentences[first]) if clause.strip()]
    refusing = [_abstains(clause, patterns) for clause in clauses]
    if patterns.denials and (index := _denying_clause(clauses, patterns)) is not None:
        refusing[index] = True
    if not any(refusing):
        if not _abstains(sentences[first], patterns, whole=True):
            other = [
                part
                for part in sentences
                if not any(
                    _abstains(clause, patterns) for clause in _CLAUSE.split(part)
                )
            ]
            return _Abstention(
                abstains=False,
                besides=" ".join(other) if len(other) < len(sentences) else "",
            )
        refusing = [True] * len(clauses)
    rest = clauses[refusing.index(True) + 1 :]
    after = [
        clause
        for sentence in sentences[first + 1 :]
        for clause in _CLAUSE.split(sentence)
    ]
    stated = _is_contrasted([*rest, *after], patterns)
    # "I am not sure, Paris" and "Paris, I am not sure" are guesses.
    while rest and not _CONTRAST.match(rest[0]):
        rest = rest[1:]
    besides = ". ".join(
        clause.strip(" .")
        for clause in (*rest, *after)
        if _bare(clause, patterns) and not _abstains(clause, patterns)
    )
    guessed = "?" in besides or _matches(patterns.hedges, normalise(besides))
    return _Abstention(
        abstains=not stated or guessed, besides="" if guessed else besides
    )


def _denying_clause(clauses: Sequence[str], patterns: _Patterns) -> int | None:
    """Return the index of the clause that denies what the question takes for granted.

    It is the first one that says something, or the next one behind a few words ("In 2032, ...").
    """
    bare = {
        index: text
        for index, clause in enumerate(clauses)
        if (text := _bare(clause, patterns))
    }
    for number, (index, text) in enumerate(list(bare.items())[:2]):
        if number and (
            len(next(iter(bare.values())).split()) > _LEAD or _RELATIVE.match(text)
        ):
            return None
        if not _is_title(clauses[index]) and _matches(patterns.denials, text):
            return index
    return None


def _first_that_says(sentences: Sequence[str], patterns: _Patterns) -> int:
    """Return the index of the first sentence that is neither a frame nor a question before another."""
    for index, sentence in enumerate(sentences):
        polite = sentence.endswith("?") and not _abstains(
            sentence, patterns, whole=True
        )
        if _bare(sentence, patterns) and not (polite and index + 1 < len(sentences)):
            return index
    return 0


def _bare(text: str, patterns: _Patterns) -> str:
    """Return a text normalised and without frames ("Sorry, but", "as an AI")."""
    normal = normalise(text)
    # One frame stands behind another ("Sorry, but unfortunately"); nobody means more than a few.
    for _ in range(_FRAMES):
        before = normal
        for frame in patterns.frames:
            normal = " ".join(frame.sub(" ", normal).split())
        if normal == before:
            break
    return normal


def _abstains(text: str, patterns: _Patterns, *, whole: bool = False) -> bool:
    """Return True if a clause, or with ``whole`` a sentence, abstains; a sentence that is all frame does."""
    bare = _bare(text, patterns)
    if not bare:
        # "So" and "However" say nothing and are titles.
        return whole and (" " in normalise(text) or "sorry" in normalise(text))
    if _is_title(text):
        return False
    if whole:
        return _matches(patterns.unsure, bare) or _matches(
            patterns.unsure, normalise(text)
        )
    return any(
        pattern.search(bare)
        for pattern in patterns.unsure
        if not pattern.pattern.endswith("$")
    )


def _is_title(text: str) -> bool:
    words = [word for word in _WORD.findall(text) if word.lower() not in _SMALL]
    return (
        len(words) >= _TITLE_WORDS
        and all(word[0].isupper() for word in words)
        and not text.isupper()
    )


def _is_contrasted(clauses: Sequence[str], patterns: _Patterns) -> bool:
    """Return True if a statement of something else than the model or the reader follows with "but"."""
    contrast = False
    for clause in clauses:
        contrast = contrast or bool(_CONTRAST.match(clause))
        bare = _bare(clause, patterns)
        if bare and _abstains(clause, patterns):
            # "But I can't tell" states nothing, and what follows it needs a "but" of its own.
            contrast = False
        elif bare and contrast:
            return not patterns.asides.search(bare)
    return False


def _matches(patterns: Sequence[re.Pattern[str]], text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)
