"""Golds that say more than the answer: what somebody is, or a clause about it, beside the name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_kbrel.judges.text.lexicon import (
    DISTINGUISHING,
    FUNCTION,
    NEGATIONS,
    PERSONS,
    TITLES,
    WORKS,
    listed,
)
from pytest_kbrel.judges.text.nationalities import NATIONAL
from pytest_kbrel.judges.text.tokens import Words, read_words

SHIPS = listed("hms rms uss ss hmas")
# What a name in a gold may be said to be; "the suburb Clichy" is not all of a place's name.
_KINDS = PERSONS | TITLES | WORKS | listed("band group company team club drama minister")
_CAPITAL_KINDS = TITLES | NATIONAL | {"prime", "minister", "usa", "uk"}
# A clause about a name begins with one of them, behind a comma.
_CLAUSE = re.compile(r",\s+(?:who|whom|whose|which|where|when|as|in|with|after|because|since|while)\s")
_LONGEST_CLAUSE = 400
# Bynames of rulers, behind a numeral that tells them apart as well
_BYNAME = re.compile(r"(\S+(?: \S+)? [IVX]+),? the [A-Z]\w+")


@lru_cache(maxsize=8192)
def said_shorter(gold: str) -> tuple[str, ...]:
    """Return a gold without what it tells of the thing that it names; nothing where it only names it.

    "The drama series Orion" is Orion, "U.S. President Ann Lee" is Ann Lee, "Orion, which opened in 1990" is
    Orion. What is left must have a capital: of "the band of brothers" nothing is left out.
    """
    return tuple(
        text
        for text in (*_without_kind(gold), *_without_clause(gold), *_without_byname(gold))
        if text != gold
    )


def _without_kind(gold: str) -> Iterator[str]:
    """Yield the name behind what it is said to be, where that is more than a title."""
    parts = [part for part in gold.split() if part.lower() not in ("a", "an", "the")]
    if not 1 < len(parts) <= 8 or "," in gold or '"' in gold:
        return
    if parts[0].lower().strip(".") in SHIPS:
        yield " ".join(parts[1:])
        return
    read = [read_words(part) for part in parts]
    name = len(parts)
    while name and _is_named(read[name - 1]):
        name -= 1
    before = read[:name]
    last = before[-1].words[-1] if before and before[-1].words else ""
    titles = all(piece.words and piece.words[0] in TITLES for piece in before)
    # "Prince Edward Island" and "Saint Petersburg" are whole names.
    if name < len(parts) and last in _KINDS and all(map(_tells_kind, before)) and not titles:
        yield " ".join(parts[name:])


def _tells_kind(piece: Words) -> bool:
    """Tell whether a word is in small letters, a nation's or of a title, and leaves the name what it is."""
    if any(word in FUNCTION or word in DISTINGUISHING or word in NEGATIONS for word in piece.words):
        return False
    return not piece.words or not piece.cases[0] or piece.words[0] in _CAPITAL_KINDS


def _is_named(piece: Words) -> bool:
    """Tell whether a word is part of a name and no title: "John", "F.", "III"."""
    return bool(piece.cases and piece.cases[0]) and piece.words[0] not in _CAPITAL_KINDS


def _without_byname(gold: str) -> Iterator[str]:
    """Yield "Sigismund I" of "Sigismund I the Old"."""
    found = _BYNAME.fullmatch(gold[:_LONGEST_CLAUSE])
    if found:
        yield found[1]


def _without_clause(gold: str) -> Iterator[str]:
    found = _CLAUSE.search(gold[:_LONGEST_CLAUSE])
    if found:
        head = gold[: found.start()].strip()
        words = read_words(head)
        named = all(case or word in FUNCTION for word, case in zip(words.words, words.cases, strict=True))
        if named and NEGATIONS.isdisjoint(words.words) and not FUNCTION.issuperset(words.words):
            yield head
