"""Questions that nobody can answer, with their wrong options.

They are about invented persons, places and works, or about events that lie in the future.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pytest_kbrel.records import AnswerType, Fact, record
from pytest_kbrel.resources import tsv_rows

_MOST_ATTEMPTS = 1000


@record
class UnseenKind:
    """One kind of unanswerable question.

    ``wordings`` hold ``[X]`` for what is asked about and, where ``about`` is ``country``, ``[T]`` for a year.
    ``event`` gives the years in which the event is held: every ``event[0]`` years, counted from ``event[1]``;
    ``known_from`` the day from which the answer may be known: (years before the event's, month, day).
    """

    slug: str
    answer_type: AnswerType
    about: Literal["person", "place", "work", "product", "country"]
    options: str
    wordings: tuple[str, ...]
    event: tuple[int, int] = (1, 0)
    known_from: tuple[int, int, int] = (0, 1, 1)

    def valid_until(self, year: int) -> str:
        """Return the day (ISO) from which a question about ``year`` may have an answer.

        Invented names never have one: empty. Games that are not scheduled yet: 1 January of their year.
        """
        if self.about != "country":
            return ""
        earlier, month, day = _SCHEDULED.get((self.event, year), self.known_from)
        return datetime.date(year - earlier, month, day).isoformat()


def _kind(
    slug: str,
    answer_type: AnswerType,
    about: Literal["person", "place", "work", "product"],
    options: str,
    *q: str,
) -> UnseenKind:
    return UnseenKind(
        slug=f"unseen-{slug}", answer_type=answer_type, about=about, options=options, wordings=q
    )


def _future(
    slug: str,
    answer_type: AnswerType,
    options: str,
    question: str,
    event: tuple[int, int] = (1, 0),
    known_from: tuple[int, int, int] = (0, 1, 1),
) -> UnseenKind:
    return UnseenKind(
        slug=f"unseen-future-{slug}",
        answer_type=answer_type,
        about="country",
        options=options,
        wordings=(question,),
        event=event,
        known_from=known_from,
    )


_OLYMPICS, _WORLD_CUP = (4, 2028), (4, 2030)
# Opening days that are fixed, as (event, year) -> (years before, month, day).
_SCHEDULED: Mapping[tuple[tuple[int, int], int], tuple[int, int, int]] = {
    (_OLYMPICS, 2028): (0, 7, 14),
    (_OLYMPICS, 2032): (0, 7, 23),
}
# The draw tells opponents and cities half a year before the first match; it has never been before December.
_DRAW = (1, 12, 1)
KINDS: tuple[UnseenKind, ...] = (
    _kind("person-siblings", "number", "person", "small numbers", "How many siblings did [X] grow up with?"),
    _kind("person-teacher", "person", "person", "persons", "Who taught [X] to read music?"),
    _kind("person-birth-year", "time", "person", "years", "In which year was [X] born?"),
    _kind("person-birthplace", "location", "person", "cities", "In which city was [X] born?"),
    _kind("person-instrument", "other", "person", "instruments", "Which instrument did [X] play?"),
    _kind("place-bridges", "number", "place", "small numbers", "How many bridges does the town of [X] have?"),
    _kind("place-founder", "person", "place", "persons", "Who founded the town of [X]?"),
    _kind("place-charter", "time", "place", "years", "In what year did [X] get its town charter?"),
    _kind("place-country", "location", "place", "countries", "Which country is the town of [X] in?"),
    _kind("place-language", "other", "place", "languages", "Which language do people in [X] speak?"),
    _kind("work-chapters", "number", "work", "small numbers", "How many chapters does the novel [X] have?"),
    _kind("work-author", "person", "work", "persons", "Who wrote the novel [X]?"),
    _kind("work-publication", "time", "work", "years", "In which year did the novel [X] come out?"),
    _kind("work-setting", "location", "work", "cities", "In which city does the novel [X] take place?"),
    _kind("product-maker", "other", "product", "companies", "Which company makes the [X]?"),
    _future(
        "medals",
        "number",
        "small numbers",
        "How many gold medals did [X] win at the [T] Summer Olympics?",
        _OLYMPICS,
    ),
    _future("leader", "person", "persons", "Who led the government of [X] at the end of [T]?"),
    _future("election-date", "time", "dates", "On which day of [T] did [X] last hold an election?"),
    _future(
        "match-city",
        "location",
        "cities",
        "In which city did [X] play its first match at the [T] FIFA World Cup?",
        _WORLD_CUP,
        _DRAW,
    ),
    _future(
        "opponent",
        "other",
        "countries",
        "Which team was the first opponent of [X] at the [T] FIFA World Cup?",
        _WORLD_CUP,
        _DRAW,
    ),
)


_NAMES = {name: names.split("|") for name, names in tsv_rows("facts/unseen_names.tsv")}
_PLACE_SORTS = ("", "", "", "", "Upper ", "Lower ", "Great ", "Little ", "Old ")


def make_unseen(
    facts: Sequence[Fact], *, count: int, seed: int, as_of: datetime.date, expires: datetime.date
) -> tuple[Fact, ...]:
    """Return ``count`` questions without an answer, spread evenly over ``KINDS`` (Table 3 has 20 as well).

    Wrong options (``negatives``, exactly 20) come from ``facts``. Years of the past lie before ``as_of``, the
    day the questions are made; what is asked of the future happens after ``expires``. The same seed and the
    same facts, in whatever order, give the same questions, whatever the day is; each says from when on it may
    have an answer (``valid_until``). Raises ``ValueError`` when ``expires`` is before
    ``as_of`` or ``count`` below 1.
    """
    if count < 1:
        raise ValueError(f"count must be at least 1, found {count}")
    if expires < as_of:
        raise ValueError(f"expires must not lie before as_of, found {expires} before {as_of}")
    pools = option_pools(facts, as_of)
    known = {name.casefold() for fact in facts for name in (fact.subject, *fact.accepted)}
    rng = random.Random(f"unseen {seed}")
    made: dict[str, Fact] = {}
    turn = 0
    while len(made) < count:
        kind = KINDS[turn % len(KINDS)]
        turn += 1
        subject, question, year = _fresh(kind, rng, pools["countries"], expires, known, made)
        options = dates_of(year) if kind.options == "dates" else pools[kind.options]
        allowed = [option for option in options if option != subject]
        made[question] = Fact(
            id=f"{kind.slug}-{hashlib.sha256(question.encode()).hexdigest()[:10]}",
            relation=kind.slug,
            subject=subject,
            object=None,
            negatives=tuple(rng.sample(allowed, DISTRACTORS)),
            question=question,
            source="pytest-kbrel",
            licence="Apache-2.0",
            answer_type=kind.answer_type,
            valid_until=kind.valid_until(year),
        )
    return tuple(made.values())


def unseen_examples(
    facts: Sequence[Fact], *, count: int, seed: int, after: int | None, avoid: Iterable[str] = ()
) -> tuple[Fact, ...]:
    """Return up to ``count`` unanswerable questions to show as examples, evenly over the kinds.

    Their invented names are those that :func:`make_unseen` never draws. Events lie after the year ``after``;
    with ``None`` nothing is asked of the future. No question of ``avoid`` comes. The same facts in any order
    give the same examples.
    """
    kinds = [kind for kind in KINDS if after is not None or kind.about != "country"]
    countries = option_pools(facts, datetime.date(after or 2000, 1, 1))["countries"]
    rng = random.Random(f"unseen examples {seed}")
    taken = set(avoid)
    made: list[Fact] = []
    for turn in range(count * _MOST_ATTEMPTS):
        if len(made) == count:
            break
        kind = kinds[turn % len(kinds)]
        subject, question, year = ask(kind, rng, countries=countries, after=after or 0, training=True)
        if question not in taken:
            taken.add(question)
            made.append(
                Fact(
                    id=f"example-{hashlib.sha256(question.encode()).hexdigest()[:10]}",
                    relation=kind.slug,
                    subject=subject,
                    object=None,
                    question=question,
                    answer_type=kind.answer_type,
                    valid_until=kind.valid_until(year),
                )
            )
    return tuple(made)


def _fresh(
    kind: UnseenKind,
    rng: random.Random,
    countries: Sequence[str],
    expires: datetime.date,
    known: set[str],
    made: Mapping[str, Fact],
) -> tuple[str, str, int]:
    horizon = 8
    while True:
        subject, question, year = ask(kind, rng, countries=countries, after=expires.year, horizon=horizon)
        if question not in made and (kind.about == "country" or subject.casefold() not in known):
            return subject, question, year
        # Few countries and years make few questions: look further ahead.
        horizon += 1
        if horizon > _MOST_ATTEMPTS:
            raise ValueError(f"{kind.slug} has no more than {len(made) // len(KINDS)} different questions")


def ask(
    kind: UnseenKind,
    rng: random.Random,
    *,
    countries: Sequence[str],
    after: int,
    horizon: int = 8,
    training: bool = False,
) -> tuple[str, str, int]:
    """Draw one question of a kind: (what it is about, question, year asked about or 0).

    ``training`` draws from the half of the invented names that :func:`make_unseen` never draws. ``after`` is
    a year; events lie in later ones, at most ``horizon`` editions ahead.
    """
    wording = rng.choice(kind.wordings)
    if kind.about == "country":
        every, start = kind.event
        first = after + 1 + (start - after - 1) % every
        year = first + every * rng.randrange(horizon)
        subject = rng.choice(countries)
        return subject, wording.replace("[X]", subject).replace("[T]", str(year)), year
    subject = invent(kind.about, rng, training=training)
    return subject, wording.replace("[X]", subject), 0


def invent(
    about: Literal["person", "place", "work", "product"], rng: random.Random, *, training: bool = False
) -> str:
    """Return a name that nothing real bears; training and test names never meet, part for part."""
    if about == "person":
        return f"{_coin('first', rng, training)} {_coin('last', rng, training)}"
    if about == "place":
        return rng.choice(_PLACE_SORTS) + _coin("place", rng, training)
    if about == "work":
        start, middle = rng.choice(_NAMES["work starts"]), rng.choice(_NAMES["work ends"])
        return f"The {start} {middle} {_coin('place', rng, training)}"
    number = rng.randrange(1, 500) * 2 + training
    return f"{rng.choice(_NAMES['product starts'])} {number}"


def _coin(kind: str, rng: random.Random, training: bool) -> str:
    starts, ends = _NAMES[f"{kind} starts"], _NAMES[f"{kind} ends"]
    while True:
        first, last = rng.randrange(len(starts)), rng.randrange(len(ends))
        if (first + last) % 2 == training:
            return starts[first] + ends[last]


DISTRACTORS = 20
# Where in the facts the options of a kind are found: the subjects or objects of these relations.
_WHERE: Mapping[str, tuple[tuple[str, str], ...]] = {
    "cities": (("P17", "subject"), ("P36", "object"), ("P1376", "subject")),
    "countries": (("P17", "object"), ("P36", "subject"), ("P1376", "object")),
    "persons": (("P50", "object"), ("P101", "subject")),
    "languages": (("P37", "object"),),
    "companies": (("P176", "object"),),
}
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def dates_of(year: int) -> tuple[str, ...]:
    """Return the days of a year as ``5 March 2031``, without the last days of the months."""
    return tuple(f"{day} {month} {year}" for month in _MONTHS.split("|") for day in range(1, 29))


def option_pools(facts: Iterable[Fact], as_of: datetime.date) -> dict[str, tuple[str, ...]]:
    """Return the options of every sort but ``dates``, sorted; more than 20 each.

    ``as_of`` is the day the questions are made: years of the past lie before it.
    """
    texts: dict[tuple[str, str], set[str]] = {}
    for fact in facts:
        texts.setdefault((fact.relation, "subject"), set()).add(fact.subject)
        if fact.object is not None:
            texts.setdefault((fact.relation, "object"), set()).add(fact.object)
    pools = {
        "small numbers": tuple(str(number) for number in range(2, 42)),
        "years": tuple(str(year) for year in range(as_of.year - 180, as_of.year - 20)),
    }
    for options in (name.removeprefix("options ") for name in _NAMES if name.startswith("options ")):
        names = [sorted(texts.get(role, ())) for role in _WHERE.get(options, ())]
        pool = {name.casefold(): name for group in names for name in group}
        # One more than is drawn, for the subject itself may not be an option.
        if len(pool) <= DISTRACTORS:
            pool = {**{name.casefold(): name for name in _NAMES[f"options {options}"]}, **pool}
        pools[options] = tuple(sorted(pool.values()))
    return pools


_FILE_OPTIONS: Mapping[AnswerType, str] = {
    "number": "small numbers",
    "person": "persons",
    "time": "years",
    "location": "countries",
    "other": "companies",
}
# Such questions are about what is to come, so that the years reach ahead.
_AS_OF = datetime.date(2060, 1, 1)


def with_options(unseen: Sequence[Fact], facts: Sequence[Fact], seed: int) -> tuple[Fact, ...]:
    """Give every question negatives of its answer type, unless it has some or its relation has other facts.

    They are drawn like those of the made-up questions, by seed and fact id.
    """
    served = {fact.relation for fact in facts}
    if all(fact.negatives or fact.relation in served for fact in unseen):
        return tuple(unseen)
    pools = option_pools(facts, _AS_OF)

    def filled(fact: Fact) -> Fact:
        if fact.negatives or fact.relation in served:
            return fact
        pool = pools[_FILE_OPTIONS[fact.answer_type or "other"]]
        prefix = f"{seed}\0{fact.id}\0".encode()
        drawn = sorted(pool, key=lambda text: hashlib.sha256(prefix + text.encode()).digest())[:DISTRACTORS]
        return dataclasses.replace(fact, negatives=tuple(drawn))

    return tuple(filled(fact) for fact in unseen)
