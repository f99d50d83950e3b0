"""Wrong options of unanswerable questions: where they come from, and which a question of each type gets."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from pytest_kbrel.facts.unseen import dates_of, option_pools, with_options
from pytest_kbrel.records import Fact

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
        facts.append(Fact(id=f"{relation}{number}", relation=relation, subject=subject, object=answer))
    return facts


@pytest.mark.parametrize(("sort", "one", "count"), KNOWN)
def test_without_facts_the_options_are_names_that_everybody_knows(sort: str, one: str, count: int) -> None:
    pool = option_pools((), DAY)[sort]
    assert one in pool
    assert len(set(pool)) == len(pool) == count
    assert list(pool) == sorted(pool)
    # Twenty are drawn, and one may be what is asked about.
    assert count > 20


def test_there_are_these_sorts_and_no_others() -> None:
    sorts = {"small numbers", "years", "cities", "countries", "persons", "languages", "companies"}
    assert set(option_pools((), DAY)) == {*sorts, "instruments"}


@pytest.mark.parametrize(("sort", "relation", "role"), PLACES)
def test_more_than_twenty_names_of_the_facts_are_enough(sort: str, relation: str, role: str) -> None:
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
    facts = [Fact(id=name, relation="P37", subject="s", object=name) for name in ("HINDI", "Xhosa", "xhosa")]
    pool = option_pools(facts, DAY)["languages"]
    assert "HINDI" in pool
    assert "Hindi" not in pool
    assert len({name.casefold() for name in pool}) == len(pool) == 27


def test_a_fact_without_an_answer_gives_its_subject_only() -> None:
    facts = [Fact(id="f", relation="P17", subject="Nowhere", object=None, question="Where?")]
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
    allowed = expected if isinstance(expected, set) else set(option_pools((), DAY)[expected])
    question = dataclasses.replace(UNSEEN, answer_type=answer_type)
    (result,) = with_options([question], (), 0)
    assert len(set(result.negatives)) == 20
    assert set(result.negatives) <= allowed
    assert dataclasses.replace(result, negatives=()) == question


def test_the_years_of_a_question_that_was_read_reach_ahead() -> None:
    questions = [dataclasses.replace(UNSEEN, id=f"u{number}", answer_type="time") for number in range(200)]
    years = {int(year) for result in with_options(questions, (), 0) for year in result.negatives}
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
