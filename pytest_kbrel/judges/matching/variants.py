"""Variant rules: each returns its name where an answer is another way of writing a gold, else ``""``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from pytest_kbrel.judges.matching.parsing import Gold, Question, collapse_doubles, is_number, singular
from pytest_kbrel.judges.text.lexicon import (
    CITIES,
    COMPANY,
    DISTINGUISHING,
    FULL_NAMES,
    FUNCTION,
    GIVEN,
    HONORIFICS,
    NATIONALITY,
    NATIONS,
    PARTICLES,
    PERSONS,
    PLACES,
    REGIONS,
    SUFFIXES,
    TITLES,
    word_set,
)
from pytest_kbrel.judges.text.tokens import UPPER, Words, read_words

_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")
_PARENTHESIS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_POSSESSIVE = re.compile(r"['’]s\b")
_LIST = re.compile(r",|;|&|\band\b", re.IGNORECASE)
_LEAST_PART = 0.7


def spelled(answer: Words, gold: Gold, question: Question) -> str:
    """The same words, whatever their diacritics, articles, hyphens and spaces."""
    if answer.words == gold.words:
        return "spelling"
    one, other = "".join(answer.words), "".join(gold.words)
    if one == other and len(one) > 3 and not one.isdigit():
        return "spelling"
    # "Antonela" and "Antonella"
    alike = len(answer.words) == len(gold.words) and all(map(_alike, answer.words, gold.words))
    return "spelling" if alike or _lies_alike(answer, gold) else ""


def _lies_alike(answer: Words, gold: Gold) -> bool:
    """Return True if only "in" and "at" differ between a noun and a name ("the church at Philippi")."""
    if len(answer.words) != len(gold.words):
        return False
    other = [at for at, (one, two) in enumerate(zip(answer.words, gold.words, strict=True)) if one != two]
    if len(other) != 1 or not 0 < other[0] < len(gold.words) - 1:
        return False
    before, after = gold.cases[other[0] - 1], gold.cases[other[0] + 1]
    return {answer.words[other[0]], gold.words[other[0]]} == {"in", "at"} and not before and bool(after)


def _alike(one: str, other: str) -> bool:
    return one == other or collapse_doubles(one) == collapse_doubles(other)


def numeral(answer: Words, gold: Gold, question: Question) -> str:
    """Roman, Arabic or spelled: "Elizabeth the Second", "Elizabeth II"; Romans are read as digits already."""
    if len(answer.words) != len(gold.words) or len(gold.words) < 2:
        return ""
    one, other = (tuple(_ORDINAL.sub(r"\1", word) for word in words) for words in (answer.words, gold.words))
    if one == other:
        return "numeral"
    return "numeral" if swap_ordinal(answer.words) == gold.words else ""


def swap_ordinal(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return "9th season" as "season 9" and the other way round; nothing where neither is said."""
    ordinal = _ORDINAL.fullmatch(words[0])
    if len(words) < 2:
        return ()
    if ordinal:
        return (*words[1:], ordinal[1])
    if words[-1].isdecimal() and len(words[-1]) < 3 and words[0].isalpha():
        return (_ordinal(words[-1]), *words[:-1])
    return ()


def _ordinal(digits: str) -> str:
    ending = {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")
    return digits + ("th" if digits[-2:-1] == "1" else ending)


def qualified(answer: Words, gold: Gold, question: Question) -> str:
    """The gold says in parentheses, or after the comma of a place, what only tells it from namesakes."""
    if answer.words in _heads(gold.text, question.asks_place):
        return "qualifier"
    # "Shakespeare, William"
    turned = answer.breaks.index(",", 1) if answer.breaks[1:].count(",") == 1 else 0
    return "qualifier" if turned and answer.words[turned:] + answer.words[:turned] == gold.words else ""


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
    return tuple(words for item in _LIST.split(gold) if (words := read_words(item).words))


@lru_cache(maxsize=8192)
def _heads(gold: str, is_place: bool) -> tuple[tuple[str, ...], ...]:
    heads = []
    head, comma, rest = gold.partition(",")
    within = " ".join(read_words(rest).words) if comma else ""
    is_place = is_place or NATIONS.get(within) == within or within in REGIONS
    if is_place and comma and "," not in rest and head[:1].isupper() and rest.strip()[:1].isupper():
        heads.append(read_words(head).words)
    if comma and "," not in rest and len(rest.split()) <= 3 and len(head.split()) <= 2:
        heads.append(read_words(f"{rest.strip()} {head}").words)
    return tuple(words for words in heads if words and not FUNCTION.issuperset(words))


def titled(answer: Words, gold: Gold, question: Question) -> str:
    """With and without a title or an honorific."""
    one, other = strip_titles(answer).words, strip_titles(gold).words
    if one != other or answer.words == gold.words or FUNCTION.issuperset(one):
        return ""
    if titles_conflict(answer, gold):
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
    while end > 1 and (words[end - 1] in COMPANY or (words[end - 1] == "and" and end < len(words))):
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
    for index, (one, other) in enumerate(zip(answer.words, gold.words, strict=True)):
        if one != other:
            named = answer.cases[index] > 1 and gold.cases[index]
            if named or singular(one) != singular(other):
                return ""
    return "plural"


def person(answer: Words, gold: Gold, question: Question) -> str:
    """One person's name in two forms."""
    if not gold.is_name:
        return ""
    rule = same_person(answer, gold, full=question.has("full"))
    # Of a party or a country no word may be missing.
    if rule == "same" or (rule == "name" and not question.asks_person):
        return ""
    return rule


def surname(answer: Words, gold: Gold, question: Question) -> str:
    """The last name alone, where a person is asked for."""
    if not question.asks_person or not gold.is_name or question.has(*answer.words):
        return ""
    return "surname" if is_surname(answer, gold) else ""


def full_name(answer: Words, gold: Gold, question: Question) -> str:
    """The full name for a surname, where a person is asked for: "George Orwell" for "Orwell"."""
    if not question.asks_person or not gold.is_name or question.has(*gold.words):
        return ""
    return "full name" if is_full_name(answer, gold) else ""


def character(answer: Words, gold: Gold, question: Question) -> str:
    """A figure of fiction by the full name for the given name: "Donna Pinciotti" for "Donna"."""
    if not question.asks_character or not gold.is_name or question.has(*answer.words):
        return ""
    return "given name" if is_given_name(gold, answer) else ""


def given_name(answer: Words, gold: Gold, question: Question) -> str:
    """A figure of fiction by the given name alone."""
    if not question.asks_character or not gold.is_name or question.has(*answer.words):
        return ""
    return "given name" if is_given_name(answer, gold) else ""


def nation(answer: Words, gold: Gold, question: Question) -> str:
    """A nation for its people where a nationality or a country is asked for; "Venezuelan", "of Venezuela"."""
    one, other = _of_nation(answer.words), _of_nation(gold.words)
    if one != other or one is None or answer.words == gold.words:
        return ""
    if len(one) > 1:
        return "nation"
    asks_nation = question.has(*NATIONALITY) and not question.has("language", "speak", "spoken")
    return "nation" if asks_nation else ""


def _of_nation(words: tuple[str, ...]) -> tuple[str, ...] | None:
    whole = " ".join(words)
    if whole in NATIONS:
        return (NATIONS[whole],)
    if words[0] in NATIONS:
        return (NATIONS[words[0]], *words[1:])
    if len(words) > 2 and words[-2] == "of" and words[-1] in NATIONS:
        return (NATIONS[words[-1]], *words[:-2])
    return None


def asked_word(answer: Words, gold: Gold, question: Question) -> str:
    """The gold repeats what was asked for: "Spanish" for "Spanish language" after "What language"."""
    rest = _beyond_question(gold.words, question)
    if rest[1:] == ("language",) and rest[0] in NATIONS and question.has("speak", "spoken"):
        rest = rest[:1]
    # Of "Queen Elizabeth The Queen Mother" the word "mother" is not enough.
    if len(rest) == len(gold.words) or not (2 * len(rest) >= len(gold.words) or _is_figure(rest)):
        return ""
    if FUNCTION.issuperset(rest) or _tells_apart(gold, rest):
        return ""
    right = _beyond_question(answer.words, question)
    # "Brazilian Portuguese" is Portuguese.
    if question.has("language") and len(rest) == 1 and len(right) == 2:
        right = right[1:] if right[0] not in DISTINGUISHING else right
    if rest != right and len(rest) == len(right) == 1 and (ordinal := _ORDINAL.fullmatch(right[0])):
        # "The ninth" is season 9; "nine" may be how many there were.
        right = (ordinal[1],)
    return "question's word" if rest == right else ""


def _tells_apart(gold: Gold, rest: tuple[str, ...]) -> bool:
    """Return True if a word of the question is the telling half of a gold: Mexico City is not Mexico."""
    # Asked about Jersey City, "New" is not New Jersey.
    if DISTINGUISHING.issuperset(rest):
        return True
    if gold.words[: len(rest)] != rest or not gold.cases[-1] or len(rest) == len(gold.words):
        return False
    if gold.words[-1] == "city":
        # "New York" is New York City.
        return len(rest) == 1
    if gold.words[-1] in PLACES:
        return False
    name = " ".join(rest)
    return NATIONS.get(name) == name or name in REGIONS or name in CITIES


def _is_figure(words: tuple[str, ...]) -> bool:
    return len(words) == 1 and is_number(words[0])


def _beyond_question(words: tuple[str, ...], question: Question) -> tuple[str, ...]:
    """Return words without the question's at their ends; "Japanese" is one where it asks about Japan."""
    start, end = 0, len(words)
    while start < end and (words[start] in question.held or words[start] in FUNCTION):
        start += 1
    while end > start and (words[end - 1] in question.held or words[end - 1] in FUNCTION):
        end -= 1
    if end - start > 1 and NATIONS.get(words[start]) in question.nations:
        start += 1
    return words[start:end]


def partial(answer: Words, gold: Gold, question: Question) -> str:
    """Most words of a longer gold, in its order, and nothing else; what is left out tells nothing apart."""
    if len(gold.words) < 3 or _LIST.search(gold.text) or len(answer.words) >= len(gold.words):
        return ""
    rest = iter(gold.words)
    if not all(word in rest for word in answer.words):
        return ""
    content = [word for word in gold.words if word not in FUNCTION]
    repeated = [word for word in answer.words if word not in FUNCTION]
    left_out = [word for word in content if word not in repeated]
    if any(word in DISTINGUISHING or not word.isalpha() for word in left_out):
        return ""
    if question.asks_person and gold.is_name:
        return ""
    if all(question.has(word) for word in repeated):
        return ""
    return "part" if len(repeated) >= max(2, _LEAST_PART * len(content)) else ""


Variant = Callable[[Words, Gold, Question], str]
# Loose ones come last, and only where the answer has one stretch that could be meant.
STRICT: Sequence[Variant] = (
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
)
LOOSE: Sequence[Variant] = (surname, given_name, partial)


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
