"""Parsed forms of a question, an accepted answer (gold) and an answer, which all rules take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pytest_kbrel.judges.text.dates import Date, as_dates, as_period, dates_in
from pytest_kbrel.judges.text.lexicon import (
    FUNCTION,
    GIVEN,
    LEADING,
    MOUNTAINS,
    NATIONAL,
    NATIONS,
    PARTICLES,
    PERSONS,
    TITLES,
    UNIT_NAMES,
    WORKS,
    word_set,
)
from pytest_kbrel.judges.text.tokens import (
    APOSTROPHES,
    CAPITAL,
    LONGEST,
    LOWER,
    STARTS,
    Words,
    read_words,
)
from pytest_kbrel.records import record

# Where words stand in a text: the first, and the one behind the last.
Span = tuple[int, int]
APPROXIMATE = word_set(
    "about around approximately roughly nearly almost some circa over at least full whole total exactly"
)
_PLACES = word_set(
    "where city town country place located village capital county state born"
)
_MANY = 99
_FICTION = word_set(
    "film movie novel show series season episode sitcom soap cartoon tv character"
)
# Who sings or plays in a work is no figure of it.
_MAKING = (
    *(
        "sing",
        "sang",
        "sung",
        "song",
        "album",
        "band",
        "music",
        "play",
        "act",
        "star",
        "voice",
        "perform",
    ),
    *(
        "direct",
        "produc",
        "writ",
        "wrote",
        "author",
        "creat",
        "host",
        "present",
        "judg",
        "contest",
        "guest",
    ),
    *("win", "won", "cast", "score", "compos", "design"),
)


@record
class Question(Words):
    """A question and what it asks for.

    ``held`` are its words and their singulars, ``several`` is how many things it asks for at most, 0 for one.
    """

    held: frozenset[str]
    dates: tuple[Date, ...]
    asks_person: bool
    asks_place: bool
    asks_work: bool
    asks_character: bool
    nations: frozenset[str]
    several: int

    def has(self, *words: str) -> bool:
        """Return True if any of the words stands in the question."""
        return not self.held.isdisjoint(words)


@lru_cache(maxsize=4096)
def read_question(text: str, answer_type: str = "") -> Question:
    """Read a question."""
    read = read_words(text)
    words = read.words
    by_whom = (
        words[-3:-1] in (("by", "what"), ("by", "which")) and words[-1] in NATIONAL
    )
    person = answer_type == "person" if answer_type else by_whom or _asks_person(words)
    mountain = () if MOUNTAINS.isdisjoint(words) else ("mt",)
    made = any(word.startswith(_MAKING) for word in words)
    return Question(
        words=words,
        cases=read.cases,
        breaks=read.breaks,
        held=frozenset((*words, *map(singular, words), *mountain)),
        dates=dates_in(text[:LONGEST]),
        asks_person=person,
        asks_place=answer_type == "location"
        if answer_type
        else not _PLACES.isdisjoint(words),
        asks_work=not WORKS.isdisjoint(words),
        asks_character=person and not _FICTION.isdisjoint(words) and not made,
        nations=frozenset(NATIONS[word] for word in words if word in NATIONS),
        several=_several(words),
    )


def _asks_person(words: tuple[str, ...]) -> bool:
    if not PERSONS.isdisjoint(words):
        return True
    # "Which English chemist ...", "Which general ..."
    asking = next(
        (index for index, word in enumerate(words) if word in ("which", "what")),
        len(words),
    )
    kinds = words[asking + 1 : asking + 6]
    return any(
        word in TITLES or (word.endswith("ist") and len(word) > 5) for word in kinds
    )


def _several(words: tuple[str, ...]) -> int:
    """Return how many things a question asks for, as its first words tell: "Who were the three ..."."""
    for index, word in enumerate(words[:-1]):
        after = words[index + 1]
        plural = (singular(after) != after or after.isdigit()) and after not in FUNCTION
        if word in ("who", "what", "which", "name", "list") and (
            plural or after in ("are", "were")
        ):
            number = next(
                (other for other in words[index + 1 : index + 4] if other.isdigit()), ""
            )
            return int(number) if 0 < len(number) < 3 else _MANY
    return 0


@record
class Gold(Words):
    """One accepted answer; the breaks between its words are dropped.

    At most one of ``dates``, ``period`` and ``number`` (digits, unit) is set; such a gold is not looked for
    as words in a sentence. Only an answer that shares one of the ``keys`` can be another way of writing it.
    """

    text: str
    keys: frozenset[str]
    dates: tuple[Date, ...]
    period: tuple[int, int] | None
    number: tuple[str, str] | None

    @property
    def is_text(self) -> bool:
        """Return True if the gold is words and neither a date nor a number."""
        return not self.dates and self.period is None and self.number is None

    @property
    def is_name(self) -> bool:
        """Return True if every word but the tying ones has a capital."""
        return any(self.cases) and all(
            case or word in FUNCTION or word in PARTICLES
            for word, case in zip(self.words, self.cases, strict=True)
        )


@lru_cache(maxsize=8192)
def read_gold(text: str) -> Gold:
    """Read an accepted answer."""
    read = read_words(text)
    if len(read.words) > 1 and read.words[0] in LEADING and not read.cases[0]:
        read = read.part(1, len(read.words))
    period = as_period(text[:LONGEST])
    dates = () if period else as_dates(text[:LONGEST])
    # "Minus 40": the sign is looked for in the text.
    signed = read.words[:1] in (("minus",), ("negative",))
    number = None if period or dates else quantity(read.words[signed:])
    return Gold(
        text=text,
        words=read.words,
        cases=read.cases,
        breaks=("",) * len(read.words),
        keys=_keys(read.words),
        dates=dates,
        period=period,
        number=number,
    )


def _keys(words: tuple[str, ...]) -> frozenset[str]:
    """Return what at least must be shared: a word, pieced together or as a singular, or a nation."""
    joined = (
        "".join(words[at : at + size])
        for size in (1, 2, 3)
        for at in range(len(words) - size + 1)
    )
    keys = {_spelling_key(word) for word in joined}
    keys.update(NATIONS[name] for name in (*words, " ".join(words)) if name in NATIONS)
    # "The ninth" is season 9.
    keys.update(
        word[:-2]
        for word in words
        if word[0].isdigit() and word.endswith(("st", "nd", "rd", "th"))
    )
    if len(words) > 3:
        keys.add(_spelling_key("".join(words)))
    return frozenset(keys)


def quantity(words: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (digits, unit) of words that are a number with at most a unit, else ``None``."""
    rest = [word for word in words if word not in APPROXIMATE]
    if (
        not rest
        or not is_number(rest[0])
        or len(rest) > 2
        or not UNIT_NAMES.issuperset(rest[1:])
    ):
        return None
    return rest[0], "".join(rest[1:])


def is_number(word: str) -> bool:
    """Return True if a word is a number in digits."""
    return (
        word[0].isdecimal()
        and word[-1].isdecimal()
        and word.replace(".", "", 1).isdecimal()
    )


@record
class Answer(Words):
    """An answer: ``fresh`` is True for words that the question does not hold; ``cased`` if capitals tell."""

    text: str
    keys: frozenset[str]
    fresh: tuple[bool, ...]
    cased: bool

    @property
    def bare(self) -> bool:
        """Return True if the answer is a phrase: no word frames it, and it does not take up the question."""
        taken_up = sum(
            not fresh and word not in FUNCTION
            for word, fresh in zip(self.words, self.fresh, strict=True)
        )
        return taken_up < 2 and _FRAMES.isdisjoint(self.words)


_FRAMES = word_set(
    "is was are were be been being has have had did does do by called named known who"
)


def read_answer(text: str, question: Question) -> Answer:
    """Read an answer to a question."""
    read = read_words(text)
    fresh = tuple(not question.has(word, singular(word)) for word in read.words)
    letters = [
        case
        for case, word in zip(read.cases, read.words, strict=True)
        if word[0].isalpha()
    ]
    cased = CAPITAL in letters or (
        STARTS in letters and LOWER in letters and len(letters) > 4
    )
    return Answer(
        text=text[:LONGEST].translate(APOSTROPHES),
        words=read.words,
        cases=read.cases,
        breaks=read.breaks,
        keys=_keys(read.words),
        fresh=fresh,
        cased=cased,
    )


def find_spans(words: Sequence[str], sought: Sequence[str]) -> Iterator[Span]:
    """Yield (start, end) wherever ``sought`` stands in ``words`` as whole words."""
    size = len(sought)
    if not size:
        return
    first = sought[0]
    for start in range(len(words) - size + 1):
        if words[start] == first and tuple(words[start : start + size]) == tuple(
            sought
        ):
            yield start, start + size


def indices_of(spans: Iterable[Span]) -> set[int]:
    """Return the indices of all words in ``spans``."""
    return {index for start, end in spans for index in range(start, end)}


def candidate_spans(answer: Answer) -> Iterator[Span]:
    """Yield the (start, end) of what may be the answer proper, each once: the whole, its stretches that the
    question does not hold, and the runs of capitals that it does not hold as a whole."""
    seen = {(0, len(answer.words))}
    yield 0, len(answer.words)
    for span in (*unasked_spans(answer), *_names(answer)):
        if span not in seen and any(answer.fresh[span[0] : span[1]]):
            seen.add(span)
            yield span


def unasked_spans(answer: Answer) -> list[Span]:
    """Return the (start, end) of the stretches of words that the question does not hold, trimmed."""
    spans: list[Span] = []
    start = 0
    size = len(answer.words)
    while start < size:
        if not answer.fresh[start] or answer.words[start] in FUNCTION:
            start += 1
            continue
        end = start + 1
        while not answer.ends(end) and (
            answer.fresh[end] or answer.words[end] in PARTICLES
        ):
            end += 1
        stop = end
        while answer.words[stop - 1] in FUNCTION or not answer.fresh[stop - 1]:
            stop -= 1
        inner = [
            index for index in range(start, stop) if answer.words[index] in _FRAMES
        ]
        for before, last in pairwise((start - 1, *inner, stop)):
            first = before + 1
            while first < last and answer.words[first] in FUNCTION:
                first += 1
            while first < last and answer.words[last - 1] in FUNCTION:
                last -= 1
            if first < last:
                spans.append((first, last))
        start = end
    return spans


def _names(answer: Answer) -> Iterator[Span]:
    if not answer.cased:
        return
    start, size = 0, len(answer.words)
    while start < size:
        given = answer.words[start] in GIVEN
        if not answer.cases[start] or (answer.words[start] in FUNCTION and not given):
            start += 1
            continue
        end = start + 1
        while not answer.ends(end) and (
            answer.cases[end]
            or answer.words[end][0].isdigit()
            or answer.words[end] in PARTICLES
        ):
            end += 1
        last = end
        while answer.words[last - 1] in PARTICLES and not answer.cases[last - 1]:
            last -= 1
        # "I" and "May" alone are no names.
        if not given or last > start + 1:
            yield start, last
        start = end


@lru_cache(maxsize=16384)
def singular(word: str) -> str:
    """Return an English noun without its plural ending, as far as spelling tells."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    return word[:-1]


_UMLAUT = re.compile(r"([aou])e")
_DOUBLE = re.compile(r"([^\W\d_])\1")


@lru_cache(maxsize=16384)
def collapse_doubles(word: str) -> str:
    """Return a word with double letters and "ae" for "ä" written once, where it is long enough for that."""
    return _DOUBLE.sub(r"\1", _UMLAUT.sub(r"\1", word)) if len(word) > 5 else word


def _spelling_key(word: str) -> str:
    """Return a key that all spellings of a word share."""
    return collapse_doubles(singular(word))
