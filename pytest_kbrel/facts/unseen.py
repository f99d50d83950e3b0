"""Questions that nobody can answer, with their wrong options.

They are about invented persons, places and works, or about events that lie in the future.
"""

from __future__ import annotations

import dataclasses
import datetime
import random
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pytest_kbrel.facts.sampling import rank
from pytest_kbrel.records import AnswerType, Fact, record
from pytest_kbrel.resources import tsv_rows

DISTRACTORS = 20
_MOST_ATTEMPTS = 1000


# The first edition of an event that is asked about and the years between two; other events are yearly.
_EVENTS = {"Summer Olympics": (2028, 4), "World Cup": (2030, 4)}
# Opening days that are fixed.
_SCHEDULED = {
    ("Summer Olympics", 2028): "2028-07-14",
    ("Summer Olympics", 2032): "2032-07-23",
}


@record
class UnseenKind:
    """One kind of unanswerable question.

    ``wordings`` hold ``[X]`` for what is asked about and, where ``about`` is ``country``, ``[T]`` for a year
    in which the ``event`` is held. ``options`` names the pool of its wrong options.
    """

    slug: str
    answer_type: AnswerType
    about: Literal["person", "place", "work", "product", "country"]
    options: str
    event: str
    wordings: tuple[str, ...]

    def valid_until(self, year: int) -> str:
        """Return the day (ISO) from which a question about ``year`` may have an answer.

        Invented names never have one: empty. Games that are not scheduled yet: 1 January of their year.
        """
        if self.about != "country":
            return ""
        if self.event == "World Cup":
            # The draw tells opponents and cities half a year before the first match, never before December.
            return f"{year - 1}-12-01"
        return _SCHEDULED.get((self.event, year), f"{year}-01-01")


_KEYS: Any = ("slug", "answer_type", "about", "options", "event")
KINDS = tuple(
    UnseenKind(**dict(zip(_KEYS, cells, strict=True)), wordings=(question,))
    for *cells, question in tsv_rows("facts/unseen_kinds.tsv")
)
_NAMES = {name: names.split("|") for name, names in tsv_rows("facts/unseen_names.tsv")}
_PLACE_SORTS = ("", "", "", "", "Upper ", "Lower ", "Great ", "Little ", "Old ")


def make_unseen(
    facts: Sequence[Fact],
    *,
    count: int,
    seed: int,
    as_of: datetime.date,
    expires: datetime.date,
) -> tuple[Fact, ...]:
    """Return ``count`` questions without an answer, spread evenly over ``KINDS`` (Table 3 has 20 as well).

    Wrong options (``negatives``, exactly 20) come from ``facts``. Years of the past lie before ``as_of``, the
    day the questions are made; what is asked of the future happens after ``expires``. The same seed and the
    same facts, in whatever order, give the same questions, whatever the day is; each says from when on it may
    have an answer (``valid_until``). Raises ``ValueError`` when there are not so many.
    """
    pools = option_pools(facts, as_of.year)
    real_names = {
        name.casefold() for fact in facts for name in (fact.subject, *fact.accepted)
    }
    rng = random.Random(f"unseen {seed}")
    made: dict[str, Fact] = {}
    turn = 0
    while len(made) < count:
        kind = KINDS[turn % len(KINDS)]
        turn += 1
        # Few countries and years make few questions: look further ahead.
        for horizon in range(8, _MOST_ATTEMPTS + 1):
            fact = draw_question(
                kind,
                rng,
                countries=pools["countries"],
                after=expires.year,
                horizon=horizon,
            )
            is_real = fact.subject.casefold() in real_names
            if fact.question not in made and (kind.about == "country" or not is_real):
                break
        else:
            each = len(made) // len(KINDS)
            raise ValueError(f"{kind.slug} has no more than {each} different questions")
        # Nobody knows the day of an election before its year.
        options = pools.get(kind.options) or dates_of(fact.valid_until[:4])
        allowed = [option for option in options if option != fact.subject]
        made[fact.question or ""] = dataclasses.replace(
            fact,
            negatives=tuple(rng.sample(allowed, DISTRACTORS)),
            source="pytest-kbrel",
            licence="Apache-2.0",
        )
    return tuple(made.values())


def unseen_examples(
    facts: Sequence[Fact],
    *,
    count: int,
    seed: int,
    after: int | None,
    avoid: Iterable[str] = (),
) -> tuple[Fact, ...]:
    """Return up to ``count`` unanswerable questions to show as examples, evenly over the kinds.

    Their invented names are those that :func:`make_unseen` never draws. Events lie after the year ``after``;
    with ``None`` nothing is asked of the future. No question of ``avoid`` comes. The same facts in any order
    give the same examples.
    """
    kinds = [kind for kind in KINDS if after is not None or kind.about != "country"]
    countries = option_pools(facts, after or 2000)["countries"]
    rng = random.Random(f"unseen examples {seed}")
    taken: set[str | None] = {*avoid}
    made: list[Fact] = []
    for turn in range(count * _MOST_ATTEMPTS):
        if len(made) == count:
            break
        kind = kinds[turn % len(kinds)]
        fact = draw_question(
            kind, rng, countries=countries, after=after or 0, training=True
        )
        if fact.question not in taken:
            taken.add(fact.question)
            made.append(fact)
    return tuple(made)


def draw_question(
    kind: UnseenKind,
    rng: random.Random,
    *,
    countries: Sequence[str],
    after: int,
    horizon: int = 8,
    training: bool = False,
) -> Fact:
    """Draw one question of a kind.

    ``training`` draws from the half of the invented names that :func:`make_unseen` never draws. ``after`` is
    a year; events lie in later ones, at most ``horizon`` editions ahead.
    """
    question = rng.choice(kind.wordings)
    year = 0
    if kind.about == "country":
        start, every = _EVENTS.get(kind.event, (0, 1))
        first = after + 1 + (start - after - 1) % every
        year = first + every * rng.randrange(horizon)
        subject = rng.choice(countries)
    else:
        subject = invent_name(kind.about, rng, training=training)
    question = question.replace("[X]", subject).replace("[T]", str(year))
    return Fact(
        id=f"{kind.slug}-{rank(question).hex()[:10]}",
        relation=kind.slug,
        subject=subject,
        object=None,
        question=question,
        answer_type=kind.answer_type,
        valid_until=kind.valid_until(year),
    )


def invent_name(
    about: Literal["person", "place", "work", "product"],
    rng: random.Random,
    *,
    training: bool = False,
) -> str:
    """Return a name that nothing real bears; training and test names never meet, part for part."""
    if about == "person":
        return f"{_coin('first', rng, training)} {_coin('last', rng, training)}"
    if about == "place":
        return rng.choice(_PLACE_SORTS) + _coin("place", rng, training)
    if about == "work":
        start, middle = (rng.choice(_NAMES[f"work {of}"]) for of in ("starts", "ends"))
        return f"The {start} {middle} {_coin('place', rng, training)}"
    number = rng.randrange(1, 500) * 2 + training
    return f"{rng.choice(_NAMES['product starts'])} {number}"


def _coin(kind: str, rng: random.Random, training: bool) -> str:
    starts, ends = _NAMES[f"{kind} starts"], _NAMES[f"{kind} ends"]
    while True:
        first, last = rng.randrange(len(starts)), rng.randrange(len(ends))
        if (first + last) % 2 == training:
            return starts[first] + ends[last]


_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"


def dates_of(year: str) -> tuple[str, ...]:
    """Return the days of a year as ``5 March 2031``, without the last days of the months."""
    return tuple(
        f"{day} {month} {year}" for month in _MONTHS.split("|") for day in range(1, 29)
    )


def option_pools(facts: Iterable[Fact], year: int) -> dict[str, tuple[str, ...]]:
    """Return the options of every sort but ``dates``, sorted; more than 20 each.

    ``year`` is the one the questions are made in: years of the past lie before it.
    """
    texts: dict[str, set[str]] = {}
    for fact in facts:
        for role, name in (("subject", fact.subject), ("object", fact.object)):
            if name is not None:
                texts.setdefault(f"{fact.relation} {role}", set()).add(name)
    pools = {
        "small numbers": tuple(map(str, range(2, 42))),
        "years": tuple(map(str, range(year - 180, year - 20))),
    }
    for key, names in _NAMES.items():
        sort = key.removeprefix("options ")
        if sort == key:
            continue
        roles = _NAMES.get(f"where {sort}", ())
        pool = {
            name.casefold(): name
            for role in roles
            for name in sorted(texts.get(role, ()))
        }
        # One more than is drawn, for the subject itself may not be an option.
        if len(pool) <= DISTRACTORS:
            pool = {name.casefold(): name for name in names} | pool
        pools[sort] = tuple(sorted(pool.values()))
    return pools


_FILE_OPTIONS = {
    "number": "small numbers",
    "person": "persons",
    "time": "years",
    "location": "countries",
    "other": "companies",
}


def with_options(
    unseen: Sequence[Fact], facts: Sequence[Fact], seed: int
) -> tuple[Fact, ...]:
    """Return the questions with negatives of their answer type, drawn by seed and fact id.

    A question that has some keeps them, and one whose relation has other facts gets none.
    """
    served = {fact.relation for fact in facts}
    # Such questions are about what is to come, so that the years reach ahead.
    pools = option_pools(facts, 2060)

    def filled(fact: Fact) -> Fact:
        if fact.negatives or fact.relation in served:
            return fact
        pool = pools[_FILE_OPTIONS[fact.answer_type or "other"]]
        drawn = sorted(pool, key=lambda text: rank(f"{seed}\0{fact.id}\0{text}"))
        return dataclasses.replace(fact, negatives=tuple(drawn[:DISTRACTORS]))

    return tuple(filled(fact) for fact in unseen)
