"""Variant rules: each returns its name where an answer is another way of writing a gold, else ``""``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from pytest_kbrel.judges.matching.enumerations import is_region
from pytest_kbrel.judges.matching.parsing import (
    Gold,
    Question,
    collapse_doubles,
    is_number,
    singular,
)
from pytest_kbrel.judges.text.lexicon import (
    CITIES,
    COMPANY,
    DISTINGUISHING,
    FULL_NAMES,
    FUNCTION,
    GIVEN,
    HONORIFICS,
    INSTITUTIONS,
    LONG_TITLES,
    NATIONALITY,
    NATIONS,
    PARTICLES,
    PERSONS,
    PLACES,
    REGIONS,
    SUFFIXES,
    TITLES,
)
from pytest_kbrel.judges.text.tokens import UPPER, Words, read_words

_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PARENTHESIS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_POSSESSIVE = re.compile(r"['’]s\b")
_LIST = re.compile(r",|;|&|\band\b", re.IGNORECASE)
_LEAST_PART = 0.7
_MOST_WORDS = 6
_MOST_GIVEN = 3
# No name has one of them in it.
_TYING = FUNCTION - PARTICLES - GIVEN
# "Virginia Woolf" has a region's name.
_NO_GIVEN = INSTITUTIONS | DISTINGUISHING
_NO_SURNAMES = _NO_GIVEN | TITLES | PERSONS | PLACES | REGIONS | CITIES | NATIONS.keys()


def spelled(answer: Words, gold: Gold, question: Question) -> str:
    """The same words, whatever their diacritics, articles, hyphens and spaces."""
    if answer.words == gold.words:
        return "spelling"
    one = "".join(answer.words)
    if one == "".join(gold.words) and len(one) > 3 and not one.isdigit():
        return "spelling"
    if len(answer.words) != len(gold.words):
        return ""
    # "Antonela" and "Antonella"
    if all(
        one == other or collapse_doubles(one) == collapse_doubles(other)
        for one, other in _pairs(answer, gold)
    ):
        return "spelling"
    # "The church at Philippi", "the church in Philippi": only between a noun and a name.
    differing = [
        index for index, (one, other) in enumerate(_pairs(answer, gold)) if one != other
    ]
    index = differing[0]
    if len(differing) > 1 or not 0 < index < len(gold.words) - 1:
        return ""
    prepositions = {answer.words[index], gold.words[index]} == {"in", "at"}
    return (
        "spelling"
        if prepositions and not gold.cases[index - 1] and gold.cases[index + 1]
        else ""
    )


def _pairs(answer: Words, gold: Gold) -> list[tuple[str, str]]:
    return list(zip(answer.words, gold.words, strict=True))


def numeral(answer: Words, gold: Gold, question: Question) -> str:
    """Roman, Arabic or spelled: "Elizabeth the Second", "Elizabeth II"; Romans are read as digits already."""
    if len(answer.words) != len(gold.words) or len(gold.words) < 2:
        return ""
    one, other = (
        [_ORDINAL.sub(r"\1", word) for word in words]
        for words in (answer.words, gold.words)
    )
    return "numeral" if one == other or swap_ordinal(answer.words) == gold.words else ""


def swap_ordinal(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return "9th season" as "season 9" and the other way round, an empty tuple for other words."""
    ordinal, digits = _ORDINAL.fullmatch(words[0]), words[-1]
    if len(words) < 2:
        return ()
    if ordinal:
        return (*words[1:], ordinal[1])
    if digits.isdecimal() and len(digits) < 3 and words[0].isalpha():
        ending = (
            "th"
            if digits[-2:-1] == "1"
            else {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")
        )
        return (digits + ending, *words[:-1])
    return ()


def qualified(answer: Words, gold: Gold, question: Question) -> str:
    """The gold says in parentheses, or after the comma of a place, what only tells it from namesakes."""
    if answer.words in _heads(gold.text, question.asks_place):
        return "qualifier"
    # "Shakespeare, William"
    turned = answer.breaks.index(",", 1) if answer.breaks[1:].count(",") == 1 else 0
    return (
        "qualifier"
        if turned and answer.words[turned:] + answer.words[:turned] == gold.words
        else ""
    )


@lru_cache(maxsize=8192)
def without_parentheses(gold: str) -> str:
    """Return a gold without what stands in parentheses; the gold itself where nothing else is left."""
    if "(" not in gold and "[" not in gold:
        return gold
    return _PARENTHESIS.sub("", gold).strip() or gold


@lru_cache(maxsize=8192)
def list_items(gold: str) -> tuple[tuple[str, ...], ...]:
    """Return the words of each item of a gold that is a list ("Paris and London")."""
    if "," not in gold and "&" not in gold and " and " not in gold.lower():
        return ()
    return tuple(
        words for item in _LIST.split(gold) if (words := read_words(item).words)
    )


@lru_cache(maxsize=8192)
def _heads(gold: str, is_place: bool) -> tuple[tuple[str, ...], ...]:
    head, comma, rest = gold.partition(",")
    if not comma or "," in rest:
        return ()
    heads = []
    is_place = is_place or is_region(" ".join(read_words(rest).words))
    if is_place and head[:1].isupper() and rest.strip()[:1].isupper():
        heads.append(read_words(head).words)
    if len(rest.split()) <= 3 and len(head.split()) <= 2:
        heads.append(read_words(f"{rest.strip()} {head}").words)
    return tuple(words for words in heads if not FUNCTION.issuperset(words))


def titled(answer: Words, gold: Gold, question: Question) -> str:
    """With and without a title or an honorific."""
    one, other = strip_titles(answer).words, strip_titles(gold).words
    if (
        one != other
        or answer.words == gold.words
        or FUNCTION.issuperset(one)
        or titles_conflict(answer, gold)
    ):
        return ""
    dropped = {*answer.words, *gold.words} - set(one)
    return "title" if question.asks_person or dropped <= HONORIFICS | SUFFIXES else ""


def company(answer: Words, gold: Gold, question: Question) -> str:
    """With and without "Inc.", "Ltd", "GmbH"."""
    one, other = _without_form(answer.words), _without_form(gold.words)
    changed = len(one) < len(answer.words) or len(other) < len(gold.words)
    return "company" if changed and one == other else ""


def _without_form(words: tuple[str, ...]) -> tuple[str, ...]:
    end = len(words)
    while end > 1 and (
        words[end - 1] in COMPANY or (words[end - 1] == "and" and end < len(words))
    ):
        end -= 1
    # "F.C." and "C.F." fall into their letters.
    if end > 2 and words[end - 2 : end] in (("f", "c"), ("c", "f")):
        end -= 2
    return words[:end]


def plural(answer: Words, gold: Gold, question: Question) -> str:
    """One in the singular, one in the plural; not for names ("Adam", "Adams")."""
    if len(answer.words) != len(gold.words) or question.asks_person:
        return ""
    # "Handmaids" for "Handmaid's" is no plural.
    if question.asks_work and any(gold.cases) and not _POSSESSIVE.search(gold.text):
        return ""
    for index, (one, other) in enumerate(_pairs(answer, gold)):
        named = answer.cases[index] > 1 and gold.cases[index]
        if one != other and (named or singular(one) != singular(other)):
            return ""
    return "plural"


def person(answer: Words, gold: Gold, question: Question) -> str:
    """One person's name in two forms."""
    rule = same_person(answer, gold, full=question.has("full")) if gold.is_name else ""
    # Of a party or a country no word may be missing.
    return (
        "" if rule == "same" or (rule == "name" and not question.asks_person) else rule
    )


def surname(answer: Words, gold: Gold, question: Question) -> str:
    """The last name alone, where a person is asked for."""
    if not question.asks_person or not gold.is_name or question.has(*answer.words):
        return ""
    return "surname" if is_surname(answer, gold) else ""


def full_name(answer: Words, gold: Gold, question: Question) -> str:
    """The full name for a surname, where a person is asked for: "George Orwell" for "Orwell".

    Which of several persons of that surname is meant, the gold does not tell either.
    """
    if (
        not question.asks_person
        or not gold.is_name
        or question.has(*gold.words)
        or len(gold.words) > 1
    ):
        return ""
    name, last = strip_titles(answer), gold.words[0]
    if (
        last in _NO_SURNAMES
        or len(last) < 3
        or gold.cases[0] == UPPER
        or name.words[-1] != last
    ):
        return ""
    return "full name" if 2 <= len(name.words) <= 4 and _is_plain_name(name) else ""


def character(answer: Words, gold: Gold, question: Question) -> str:
    """A figure of fiction by the full name for the given name: "Donna Pinciotti" for "Donna"."""
    return (
        "given name"
        if _asks_figure(answer, gold, question) and _is_given_name(gold, answer)
        else ""
    )


def given_name(answer: Words, gold: Gold, question: Question) -> str:
    """A figure of fiction by the given name alone."""
    return (
        "given name"
        if _asks_figure(answer, gold, question) and _is_given_name(answer, gold)
        else ""
    )


def _asks_figure(answer: Words, gold: Gold, question: Question) -> bool:
    return question.asks_character and gold.is_name and not question.has(*answer.words)


def _is_given_name(short: Words, full: Words) -> bool:
    """Return True if one name is the given name of another: "Donna" of "Donna Pinciotti"."""
    whole, first = strip_titles(full), short.words[0]
    if (
        len(short.words) != 1
        or not 2 <= len(whole.words) <= _MOST_GIVEN
        or whole.words[0] != first
    ):
        return False
    if first in _NO_SURNAMES or len(first) < 3 or short.cases[0] in (0, UPPER):
        return False
    return _is_plain_name(whole)


def _is_plain_name(name: Words) -> bool:
    """Return True if all words have capitals, no mark parts them, and none is of no person's name."""
    return (
        all(name.cases)
        and not any(name.breaks[1:])
        and all(
            word.isalpha() and word not in _TYING and word not in _NO_GIVEN
            for word in name.words
        )
    )


def nation(answer: Words, gold: Gold, question: Question) -> str:
    """A nation for its people where a nationality or a country is asked for; "Venezuelan", "of Venezuela"."""
    one = _of_nation(answer.words)
    if not one or one != _of_nation(gold.words) or answer.words == gold.words:
        return ""
    asks_nation = question.has(*NATIONALITY) and not question.has(
        "language", "speak", "spoken"
    )
    return "nation" if len(one) > 1 or asks_nation else ""


def _of_nation(words: tuple[str, ...]) -> tuple[str, ...]:
    whole = " ".join(words)
    if whole in NATIONS:
        return (NATIONS[whole],)
    if words[0] in NATIONS:
        return (NATIONS[words[0]], *words[1:])
    if len(words) > 2 and words[-2] == "of" and words[-1] in NATIONS:
        return (NATIONS[words[-1]], *words[:-2])
    return ()


def asked_word(answer: Words, gold: Gold, question: Question) -> str:
    """The gold repeats what was asked for: "Spanish" for "Spanish language" after "What language"."""
    rest = _beyond_question(gold.words, question)
    if (
        rest[1:] == ("language",)
        and rest[0] in NATIONS
        and question.has("speak", "spoken")
    ):
        rest = rest[:1]
    if FUNCTION.issuperset(rest) or len(rest) == len(gold.words):
        return ""
    # Of "Queen Elizabeth The Queen Mother" the word "mother" is not enough.
    if 2 * len(rest) < len(gold.words) and not (len(rest) == 1 and is_number(rest[0])):
        return ""
    if _tells_apart(gold, rest):
        return ""
    right = _beyond_question(answer.words, question)
    # "Brazilian Portuguese" is Portuguese.
    if (
        question.has("language")
        and len(rest) == 1
        and len(right) == 2
        and right[0] not in DISTINGUISHING
    ):
        right = right[1:]
    if (
        rest != right
        and len(rest) == len(right) == 1
        and (ordinal := _ORDINAL.fullmatch(right[0]))
    ):
        # "The ninth" is season 9; "nine" may be how many there were.
        right = (ordinal[1],)
    return "question's word" if rest == right else ""


def _tells_apart(gold: Gold, rest: tuple[str, ...]) -> bool:
    """Return True if a word of the question is the telling half of a gold: Mexico City is not Mexico."""
    # Asked about Jersey City, "New" is not New Jersey.
    if DISTINGUISHING.issuperset(rest):
        return True
    if gold.words[: len(rest)] != rest or not gold.cases[-1]:
        return False
    if gold.words[-1] == "city":
        # "New York" is New York City.
        return len(rest) == 1
    name = " ".join(rest)
    return gold.words[-1] not in PLACES and (is_region(name) or name in CITIES)


def _beyond_question(words: tuple[str, ...], question: Question) -> tuple[str, ...]:
    """Return words without the question's at their ends; "Japanese" is one where it asks about Japan."""
    start, end = 0, len(words)
    while start < end and (words[start] in question.held or words[start] in FUNCTION):
        start += 1
    while end > start and (
        words[end - 1] in question.held or words[end - 1] in FUNCTION
    ):
        end -= 1
    if end - start > 1 and NATIONS.get(words[start]) in question.nations:
        start += 1
    return words[start:end]


def partial(answer: Words, gold: Gold, question: Question) -> str:
    """Most words of a longer gold, in its order, and nothing else; what is left out tells nothing apart."""
    if (
        len(gold.words) < 3
        or _LIST.search(gold.text)
        or len(answer.words) >= len(gold.words)
    ):
        return ""
    rest = iter(gold.words)
    if not all(word in rest for word in answer.words) or (
        question.asks_person and gold.is_name
    ):
        return ""
    content = [word for word in gold.words if word not in FUNCTION]
    repeated = [word for word in answer.words if word not in FUNCTION]
    left_out = set(content).difference(repeated)
    if any(word in DISTINGUISHING or not word.isalpha() for word in left_out):
        return ""
    if all(question.has(word) for word in repeated):
        return ""
    return "part" if len(repeated) >= max(2, _LEAST_PART * len(content)) else ""


Variant = Callable[[Words, Gold, Question], str]
# Loose ones come last, and only where the answer has one stretch that could be meant.
STRICT: Sequence[Variant] = (
    *(
        spelled,
        numeral,
        qualified,
        titled,
        company,
        plural,
        person,
        full_name,
        character,
        nation,
        asked_word,
    ),
)
LOOSE: Sequence[Variant] = (surname, given_name, partial)


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
    first, second = _stripped_titles(one), _stripped_titles(other)
    return not (first <= second or second <= first)


def _stripped_titles(name: Words) -> set[str]:
    size = len(strip_titles(name).words)
    last = len(name.words) - size
    start = next(
        (index for index, word in enumerate(name.words[:last]) if word not in TITLES),
        last,
    )
    return {
        LONG_TITLES.get(word, word)
        for word in (*name.words[:start], *name.words[start + size :])
    }


def same_person(answer: Words, gold: Words, *, full: bool = False) -> str:
    """Return the rule by which two names are one person's, ``""`` where they are not.

    The surname must be the same. Given names agree as ``initials`` or ``nickname``; ``name`` is a middle name
    that one of the two leaves out. A middle name that only the answer has may be another's (John Adams,
    John Quincy Adams): it counts as an initial only, or where the ``full`` name is asked for.
    """
    one, other = strip_titles(answer), strip_titles(gold)
    last = one.words[-1]
    if (
        last != other.words[-1]
        or len(last) < 2
        or last in FUNCTION
        or titles_conflict(answer, gold)
    ):
        return ""
    if not (
        2 <= len(one.words) <= _MOST_WORDS and 2 <= len(other.words) <= _MOST_WORDS
    ):
        return ""
    if not _TYING.isdisjoint((*one.words, *other.words)):
        return ""
    given, golden = _given_names(one), _given_names(other)
    if len(given) == len(golden):
        return _aligned(given, golden)
    rule = _aligned(given[:1], golden[:1])
    short, long = sorted((given, golden), key=len)
    # George H. W. Bush is not George W. Bush.
    if not rule or (len(short) > 1 and any(len(name) == 1 for name in (*short, *long))):
        return ""
    if (
        long is given
        and not full
        and any(len(name) > 1 for name in given[1:] if name not in golden)
    ):
        return ""
    rest = iter(long[1:])
    if not all(name in rest for name in short[1:]):
        return ""
    return "name" if rule == "same" else rule


def _given_names(name: Words) -> list[str]:
    """Return the given names; "JRR" falls into its letters."""
    names: list[str] = []
    for word, case in zip(name.words[:-1], name.cases, strict=False):
        initials = (
            case == UPPER
            and 2 <= len(word) <= 3
            and word.isalpha()
            and word not in PARTICLES
        )
        names += word if initials else [word]
    return names


def _aligned(given: Sequence[str], golden: Sequence[str]) -> str:
    rules = {_agree(one, other) for one, other in zip(given, golden, strict=True)}
    return next(rule for rule in ("", "initials", "nickname", "same") if rule in rules)


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
    name, whole = strip_titles(answer).words, strip_titles(gold).words
    if titles_conflict(answer, gold) or not 0 < len(name) < len(whole) <= _MOST_WORDS:
        return False
    # "Elizabeth II": the number is no surname.
    return (
        name == whole[-len(name) :]
        and _TYING.isdisjoint(whole)
        and len(name[-1]) > 2
        and name[-1].isalpha()
        and PARTICLES.issuperset(name[:-1])
    )
