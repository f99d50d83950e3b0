"""Classifier of uninformative answers; its patterns are data, a file a language in ``languages/``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pytest_kbrel.judges.words import LONGEST, data, fold_letters, read_words
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import LANGUAGES, base_language

# A word that stands so often; "Duran Duran" says its name twice.
_WORD_TIMES = 4
_NOT_APPLICABLE = re.compile(r"[^\w/]*n\s*/\s*a[^\w/]*", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…؟۔])\s+|(?<=[。！？｡।])\s*|\n+")
_CLAUSE = re.compile(
    r"(?i)[,;:()\[\]]\s+|[，；：、،؛]\s*|\s[-–—]+\s|—|[()](?=\W|$)|\s(?=but\s)"
)
_CONTRAST = re.compile(r"(?i)^\W*(?:but|however|though|still|nevertheless)\b")
_WORD = re.compile(r"[^\W\d_][\w']*")
# Every English abstention has one of them.
_TELLING = read_words(data("languages/en")["tells"]).known
# An adverbial in front of the sentence proper has so many words.
_LEAD = 3
_Found = tuple[re.Pattern[str], ...]


class Abstention(NamedTuple):
    """Whether an answer abstains, and whether it states something else beside that."""

    abstains: bool
    states: bool = False


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
    question again, "unsure" says in its first sentence that the model cannot answer, and does not go on with
    "but" and a statement. ``extra`` are a user's own (kind, regular expression), searched in the answer as it
    is and normalised. The patterns of ``language`` come beside the English ones; an answer that is nothing but
    an abstention in another of the languages is "unsure" too. Where the question is ``unanswerable``, so is
    an answer that denies what it takes for granted ("No such person exists.").
    """
    answer, code = answer[:LONGEST], base_language(language)
    words = read_words(answer, language).words
    if not words or _NOT_APPLICABLE.fullmatch(answer):
        return "none"
    if is_repetition(words):
        return "repetition"
    asked = read_words(question, language).words
    if asked and words == asked * (len(words) // len(asked)):
        return "none"
    telling = not _TELLING.isdisjoint(words)
    if telling and _matches(_own("en", "nothing"), normalise(answer)):
        return "none"
    denials = _both(code, "denials") if unanswerable else ()
    if (telling or denials or code != "en") and read_abstention(
        answer, code, denials
    ).abstains:
        return "unsure"
    for kind, pattern in extra:
        texts = (normalise(answer), answer)
        if any(re.search(pattern, text, re.IGNORECASE) for text in texts):
            return kind
    # A model may be asked in one language and decline in another, of which there are signs then.
    others = _other_languages(answer, frozenset(words))
    declined = (read_abstention(answer, other, denials) for other in others)
    return "unsure" if Abstention(abstains=True) in declined else ""


def is_repetition(words: Sequence[str]) -> bool:
    """Return True if one word makes up most of a text, or a few words in turn do."""
    counts = Counter(words)
    most = max(counts.values(), default=0)
    # In "the city of the city of the city of" each word stands as often as the others.
    return most >= _WORD_TIMES and most * min(len(counts), 2) >= len(words)


def _matches(patterns: _Found, text: str) -> bool:
    return any(pattern.search(text) for pattern in patterns)


@lru_cache(maxsize=256)
def _own(code: str, key: str) -> _Found:
    """Return the patterns of a language under a key, none of a language without a file."""
    listed = data(f"languages/{code}").get(key, ()) if code in LANGUAGES else ()
    patterns = (listed,) if isinstance(listed, str) else listed
    return tuple(re.compile(_folded(one, code), re.IGNORECASE) for one in patterns)


@lru_cache(maxsize=256)
def _both(code: str, key: str) -> _Found:
    """Return the patterns of English and of another language."""
    return _own("en", key) + (() if code == "en" else _own(code, key))


def _folded(text: str, code: str) -> str:
    """Return a text in the letters of the patterns: without accents, and "ä" as "ae" in German."""
    known = data(f"languages/{code}") if code in LANGUAGES else {}
    return fold_letters(text.translate(str.maketrans(known.get("fold", {}))))


def _other_languages(answer: str, words: frozenset[str]) -> list[str]:
    """Return the languages but for English that an answer may be in, by its words or its script."""
    known = data("languages/en")
    hits = [
        code for code, signs in known["signs"].items() if not words.isdisjoint(signs)
    ]
    if not answer.isascii():
        hits += [
            code for code, one in known["scripts"].items() if re.search(one, answer)
        ]
    return hits


@lru_cache(maxsize=1024)
def read_abstention(answer: str, code: str, denials: _Found = ()) -> Abstention:
    """Read an answer: the first sentence that is no mere frame tells whether it abstains.

    An answer that goes on with "but" and a statement about something else than the model or the reader is no
    abstention.
    """
    answer = _folded(answer, code)
    for contrast in _own(code, "contrast"):
        answer = contrast.sub(", but ", answer)
    sentences = [part for part in _SENTENCE.split(answer) if _WORD.search(part)]
    if not sentences:
        return Abstention(abstains=False)
    first = next((one for one in sentences[:-1] if _bare(one, code)), sentences[-1])
    rest = sentences[sentences.index(first) + 1 :]
    clauses = _clauses(first)
    refusing = [at for at, clause in enumerate(clauses) if _abstains(clause, code)]
    if denials and (denying := _denying(clauses, code, denials)) is not None:
        refusing.append(denying)
    if not refusing and _abstains(first, code, whole=True):
        refusing = [len(clauses) - 1]
    if not refusing:
        return Abstention(abstains=False)
    behind = clauses[min(refusing) + 1 :]
    others = [clause for sentence in rest for clause in _clauses(sentence)]
    stated = [
        clause
        for clause in (*behind, *others)
        if _bare(clause, code) and not _abstains(clause, code)
    ]
    text = ". ".join(stated)
    guessed = _matches(_both(code, "hedges"), normalise(text))
    contrasted = _is_contrasted((*behind, *others), code)
    return Abstention(not contrasted or guessed, bool(stated) and not guessed)


def _clauses(sentence: str) -> list[str]:
    return [clause for clause in _CLAUSE.split(sentence) if clause and clause.strip()]


@lru_cache(maxsize=1024)
def _bare(text: str, code: str) -> str:
    """Return a text normalised and without frames ("Sorry, but", "as an AI")."""
    normal = normalise(text)
    for frame in _both(code, "frames"):
        normal = " ".join(frame.sub(" ", normal).split())
    return normal


@lru_cache(maxsize=1024)
def _abstains(text: str, code: str, *, whole: bool = False) -> bool:
    """Return True if a clause, or with ``whole`` a sentence, abstains; one that is all frame does."""
    bare, unsure = _bare(text, code), _both(code, "unsure")
    if not bare:
        return whole
    return _matches(unsure, bare) or (whole and _matches(unsure, normalise(text)))


def _denying(clauses: Sequence[str], code: str, denials: _Found) -> int | None:
    """Return the index of the clause that denies what the question takes for granted.

    It is the first one that says something, or the next one behind a few words ("In 2032, ...").
    """
    said = [(i, text) for i, one in enumerate(clauses) if (text := _bare(one, code))]
    short = bool(said) and len(said[0][1].split()) <= _LEAD
    matching = (index for index, text in said[: 1 + short] if _matches(denials, text))
    return next(matching, None)


def _is_contrasted(clauses: Sequence[str], code: str) -> bool:
    """Return True if "but" and a statement of something else than the model or the reader follow."""
    contrast = False
    for clause in clauses:
        contrast = contrast or bool(_CONTRAST.match(clause))
        bare = _bare(clause, code)
        if bare and _abstains(clause, code):
            # "But I can't tell" states nothing, and what follows it needs a "but" of its own.
            contrast = False
        elif bare and contrast:
            return not _matches(_both(code, "asides"), bare)
    return False
