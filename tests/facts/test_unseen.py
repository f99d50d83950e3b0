from __future__ import annotations

import dataclasses
import datetime
import hashlib
import os
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.facts.unseen import (
    KINDS,
    dates_of,
    draw_question,
    invent_name,
    make_unseen,
    option_pools,
    unseen_examples,
    with_options,
)
from pytest_kbrel.records import Fact

TODAY = datetime.date(2026, 11, 20)
EXPIRES = datetime.date(2027, 12, 31)
FACTS = tuple(
    Fact(
        id=f"P36-{number}",
        relation="P36",
        subject=f"Country {number}",
        object=f"Town {number}",
    )
    for number in range(40)
)
ABOUTS = ("person", "place", "work", "product")


def test_twenty_kinds_over_five_answer_types_have_slugs_of_their_own():
    assert len(KINDS) == len({kind.slug for kind in KINDS}) == 20
    assert {kind.answer_type for kind in KINDS} == {
        "number",
        "person",
        "time",
        "location",
        "other",
    }
    assert all(kind.slug.startswith("unseen-") for kind in KINDS)


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 120),
    seed=st.integers(0, 2**32),
    days=st.integers(0, 4000),
    facts=st.sampled_from([(), FACTS[:3], FACTS]),
)
def test_every_question_is_distinct_unanswerable_and_has_twenty_options(
    count, seed, days, facts
):
    expires = TODAY + datetime.timedelta(days=days)
    made = make_unseen(facts, count=count, seed=seed, as_of=TODAY, expires=expires)
    assert (
        len(made)
        == len({f.id for f in made})
        == len({f.question for f in made})
        == count
    )
    for fact in made:
        assert fact.object is None
        assert fact.accepted == ()
        assert fact.subject in (fact.question or "")
        assert "[" not in (fact.question or "")
        assert (
            len({option.casefold() for option in fact.negatives})
            == len(fact.negatives)
            == 20
        )
        assert fact.subject not in fact.negatives
        if fact.relation.startswith("unseen-future-"):
            years = [
                int(year) for year in re.findall(r"\b2\d{3}\b", fact.question or "")
            ]
            assert years
            assert min(years) > expires.year


def test_kinds_are_spread_evenly():
    made = make_unseen(FACTS, count=60, seed=0, as_of=TODAY, expires=EXPIRES)
    counts = {kind.slug: sum(f.relation == kind.slug for f in made) for kind in KINDS}
    assert set(counts.values()) == {3}


def test_the_order_of_the_facts_does_not_matter_and_the_seed_does():
    made = make_unseen(FACTS, count=40, seed=1, as_of=TODAY, expires=EXPIRES)
    assert made == make_unseen(
        FACTS[::-1], count=40, seed=1, as_of=TODAY, expires=EXPIRES
    )
    assert made != make_unseen(FACTS, count=40, seed=2, as_of=TODAY, expires=EXPIRES)


def test_ids_come_from_the_question_alone():
    for fact in make_unseen(FACTS, count=20, seed=3, as_of=TODAY, expires=EXPIRES):
        digest = hashlib.sha256((fact.question or "").encode()).hexdigest()
        assert fact.id == f"{fact.relation}-{digest[:10]}"


def test_another_hash_seed_gives_the_same_questions():
    code = (
        "import datetime as d; from pytest_kbrel.facts.unseen import make_unseen as m;"
        "print(m((), count=40, seed=5, as_of=d.date(2026, 11, 20), expires=d.date(2027, 1, 1)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": value},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for value in ("1", "2")
    }
    assert len(outputs) == 1


def test_options_come_from_the_facts_where_they_offer_enough():
    made = make_unseen(FACTS, count=20, seed=0, as_of=TODAY, expires=EXPIRES)
    born = next(f for f in made if f.relation == "unseen-person-birthplace")
    assert set(born.negatives) <= {fact.object for fact in FACTS}


def test_a_name_the_facts_know_is_not_invented():
    rng = random.Random(0)
    facts = tuple(
        Fact(
            id=f"x-{n}",
            relation="P17",
            subject=invent_name("place", rng),
            object="France",
        )
        for n in range(300)
    )
    made = make_unseen(facts, count=100, seed=0, as_of=TODAY, expires=EXPIRES)
    invented = {f.subject for f in made if f.relation.startswith("unseen-place-")}
    assert not invented & {fact.subject for fact in facts}


@pytest.mark.parametrize("about", ABOUTS)
def test_training_and_test_names_never_meet(about):
    rng = random.Random(0)
    training = {invent_name(about, rng, training=True) for _ in range(500)}
    assert not training & {invent_name(about, rng) for _ in range(500)}


def test_olympic_games_are_asked_of_the_years_they_are_held_in():
    medals = next(kind for kind in KINDS if kind.slug == "unseen-future-medals")
    years = {
        draw_question(medals, random.Random(n), countries=("Peru",), after=2028)[2]
        for n in range(50)
    }
    assert min(years) == 2032
    assert all(year % 4 == 0 for year in years)


@pytest.mark.parametrize(
    ("count", "expires"), [(0, EXPIRES), (-1, EXPIRES), (5, datetime.date(2026, 1, 1))]
)
def test_impossible_orders_are_refused(count, expires):
    with pytest.raises(ValueError, match=r"^(count|expires) must"):
        make_unseen(FACTS, count=count, seed=0, as_of=TODAY, expires=expires)


@pytest.mark.slow
def test_more_questions_than_there_are_names_is_an_error_and_no_endless_loop():
    with pytest.raises(ValueError, match="different questions"):
        make_unseen((), count=60_000, seed=0, as_of=TODAY, expires=EXPIRES)


@pytest.mark.parametrize(
    ("slug", "year", "day"),
    [
        ("unseen-future-medals", 2028, "2028-07-14"),
        ("unseen-future-medals", 2032, "2032-07-23"),
        ("unseen-future-medals", 2036, "2036-01-01"),
        ("unseen-future-opponent", 2030, "2029-12-01"),
        ("unseen-future-match-city", 2030, "2029-12-01"),
        ("unseen-future-leader", 2029, "2029-01-01"),
        ("unseen-future-election-date", 2029, "2029-01-01"),
        ("unseen-person-birthplace", 0, ""),
    ],
)
def test_a_question_says_from_when_it_may_have_an_answer(slug, year, day):
    assert next(kind for kind in KINDS if kind.slug == slug).valid_until(year) == day


def test_no_question_has_an_answer_before_it_expires_and_all_know_their_type():
    made = make_unseen(FACTS, count=400, seed=0, as_of=TODAY, expires=EXPIRES)
    days = {fact.valid_until for fact in made}
    assert "" in days
    assert min(days - {""}) > EXPIRES.isoformat()
    kinds = {kind.slug: kind.answer_type for kind in KINDS}
    assert all(fact.answer_type == kinds[fact.relation] for fact in made)
    assert {fact.answer_type for fact in made} == {
        "number",
        "person",
        "time",
        "location",
        "other",
    }


def test_examples_are_of_all_kinds_and_of_other_names():
    questions = make_unseen(FACTS, count=200, seed=4, as_of=TODAY, expires=EXPIRES)
    avoid = [fact.question for fact in questions]
    made = unseen_examples(FACTS, count=40, seed=4, after=EXPIRES.year, avoid=avoid)
    assert made == unseen_examples(
        FACTS[::-1], count=40, seed=4, after=EXPIRES.year, avoid=avoid
    )
    assert len({fact.question for fact in made}) == 40
    assert {fact.relation for fact in made} == {kind.slug for kind in KINDS}
    assert not {fact.question for fact in made} & set(avoid)
    invented = {f.subject for f in made if "future" not in f.relation}
    assert not invented & {
        f.subject
        for f in make_unseen((), count=4000, seed=4, as_of=TODAY, expires=EXPIRES)
    }


def test_examples_without_a_year_ask_nothing_of_the_future():
    made = unseen_examples(FACTS, count=30, seed=0, after=None)
    assert len(made) == 30
    assert not [fact for fact in made if "future" in fact.relation]


DAY = datetime.date(2026, 11, 20)
# Everybody's names, where the facts offer too few: one of each sort, and how many there are.
KNOWN = [
    ("cities", "Lisbon", 31),
    ("countries", "Peru", 30),
    ("persons", "Marie Curie", 24),
    ("languages", "Hindi", 26),
    ("companies", "Yamaha", 27),
    ("instruments", "oboe", 27),
]
PLACES = [
    ("cities", "P17", "subject"),
    ("cities", "P36", "object"),
    ("cities", "P1376", "subject"),
    ("countries", "P17", "object"),
    ("countries", "P36", "subject"),
    ("countries", "P1376", "object"),
    ("persons", "P50", "object"),
    ("persons", "P101", "subject"),
    ("languages", "P37", "object"),
    ("companies", "P176", "object"),
]


def named(relation: str, role: str, count: int) -> list[Fact]:
    """Facts with ``count`` names in one role, and one and the same text in the other."""
    facts = []
    for number in range(count):
        name, same = f"Name {number:02}", "Same"
        subject, answer = (name, same) if role == "subject" else (same, name)
        facts.append(
            Fact(
                id=f"{relation}{number}",
                relation=relation,
                subject=subject,
                object=answer,
            )
        )
    return facts


@pytest.mark.parametrize(("sort", "one", "count"), KNOWN)
def test_without_facts_the_options_are_names_that_everybody_knows(
    sort: str, one: str, count: int
) -> None:
    pool = option_pools((), DAY)[sort]
    assert one in pool
    assert len(set(pool)) == len(pool) == count
    assert list(pool) == sorted(pool)
    # Twenty are drawn, and one may be what is asked about.
    assert count > 20


def test_there_are_these_sorts_and_no_others() -> None:
    sorts = {
        "small numbers",
        "years",
        "cities",
        "countries",
        "persons",
        "languages",
        "companies",
    }
    assert set(option_pools((), DAY)) == {*sorts, "instruments"}


@pytest.mark.parametrize(("sort", "relation", "role"), PLACES)
def test_more_than_twenty_names_of_the_facts_are_enough(
    sort: str, relation: str, role: str
) -> None:
    names = [f"Name {number:02}" for number in range(21)]
    fallback = set(option_pools((), DAY)[sort])
    enough = option_pools(named(relation, role, 21), DAY)
    few = option_pools(named(relation, role, 20), DAY)
    assert list(enough[sort]) == names
    assert set(few[sort]) == {*names[:20], *fallback}
    # Another sort takes nothing from there but the one text in the other role.
    others = {name for other, pool in enough.items() if other != sort for name in pool}
    assert not others & set(names)


def test_names_that_differ_in_capitals_are_one_and_the_facts_spelling_counts() -> None:
    facts = [
        Fact(id=name, relation="P37", subject="s", object=name)
        for name in ("HINDI", "Xhosa", "xhosa")
    ]
    pool = option_pools(facts, DAY)["languages"]
    assert "HINDI" in pool
    assert "Hindi" not in pool
    assert len({name.casefold() for name in pool}) == len(pool) == 27


def test_a_fact_without_an_answer_gives_its_subject_only() -> None:
    facts = [
        Fact(id="f", relation="P17", subject="Nowhere", object=None, question="Where?")
    ]
    pools = option_pools(facts, DAY)
    assert "Nowhere" in pools["cities"]
    assert pools["countries"] == option_pools((), DAY)["countries"]


def test_numbers_years_and_days() -> None:
    pools = option_pools((), DAY)
    assert (pools["small numbers"][0], pools["small numbers"][-1]) == ("2", "41")
    assert (pools["years"][0], pools["years"][-1]) == ("1846", "2005")
    assert (len(pools["small numbers"]), len(pools["years"])) == (40, 160)
    days = dates_of(2031)
    assert (days[0], days[27], days[28], days[-1]) == (
        "1 January 2031",
        "28 January 2031",
        "1 February 2031",
        "28 December 2031",
    )
    assert len(days) == 336
    months = "January|February|March|April|May|June|July|August|September|October|November|December"
    assert [day.split()[1] for day in days[::28]] == months.split("|")


UNSEEN = Fact(id="u", relation="R", subject="s", object=None, question="Who?")


@pytest.mark.parametrize(
    ("answer_type", "expected"),
    [
        ("number", {str(number) for number in range(2, 42)}),
        # Such questions are of what is to come.
        ("time", {str(year) for year in range(1880, 2040)}),
        ("person", "persons"),
        ("location", "countries"),
        ("other", "companies"),
        ("", "companies"),
    ],
)
def test_a_question_that_was_read_gets_twenty_options_of_its_type(
    answer_type: str, expected: str | set[str]
) -> None:
    allowed = (
        expected if isinstance(expected, set) else set(option_pools((), DAY)[expected])
    )
    question = dataclasses.replace(UNSEEN, answer_type=answer_type)
    (result,) = with_options([question], (), 0)
    assert len(set(result.negatives)) == 20
    assert set(result.negatives) <= allowed
    assert dataclasses.replace(result, negatives=()) == question


def test_the_years_of_a_question_that_was_read_reach_ahead() -> None:
    questions = [
        dataclasses.replace(UNSEEN, id=f"u{number}", answer_type="time")
        for number in range(200)
    ]
    years = {
        int(year)
        for result in with_options(questions, (), 0)
        for year in result.negatives
    }
    assert years == set(range(1880, 2040))


def test_the_draw_is_by_seed_and_by_fact() -> None:
    other = dataclasses.replace(UNSEEN, id="v")
    one, two = with_options([UNSEEN, other], (), 0)
    (again,) = with_options([UNSEEN], (), 0)
    (seeded,) = with_options([UNSEEN], (), 1)
    assert one.negatives == again.negatives
    assert len({one.negatives, two.negatives, seeded.negatives}) == 3
    # Written down, so that no change of the rule can quietly unpair every baseline.
    assert one.negatives[:3] == ("Ford", "Boeing", "Mazda")


def test_a_question_keeps_its_own_options_and_those_that_its_relation_has() -> None:
    own = dataclasses.replace(UNSEEN, negatives=("x", "y"))
    served = dataclasses.replace(UNSEEN, id="v", relation="P36")
    facts = [Fact(id="f", relation="P36", subject="Peru", object="Lima")]
    assert with_options([own, served], facts, 0) == (own, served)
    first, same, filled = with_options([own, served, UNSEEN], facts, 0)
    assert (first, same) == (own, served)
    assert len(filled.negatives) == 20
