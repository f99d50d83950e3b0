"""Which rows of a source say the same, and what a row without an id is called."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from pytest_kbrel.facts.readers.base import Row, with_unique_ids
from pytest_kbrel.records import Fact, Former

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
    "valid_from": "2020-01-01",
    "valid_until": "2030-01-01",
    "former": (Former(object="Cusco", valid_until="1535-01-17"),),
    "language": "de",
    "answer_range": (1.0, 2.0),
    "group": "g",
    "wordings": ("Seat of government?",),
    "role": "edit",
    "old": "Lima",
    "needs": (("Which sea?", ("Pacific",)),),
    "any_wording": True,
    "parallel": "P36:PE",
}


def row(fact: Fact, *, given: bool = False) -> Row:
    return Row(path=Path("f"), line=1, fact=fact, given=given)


def settled(*facts: Fact, given: bool = False) -> list[Row]:
    return list(with_unique_ids(row(fact, given=given) for fact in facts))


def test_every_field_of_a_fact_is_looked_at() -> None:
    fields = {field.name for field in dataclasses.fields(Fact)}
    assert fields == {"id", "duplicate_of", *TELLING, *SILENT}


def test_one_fact_under_two_ids_names_the_first_and_keeps_its_own() -> None:
    other = dataclasses.replace(FACT, id="b")
    _, result = settled(FACT, other, given=True)
    assert result.fact == dataclasses.replace(other, duplicate_of="a")
