"""Which rows of a source say the same, and what a row without an id is called."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from pytest_kbrel.facts.readers.base import Ids, Row
from pytest_kbrel.records import Fact

FACT = Fact(id="a", relation="P36", subject="Peru", object="Lima", question="Capital?")
# What tells facts apart, and what does not.
TELLING = {"relation": "P37", "subject": "Mali", "object": "Cusco", "question": "Seat?"}
SILENT = {
    "aliases": ("Lima City",),
    "popularity": 0.0,
    "negatives": ("Cusco",),
    "source": "own",
    "licence": "CC0-1.0",
    "answer_type": "location",
    "dataset": "d",
    "bucket": "tail",
    "valid_until": "2030-01-01",
    "language": "de",
    "answer_range": (1.0, 2.0),
    "group": "g",
}


def row(fact: Fact, *, given: bool = False) -> Row:
    return Row(path=Path("f"), line=1, fact=fact, given=given)


def settled(*facts: Fact, given: bool = False) -> list[Row]:
    ids = Ids()
    return [ids.with_unique_id(row(fact, given=given)) for fact in facts]


def test_every_field_of_a_fact_is_looked_at() -> None:
    fields = {field.name for field in dataclasses.fields(Fact)}
    assert fields == {"id", "duplicate_of", *TELLING, *SILENT}


@pytest.mark.parametrize("name", TELLING)
def test_facts_that_differ_in_one_thing_they_say_are_two(name: str) -> None:
    other = dataclasses.replace(FACT, **{name: TELLING[name]})
    _, result = settled(FACT, other)
    assert (result.fact, result.error) == (dataclasses.replace(other, id="a#2"), None)
    _, refused = settled(FACT, other, given=True)
    assert refused.fact is None
    assert "id 'a' stands twice, for facts that differ" in str(refused.error)


def test_without_an_object_or_a_question_a_fact_says_something_else() -> None:
    for name in ("object", "question"):
        other = dataclasses.replace(FACT, id="b", **{name: None})
        assert [result.fact for result in settled(FACT, other)] == [FACT, other]


def test_one_fact_under_two_ids_names_the_first_and_keeps_its_own() -> None:
    other = dataclasses.replace(FACT, id="b")
    _, result = settled(FACT, other, given=True)
    assert result.fact == dataclasses.replace(other, duplicate_of="a")


def test_numbers_go_on_and_leave_out_what_is_taken() -> None:
    facts = [dataclasses.replace(FACT, subject=str(n)) for n in range(3)]
    taken = dataclasses.replace(FACT, id="a#3", subject="x")
    result = settled(facts[0], taken, facts[1], facts[2])
    assert [one.fact and one.fact.id for one in result] == ["a", "a#3", "a#2", "a#4"]
