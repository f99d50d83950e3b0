"""Containment: a gold inside a longer answer, and the contexts in which it does not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from pytest_kbrel.judges.matching.enumerations import is_region, is_trade
from pytest_kbrel.judges.matching.parsing import Answer, Gold, Question, Span
from pytest_kbrel.judges.text.dates import MONTHS
from pytest_kbrel.judges.text.lexicon import (
    CITIES,
    DIRECTIONS,
    DISTINGUISHING,
    FUNCTION,
    MODIFIERS,
    NATIONAL,
    NATIONS,
    NEGATIONS,
    PARTICLES,
    PERSONS,
    PHRASES,
    PLACES,
    TITLES,
    WORKS,
    word_set,
)
from pytest_kbrel.judges.text.tokens import (
    STARTS,
    UPPER,
    Words,
    has_no_case,
    is_unspaced,
    read_words,
)

SHIPS = word_set("hms rms uss ss hmas")
# What a name in a gold may be said to be; "the suburb Clichy" is not all of a place's name.
_KINDS = (
    PERSONS | TITLES | WORKS | word_set("band group company team club drama minister")
)
_CAPITAL_KINDS = TITLES | NATIONAL | {"prime", "minister", "usa", "uk"}
# A clause about a name begins with one of them, behind a comma.
_CLAUSE = re.compile(
    r",\s+(?:who|whom|whose|which|where|when|as|in|with|after|because|since|while)\s"
)
_LONGEST_CLAUSE = 400
_PHRASE = 4
_GRADE = re.compile(r"[A-Z]{1,2}[+#-]{1,2}")
# "The Confederate army" are the Confederates.
_ORGANISED = ("party", "army", "forces", "troops")
# Bynames of rulers, behind a numeral that tells them apart as well.
_BYNAME = re.compile(r"(\S+(?: \S+)? [IVX]+),? the [A-Z]\w+")


@lru_cache(maxsize=8192)
def short_forms(gold: str) -> tuple[str, ...]:
    """Return a gold without its description of what it names; nothing where it has none.

    "The drama series Orion" is Orion, "U.S. President Ann Lee" is Ann Lee, "Orion, which opened in 1990" is
    Orion, "Sigismund I the Old" is Sigismund I. What remains must have a capital: of "the band of brothers"
    nothing is dropped.
    """
    byname = _BYNAME.fullmatch(gold[:_LONGEST_CLAUSE])
    texts = (
        *_without_kind(gold),
        *_without_clause(gold),
        *((byname[1],) if byname else ()),
    )
    return tuple(text for text in texts if text != gold)


def _without_kind(gold: str) -> Iterator[str]:
    """Yield the name behind what it is said to be, where that is more than a title."""
    parts = [part for part in gold.split() if part.lower() not in ("a", "an", "the")]
    if not 1 < len(parts) <= 8 or "," in gold or '"' in gold:
        return
    if parts[0].lower().strip(".") in SHIPS:
        yield " ".join(parts[1:])
        return
    before = [read_words(part) for part in parts]
    while before and _is_named(before[-1]):
        before.pop()
    if (
        not before
        or len(before) == len(parts)
        or before[-1].at(len(before[-1].words) - 1) not in _KINDS
    ):
        return
    # "Prince Edward Island" and "Saint Petersburg" are whole names.
    if all(map(_tells_kind, before)) and not all(
        piece.at(0) in TITLES for piece in before
    ):
        yield " ".join(parts[len(before) :])


def _tells_kind(piece: Words) -> bool:
    """Return True if a word is in small letters, a nation's or of a title, and leaves the name what it is."""
    if not (FUNCTION | DISTINGUISHING | NEGATIONS).isdisjoint(piece.words):
        return False
    return not piece.words or not piece.cases[0] or piece.words[0] in _CAPITAL_KINDS


def _is_named(piece: Words) -> bool:
    """Return True if a word is part of a name and no title: "John", "F.", "III"."""
    return bool(piece.cases and piece.cases[0]) and piece.words[0] not in _CAPITAL_KINDS


def _without_clause(gold: str) -> Iterator[str]:
    if match := _CLAUSE.search(gold[:_LONGEST_CLAUSE]):
        head = gold[: match.start()].strip()
        read = read_words(head)
        named = all(
            case or word in FUNCTION
            for word, case in zip(read.words, read.cases, strict=True)
        )
        if (
            named
            and NEGATIONS.isdisjoint(read.words)
            and not FUNCTION.issuperset(read.words)
        ):
            yield head


def may_stand_at(answer: Answer, gold: Gold, start: int) -> bool:
    """Return True if a gold may be meant at a word of the answer: "IN" (India) is not the word "in"."""
    word = gold.words[0]
    if _GRADE.fullmatch(gold.text):
        # "A+", "C++": the sign tells it from the letter.
        return (
            re.search(rf"(?<!\w){re.escape(gold.text)}(?![\w+#-])", answer.text)
            is not None
        )
    if len(gold.words) > 1:
        return not FUNCTION.issuperset(gold.words)
    if word in FUNCTION:
        return False
    # Two letters are a name where a letter is a syllable or a word.
    if (
        len(word) > 2
        or not word.isalpha()
        or word in PHRASES.values()
        or (len(word) > 1 and is_unspaced(word))
    ):
        return True
    return answer.cases[start] == UPPER or len(answer.words) == 1


def is_other_name(answer: Answer, span: Span, gold: Gold, question: Question) -> bool:
    """Return True if a gold is only a part of another name: "Paris Hilton", "West Virginia", "Apollo 11"."""
    start, end = span
    words, breaks = answer.words, answer.breaks
    single = len(gold.words) == 1
    tied_before = start > 0 and not breaks[start]
    tied = [*([start - 1] if tied_before else []), *([] if answer.ends(end) else [end])]
    if tied_before:
        before = words[start - 1]
        within = _is_part(before, gold, question)
        if before in DISTINGUISHING and answer.fresh[start - 1] and not within:
            return True
        # "American ash" is another tree than "ash"; a longer name or a trade is the same in every nation.
        nation = before in NATIONAL and (not single or is_trade(gold.words[0]))
        # "West African" is no nation.
        nation = nation and not (
            answer.at(start - 2) in DISTINGUISHING and not breaks[start - 1]
        )
        # "The Italian Alps", asked for a range of Italy
        of_nation = before in NATIONAL and NATIONS.get(before) in question.nations
        # "Glasgow Prestwick Airport"
        served = before in CITIES and question.has("airport")
        harmless = (
            before in TITLES
            or before in SHIPS
            or nation
            or of_nation
            or within
            or served
        )
        if not harmless and _extends(answer, start - 1, gold):
            return True
    if single and (_is_before(answer, span, question) or _is_behind(answer, end)):
        return True
    common = single and not any(gold.cases) and not has_no_case(gold.words[0])
    short = answer.bare and len(words) <= _PHRASE
    if short and common and any(_makes_kind(answer, index, gold) for index in tied):
        return True
    if answer.ends(end):
        return False
    after = words[end]
    if after[0].isdigit() and answer.fresh[end] and len(after) < 4 and gold.is_name:
        # "December 7"
        return gold.words[-1] not in MONTHS
    return after not in _ORGANISED and _extends(answer, end, gold)


def is_city_named_so(answer: Answer, span: Span) -> bool:
    """Return True if the name of a nation or region is part of a city's: "Mexico City" is not Mexico."""
    start, end = span
    if answer.ends(end) or answer.words[end] != "city":
        return False
    # The capital of Luxembourg may be called Luxembourg.
    named = answer.fresh[start] and (answer.cases[end] or not answer.cased)
    return bool(named) and is_region(" ".join(answer.words[start:end]))


def _is_part(before: str, gold: Gold, question: Question) -> bool:
    """Return True if a direction names a part of where something lies: "South Asia", "western U.S."."""
    if (
        not question.asks_place
        or len(gold.words) > 1
        or before not in DIRECTIONS | {"central", "midwestern"}
    ):
        return False
    # South Africa and Northern Ireland are nations.
    return gold.words[0] in ("asia", "europe") or (
        gold.words[0] == "usa" and before.endswith("ern")
    )


def _is_before(answer: Answer, span: Span, question: Question) -> bool:
    """Return True if "University of" and the like stand before; "City of" adds nothing."""
    start, end = span
    if (
        start < 2
        or answer.words[start - 1] != "of"
        or answer.breaks[start]
        or answer.breaks[start - 1]
    ):
        return False
    word, case = answer.words[start - 2], answer.cases[start - 2]
    if word == "university" and question.has("university", "college", "ncaa"):
        # "University of California, Berkeley", "University of Arkansas at Little Rock"
        behind = end + (answer.at(end) in ("at", "in"))
        tied = behind < len(answer.words) and (
            behind > end or answer.breaks[end] == ","
        )
        return tied and bool(answer.cases[behind]) and answer.fresh[behind]
    if word in PLACES:
        return answer.at(start - 3) == "democratic"
    named = case > STARTS or (case == STARTS and answer.bare)
    return named and answer.fresh[start - 2] and word not in TITLES


def _is_behind(answer: Answer, end: int) -> bool:
    """Return True if "of Scotland" and the like stand behind and make it the name of one of many."""
    if end + 1 >= len(answer.words) or answer.words[end] != "of" or answer.breaks[end]:
        return False
    return (
        answer.cases[end + 1] >= STARTS
        and answer.fresh[end + 1]
        and bool(answer.cases[end - 1])
    )


def _makes_kind(answer: Answer, index: int, gold: Gold) -> bool:
    """Return True if a word beside a common noun makes it another thing: "peanut butter" is no butter."""
    word = answer.words[index]
    if (
        word in FUNCTION
        or word in MODIFIERS
        or not answer.fresh[index]
        or not word.isalpha()
    ):
        return False
    # "A marine biologist" is a biologist.
    return not is_trade(gold.words[0]) or word == "prime"


def _extends(answer: Answer, index: int, gold: Gold) -> bool:
    word, case = answer.words[index], answer.cases[index]
    if word in FUNCTION or not answer.fresh[index] or not word[0].isalpha():
        return word in PARTICLES - FUNCTION and index == 0
    if not any(gold.cases):
        return False
    if answer.cased:
        # A sentence begins with a capital whatever its first word is.
        return case > STARTS or (case == STARTS and len(gold.words) == 1)
    return len(answer.words) <= _PHRASE
