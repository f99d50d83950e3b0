from __future__ import annotations

import pytest

from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.records import Fact, Relation


def fact(answer: str | None, answer_type: str = "") -> Fact:
    return Fact(id="f", relation="r", subject="s", object=answer, answer_type=answer_type)  # type: ignore[arg-type]


def relation(answer_type: str = "") -> Relation:
    return Relation(id="r", label="r", domain="d", frames=(), answer_type=answer_type)  # type: ignore[arg-type]


def test_the_facts_own_word_counts_before_the_relations_and_that_before_looks() -> None:
    assert answer_type_of(fact("1984", "other"), relation("person")) == "other"
    assert answer_type_of(fact("1984"), relation("person")) == "person"
    assert answer_type_of(fact("1984"), relation()) == "time"
    assert answer_type_of(fact("1984"), None) == "time"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        *((text, "time") for text in ("1066", "2019", "c. 1850", "44 BC", "the 1960s", "1990's")),
        *((text, "time") for text in ("5 March 2031", "March 5, 2031", "July 1969", "June", "4th of July")),
        *((text, "time") for text in ("1969-07-20", "20/07/1969", "the 19th century", "5th century BC")),
        *((text, "number") for text in ("7", "3.5", "1,000,000", "-4", "12 %", "40 percent", "3 million")),
        *((text, "number") for text in ("$ 5", "299 792 458", "900", "2500")),
        *((text, "other") for text in ("Paris", "seven", "Apollo 11", "May Day", "2 Fast", "U2", "", "1st")),
        (None, "other"),
    ],
)
def test_looks(answer: str | None, expected: str) -> None:
    assert answer_type_of(fact(answer), relation()) == expected
