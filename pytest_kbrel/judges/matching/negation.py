"""Negation and redirection: "not Paris", "the wife of Bill Gates"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_kbrel.judges.matching.parsing import Answer, Question
from pytest_kbrel.judges.text.lexicon import (
    AWAY,
    BESIDE,
    CORRECTING,
    DIRECTIONS,
    FALSE,
    FRAMES,
    FUNCTION,
    NEGATING_PAIRS,
    NEGATIONS,
    RELATED,
    RELATIONS,
    SURROUNDINGS,
    UNITS,
    WORKS,
    word_set,
)

_NO_DENIAL = frozenset({"doubt", "only", "other"})
_DENYING = ("not", "never")
_COPULAS = ("is", "was", "are", "were", "would", "seems")
_REFERRING = ("it", "that", "this", "he", "she")
# So many words at most stand in brackets or between commas.
_ASIDE = 6
_ASIDES = 3
_COMPARING = word_set("surpassing beating overtaking outselling outnumbering exceeding defeating")
_COMPARED = frozenset({("followed", "by"), ("ahead", "of"), ("compared", "to"), ("compared", "with")})
# Who is asked for may be the one behind.
_RANKED = ("next", "after", "second", "third", "last", "behind", "beat", "lose", "lost")
_STEM = 5
_UNIT_NAMES = frozenset(UNITS.values())
_POSSESSIVE = re.compile(r"(\w+)(?:'s|(?<=s)')\s+(\w+)")
_OF_NAME = (
    "former",
    "formerly",
    "old",
    "original",
    "originally",
    "previously",
    "was",
    "were",
    "called",
    "named",
)


def is_negated(answer: Answer, span: tuple[int, int], question: Question) -> bool:
    """Return True if the clause negates what stands at ``span``, or the next sentence corrects it."""
    start, end = span
    words, breaks = answer.words, answer.breaks
    first = start
    while first > 0 and not breaks[first] and words[first - 1] != "but":
        first -= 1
    if not question.has(*NEGATIONS):
        for index in range(first, start):
            after = words[index + 1]
            # "No. 5" is a number, "no doubt" the contrary of a denial.
            numbered = words[index] == "no" and after[0].isdigit()
            if words[index] in NEGATIONS and after not in _NO_DENIAL and not numbered:
                return True
        stop = end
        while stop < min(len(words), end + 3) and not breaks[stop]:
            if words[stop] in _DENYING:
                return True
            stop += 1
        if _is_denied_across(answer, first, start) or _is_denied_behind(answer, span, question):
            return True
    pairs = list(zip(words[first:start], words[first + 1 : start], strict=False))
    if any(pair in NEGATING_PAIRS for pair in pairs) or words[max(0, start - 2) : start] in (
        ("anything", "but"),
        ("everything", "but"),
        ("all", "but"),
        ("far", "from"),
    ):
        return True
    return _is_called_false(words, first, span, question) or _is_corrected(answer, end)


def _is_denied_across(answer: Answer, first: int, start: int) -> bool:
    """Return True if a mark parts a denial from what stands at ``start``: "not, in fact, Paris".

    ``first`` is where the clause of ``start`` begins.
    """
    words, breaks = answer.words, answer.breaks
    if breaks[start] == '"':
        # What stands in brackets or quotation marks belongs to the clause around it.
        index = start - 1
        while index >= 0 and words[index] != "but":
            # "Never Let Me Go" is a title.
            if words[index] in _DENYING and (not answer.cases[index] or index == start - 1):
                return True
            if breaks[index]:
                return False
            index -= 1
        return False
    if first != start or breaks[start] != ",":
        return False
    index = start - 1
    while index > 0 and start - index <= _ASIDE and not breaks[index]:
        index -= 1
    # Either the mark is a colon, or it ends what the mark behind "not" began.
    denial = start - 1 if words[start - 1] in _DENYING else index - 1 if breaks[index] == "," else start
    return words[denial] in _DENYING


def _is_denied_behind(answer: Answer, span: tuple[int, int], question: Question) -> bool:
    """Return True if what follows takes it back: "Burma (Asia) is not it", "Burma: wrong"."""
    words, breaks, size = answer.words, answer.breaks, len(answer.words)
    for index in _goes_on_at(answer, span):
        at = index
        if breaks[at] == "." and words[at] in _REFERRING:
            at += 1
        elif breaks[at] and (words[at] in _DENYING or (words[at] in FALSE and not question.has(*FALSE))):
            if _denies_what_is_asked(answer, at + 1, question, verbless=True):
                return True
            continue
        if at + 1 >= size or words[at] not in _COPULAS:
            continue
        at += 1
        if breaks[at] == ",":
            # "Is, in fact, not"
            at = next((other for other in range(at + 1, min(size, at + _ASIDE)) if breaks[other]), at)
        if words[at] in _DENYING and _denies_what_is_asked(answer, at + 1, question):
            return True
        if words[at] in FALSE and not question.has(*FALSE):
            return True
    return False


def _goes_on_at(answer: Answer, span: tuple[int, int]) -> Iterator[int]:
    """Yield where the sentence goes on behind what stands at ``span``, and behind asides about it."""
    words, breaks, size = answer.words, answer.breaks, len(answer.words)
    start, index = span
    begins = start
    while begins > 0 and breaks[begins] != ".":
        begins -= 1
    # Only of what a sentence begins with it goes on to say something.
    leads = not any(word in FRAMES for word in words[begins:start])
    for _ in range(_ASIDES):
        if index >= size:
            return
        yield index
        if not leads or breaks[index] not in (",", '"'):
            break
        index = next((other for other in range(index + 1, size) if breaks[other]), size)
    while index < size and breaks[index] != ".":
        index += 1
    if index < size:
        yield index


def _denies_what_is_asked(answer: Answer, index: int, question: Question, *, verbless: bool = False) -> bool:
    """Return True if the clause from ``index`` on, behind "not", names only what is asked for: "the capital".

    Of "not Europe" the question may hold all, too; so the word that it asks for must be there.
    """
    words = answer.words
    first_word = next((word for word in question.words if word not in FUNCTION), "")
    stop = index
    # 'Not "Quito"'
    while stop < len(words) and (not answer.breaks[stop] or (stop == index and answer.breaks[stop] == '"')):
        stop += 1
    rest = [other for other in range(index, stop) if words[other] not in FUNCTION]
    if verbless or not rest:
        return [words[other] for other in rest] in ([], [first_word])
    return first_word in words[index:stop] and not any(answer.fresh[other] for other in rest)


def _is_called_false(words: Sequence[str], first: int, span: tuple[int, int], question: Question) -> bool:
    """Return True if it says "Paris is wrong", "it is false that ... Paris" or "I doubt that ... Paris"."""
    start, end = span
    if not question.has(*FALSE):
        copula = words[end : end + 1] and words[end] in _COPULAS
        # "Paris is not wrong" denies the denial.
        following = words[end + 1 : end + 3]
        if copula and not FALSE.isdisjoint(following) and "not" not in following:
            return True
        for index in range(first, start - 1):
            if words[index] in FALSE and words[index + 1] in ("that", "to"):
                return "not" not in words[max(first, index - 2) : index]
    # "I do not doubt" has "do not" before it.
    return any(
        words[index] == "doubt" and not {"i", "we"}.isdisjoint(words[max(first, index - 2) : index])
        for index in range(first, start)
    )


def _is_corrected(answer: Answer, end: int) -> bool:
    """Return True if what follows begins anew: "Paris? No, it is Lyon.", "Paris. Actually, it is Lyon."."""
    words, breaks = answer.words, answer.breaks
    stop = end
    while stop < len(words) and breaks[stop] != ".":
        if breaks[stop] and words[stop] == "no" and stop + 1 < len(words) and breaks[stop + 1]:
            return True
        stop += 1
    if stop + 1 >= len(words):
        return False
    if words[stop] == "no":
        return bool(breaks[stop + 1])
    if words[stop] not in CORRECTING:
        return False
    rest = range(stop + 1, len(words))
    return any(
        answer.fresh[index] and words[index] not in FUNCTION and (answer.cases[index] or not answer.cased)
        for index in rest
    )


def points_elsewhere(answer: Answer, span: tuple[int, int], question: Question) -> bool:
    """Return True if ``span`` only points to the answer: "featuring X", "near X", "X's wife"."""
    start, end = span
    words = answer.words
    before = words[max(0, start - 2) : start]
    if any(word in BESIDE and not question.has(word) for word in before):
        return True
    if _is_compared(answer, start, question):
        return True
    if _is_from(answer, start, question):
        return True
    if question.has(*RELATED) or question.has(*RELATIONS):
        return False
    if before[-1:] == ("of",) and before[0] in RELATIONS:
        return True
    if end >= len(words) or answer.breaks[end]:
        return False
    if words[end] in RELATIONS:
        return True
    return question.asks_person and _owns(answer, span)


def _is_compared(answer: Answer, start: int, question: Question) -> bool:
    """Return True if something else is set before it: "ahead of Paris", "followed by Paris"."""
    before = answer.words[max(0, start - 2) : start]
    compared = (
        before if before in _COMPARED else before[-1:] if before[-1:] and before[-1] in _COMPARING else ()
    )
    if not compared or question.has(*_RANKED):
        return False
    return not any(word[:_STEM] == compared[0][:_STEM] for word in question.words)


def _is_from(answer: Answer, start: int, question: Question) -> bool:
    """Return True if a place or a likeness is told from it: "north of Paris", "20 km from Paris"."""
    words = answer.words
    if not start or (answer.breaks[start] and answer.breaks[start] != '"'):
        return False
    last = words[start - 1]
    earlier = words[start - 2] if start > 1 else ""
    if last in AWAY:
        return not question.has(last)
    if last == "formerly":
        return not question.has(*_OF_NAME)
    if last == "to":
        return earlier in ("similar", "close", "next", "adjacent") and not question.has(earlier)
    if last not in ("of", "from") or question.has(earlier):
        return False
    if earlier in DIRECTIONS:
        # "In the north of France" is in France.
        return start < 3 or words[start - 3] not in ("in", "to")
    if last == "of":
        return earlier in SURROUNDINGS
    return earlier in _UNIT_NAMES or earlier in UNITS or earlier in ("away", "far")


def _owns(answer: Answer, span: tuple[int, int]) -> bool:
    """Return True if something of a person's is named, other than a work: "Bill Gates's lawyer"."""
    index = span[1]
    if answer.cases[index] or not answer.fresh[index] or answer.words[index] in FUNCTION:
        return False
    if not WORKS.isdisjoint(answer.words[index : index + 3]):
        return False
    owner, owned = answer.words[span[1] - 1], answer.words[index]
    return any(
        match[1].lower() == owner and match[2].lower() == owned for match in _POSSESSIVE.finditer(answer.text)
    )
