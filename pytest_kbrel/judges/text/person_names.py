"""Comparison of person names: initials, nicknames, middle names, surnames, titles."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.judges.text.lexicon import (
    CITIES,
    DISTINGUISHING,
    FULL_NAMES,
    FUNCTION,
    GIVEN,
    NATIONS,
    PARTICLES,
    PERSONS,
    PLACES,
    REGIONS,
    SUFFIXES,
    TITLES,
    word_set,
)
from pytest_kbrel.judges.text.tokens import UPPER, Words

_MOST_WORDS = 6
_MOST_GIVEN = 3
# No name has one of them in it.
_TYING = FUNCTION - PARTICLES - GIVEN
# With a capital they look like surnames: "the Continental Congress".
_INSTITUTIONS = word_set("""
    congress senate parliament court council committee government house cabinet army navy party union league
    church company board commission bank club office bureau agency department guard force reserve assembly
    united rangers city college university school society institute association federation
""")
_NO_SURNAMES = (
    _INSTITUTIONS | TITLES | PERSONS | PLACES | DISTINGUISHING | REGIONS | CITIES | frozenset(NATIONS)
)
# "Virginia Woolf" has a region's name.
_NO_GIVEN = _INSTITUTIONS | DISTINGUISHING
_LONG = {
    "jr": "junior",
    "sr": "senior",
    "capt": "captain",
    "gen": "general",
    "col": "colonel",
    "maj": "major",
    "lt": "lieutenant",
    "rev": "reverend",
}


def strip_titles(name: Words) -> Words:
    """Return a name without titles before it and without "Jr.", "PhD" and the like after it."""
    start, end = 0, len(name.words)
    while start < end - 1 and name.words[start] in TITLES:
        start += 1
    while end - 1 > start and name.words[end - 1] in SUFFIXES:
        end -= 1
    return name.part(start, end)


def titles_conflict(one: Words, other: Words) -> bool:
    """Return True if each of two names has a title or suffix that the other lacks: "Mr" and "Mrs"."""
    first, second = _dropped(one), _dropped(other)
    return not (first <= second or second <= first)


def _dropped(name: Words) -> set[str]:
    bare = strip_titles(name)
    size = len(bare.words)
    start = next(
        (index for index, word in enumerate(name.words) if word not in TITLES), len(name.words) - size
    )
    start = min(start, len(name.words) - size)
    return {_LONG.get(word, word) for word in (*name.words[:start], *name.words[start + size :])}


def same_person(answer: Words, gold: Words, *, full: bool = False) -> str:
    """Return the rule by which two names are one person's, ``""`` where they are not.

    The surname must be the same. Given names agree as ``initials`` or ``nickname``; ``name`` is a middle name
    that one of the two leaves out. A middle name that only the answer has may be another's (John Adams,
    John Quincy Adams): it counts as an initial only, or where the ``full`` name is asked for.
    """
    one, other = strip_titles(answer), strip_titles(gold)
    if titles_conflict(answer, gold):
        return ""
    if not (2 <= len(one.words) <= _MOST_WORDS and 2 <= len(other.words) <= _MOST_WORDS):
        return ""
    if one.words[-1] != other.words[-1] or len(one.words[-1]) < 2 or one.words[-1] in FUNCTION:
        return ""
    if not _TYING.isdisjoint((*one.words, *other.words)):
        return ""
    given, golden = _given(one), _given(other)
    if len(given) == len(golden):
        return _aligned(given, golden)
    rule = _aligned(given[:1], golden[:1])
    if not rule:
        return ""
    short, long = sorted((given, golden), key=len)
    # George H. W. Bush is not George W. Bush.
    if len(short) > 1 and any(len(name) == 1 for name in (*short, *long)):
        return ""
    if long is given and not full and any(len(name) > 1 for name in given[1:] if name not in golden):
        return ""
    rest = iter(long[1:])
    if not all(name in rest for name in short[1:]):
        return ""
    return "name" if rule == "same" else rule


def _given(name: Words) -> list[str]:
    """Return the given names; "JRR" falls into its letters."""
    names: list[str] = []
    for word, case in zip(name.words[:-1], name.cases, strict=False):
        initials = case == UPPER and 2 <= len(word) <= 3 and word.isalpha() and word not in PARTICLES
        names += list(word) if initials else [word]
    return names


def _aligned(given: Sequence[str], golden: Sequence[str]) -> str:
    rules = {_agree(one, other) for one, other in zip(given, golden, strict=True)}
    if "" in rules:
        return ""
    return next((rule for rule in ("initials", "nickname") if rule in rules), "same")


def _agree(one: str, other: str) -> str:
    if one == other:
        return "same"
    if (len(one) == 1 or len(other) == 1) and one[0] == other[0]:
        return "initials"
    shared = FULL_NAMES.get(one, frozenset()) & FULL_NAMES.get(other, frozenset())
    # "Bill" and "William", not "Bill" and "Will": two short forms may come from two names.
    return "nickname" if shared & {one, other} else ""


def is_surname(answer: Words, gold: Words) -> bool:
    """Return True if an answer is the last name of a person's full name, or the last with its particles."""
    name, whole = strip_titles(answer), strip_titles(gold)
    if titles_conflict(answer, gold):
        return False
    size = len(name.words)
    if not 0 < size < len(whole.words) <= _MOST_WORDS or name.words != whole.words[-size:]:
        return False
    if not _TYING.isdisjoint(whole.words):
        return False
    # "Elizabeth II": the number is no surname.
    return (
        len(name.words[-1]) > 2
        and name.words[-1].isalpha()
        and all(word in PARTICLES for word in name.words[:-1])
    )


def is_given_name(short: Words, full: Words) -> bool:
    """Return True if one name is the given name of another: "Donna" of "Donna Pinciotti"."""
    whole = strip_titles(full)
    if len(short.words) != 1 or not 2 <= len(whole.words) <= _MOST_GIVEN or whole.words[0] != short.words[0]:
        return False
    if short.words[0] in _NO_SURNAMES | _NO_GIVEN or len(short.words[0]) < 3 or short.cases[0] in (0, UPPER):
        return False
    if not _TYING.isdisjoint(whole.words) or not _NO_GIVEN.isdisjoint(whole.words):
        return False
    return all(whole.cases) and all(word.isalpha() for word in whole.words) and not any(whole.breaks[1:])


def is_full_name(answer: Words, gold: Words) -> bool:
    """Return True if an answer is a person's full name, and the gold the surname alone.

    Which of several persons of that surname is meant, the gold does not tell either.
    """
    name = strip_titles(answer)
    size = len(name.words)
    if len(gold.words) != 1 or not 2 <= size <= 4 or name.words[-1] != gold.words[0]:
        return False
    if gold.words[0] in _NO_SURNAMES or len(gold.words[0]) < 3 or gold.cases[0] == UPPER:
        return False
    if not _TYING.isdisjoint(name.words) or not _NO_GIVEN.isdisjoint(name.words):
        return False
    return all(name.cases) and all(word.isalpha() for word in name.words) and not any(name.breaks[1:])
