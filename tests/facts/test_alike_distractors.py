"""Distractors of files of questions, whose one relation has answers of every kind."""

from __future__ import annotations

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.distractors import (
    Alike,
    is_spelt,
    with_alike_negatives,
    with_negatives,
)
from pytest_kbrel.records import Fact, Relation, ReliabilitySettings

MIXED = Relation(id="nq", label="nq", domain="open", frames=())
COUNTS = {
    "who wrote book": 12,
    "when was work": 12,
    "in what country is town": 12,
    "what sport suits land": 3,
}
ANSWERS = ("Author {}n Lee", "{}", "Country{}", "sport{}")


def question(name: str, answer: str, text: str, **more: object) -> Fact:
    return Fact(
        id=name, relation="nq", subject=text, question=text, object=answer, **more
    )  # type: ignore[arg-type]


def letters(number: int) -> str:
    return "abcdefghijklm"[number]


POOL = tuple(
    question(
        f"{text[:4]}{n}",
        answer.format(1900 + n if answer == "{}" else letters(n)),
        f"{text} {n}",
    )
    for (text, size), answer in zip(COUNTS.items(), ANSWERS, strict=True)
    for n in range(size)
)


def drawn(
    facts: tuple[Fact, ...] = POOL,
    pool: tuple[Fact, ...] = POOL,
    count: int = 9,
    writer: str = "openai/writer",
) -> tuple[tuple[Fact, ...], Alike]:
    settings = ReliabilitySettings(distractors=count, distractors_from=writer)
    return with_alike_negatives(facts, pool, {"nq": MIXED}, settings, 0)


def test_nothing_else_fills_up_where_there_are_enough_of_the_kind() -> None:
    sang = tuple(
        question(f"s{n}", f"Singer {letters(n)}o", f"who sang song {n}")
        for n in range(4)
    )
    facts, alike = drawn(sang[:1], (*sang, *POOL[:4], *POOL[12:24]))
    assert len(facts[0].negatives) == 7
    assert alike == (("s0", 1.0),)


def test_a_question_without_an_answer_is_drawn_for_by_what_it_asks() -> None:
    unseen = Fact(
        id="u", relation="nq", subject="q", question="who wrote book 99", object=None
    )
    facts, alike = drawn((unseen,))
    assert all(name.startswith("Author") for name in facts[0].negatives)
    assert alike == (("u", 1.0),)
    # Where the question does not tell, nothing is told.
    unclear = Fact(
        id="u", relation="nq", subject="q", question="what is it", object=None
    )
    assert drawn((unclear,))[1] == ()
    assert len(drawn((unclear,))[0][0].negatives) == 9


def test_too_few_altogether_are_an_error() -> None:
    with pytest.raises(
        SuiteError, match="fact 'who 0' needs at least 4 wrong answers, found 2"
    ):
        drawn(POOL[:1], POOL[:3], writer="facts")


def test_an_object_without_a_spelling_is_no_wrong_answer() -> None:
    marks = (
        question("m", "!!!", "who wrote it"),
        question("e", "\U0001f3c8", "who did"),
    )
    assert not any(is_spelt(str(fact.object)) for fact in marks)
    for result in (
        drawn(POOL[:1], (*POOL[:4], *marks))[0],
        with_negatives(POOL[:1], (*POOL[:4], *marks), 9, 0),
    ):
        assert set(result[0].negatives) == {str(fact.object) for fact in POOL[1:4]}


def test_a_number_that_is_right_by_the_range_is_no_wrong_answer() -> None:
    counts = tuple(
        question(f"n{n}", f"{n},000 people", f"how many live in {n}")
        for n in range(100, 120)
    )
    fact = question(
        "own", "110,000", "how many live here", answer_range=(105_000.0, 115_000.0)
    )
    result = drawn((fact,), counts, count=20)[0][0].negatives
    assert set(result) == {
        f"{n},000 people" for n in (*range(100, 105), *range(116, 120))
    }
