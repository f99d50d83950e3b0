"""Golds with a range of numbers or years that are right: inside is right, outside wrong."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge

PEOPLE = ("120,000", (118_000.0, 122_000.0), "How many people live in Vale?")
ACRES = ("168 acres", (166.0, 170.0), "How large is Vale Park in acres?")
YEAR = ("1985", (1983.0, 1987.0), "In which year did Vale open?")
DEGREES = ("-33.77", (-33.8, -33.7), "What is the latitude of Vale in 2010?")
MONEY = ("$3.5 million", (3_400_000.0, 3_600_000.0), "What did Vale cost?")
METRES = ("2.4 m", (2.3, 2.5), "How tall is Vale?")
COUNT = ("1,950", (1900.0, 2000.0), "How many steps does Vale have?")


@pytest.mark.parametrize(
    ("about", "answer"),
    [
        *(
            (PEOPLE, text)
            for text in (
                "118,000",
                "122,000",
                "About 119k people",
                "120,314.",
                "121 thousand",
            )
        ),
        *(
            (PEOPLE, text)
            for text in ("In 2020 it had 119,000 people.", "It is 120K", "0.12 million")
        ),
        *(
            (ACRES, text)
            for text in (
                "166",
                "170 acres",
                "It covers 168.5 acres.",
                "approximately 169",
            )
        ),
        *(
            (YEAR, text)
            for text in (
                "1983",
                "in 1987",
                "c. 1984",
                "It opened in May 1986.",
                "12 May 1985",
            )
        ),
        *(
            (DEGREES, text)
            for text in ("-33.75", "minus 33.8", "In 2010 it was -33.7 degrees")
        ),
        *(
            (MONEY, text)
            for text in (
                "$3.6 million",
                "3.5m",
                "3,450,000 dollars",
                "It cost $3.4 million.",
            )
        ),
        *((METRES, text) for text in ("2.5 m", "2.3", "2.4m")),
        *((COUNT, text) for text in ("1900", "1,999 steps", "2000")),
    ],
)
def test_inside_is_right(
    about: tuple[str, tuple[float, float], str], answer: str
) -> None:
    gold, within, question = about
    result = judge(answer, [gold], question, within=within)
    assert (result.label, result.rule) in (("correct", "range"), ("correct", "equal"))


@pytest.mark.parametrize(
    ("about", "answer"),
    [
        *(
            (PEOPLE, text)
            for text in (
                "117,999",
                "122,001",
                "119",
                "130k",
                "1.2 million",
                "about 12,000",
            )
        ),
        *(
            (PEOPLE, text)
            for text in (
                "more than 119,000",
                "not 120,000",
                "119,000 or 125,000",
                "-120,000",
            )
        ),
        *((ACRES, text) for text in ("165", "171 acres", "168 km", "0.168")),
        *((YEAR, text) for text in ("1982", "1988", "May 1990", "1999, not 1985")),
        *((DEGREES, text) for text in ("33.75", "-33.9", "-33")),
        *(
            (MONEY, text)
            for text in ("$3.7 million", "3.5", "$3.5 billion", "3.5 euros")
        ),
        *((METRES, text) for text in ("2.6 m", "2.4 km", "240")),
    ],
)
def test_outside_is_wrong(
    about: tuple[str, tuple[float, float], str], answer: str
) -> None:
    gold, within, question = about
    result = judge(answer, [gold], question, within=within)
    assert (result.label, result.rule) == ("wrong", "range")


def test_a_rounded_number_outside_is_wrong_though_it_would_be_right_without_a_range() -> (
    None
):
    question = "How many people live in Vale?"
    assert judge("about 120,000", ["124,467"], question).label == "correct"
    assert (
        judge(
            "about 120,000", ["124,467"], question, within=(124_000.0, 125_000.0)
        ).label
        == "wrong"
    )


def test_what_gives_no_number_is_judged_as_ever() -> None:
    gold, within, question = PEOPLE
    assert (
        judge("I do not know.", [gold], question, within=within).label
        == "uninformative"
    )
    assert judge("", [gold], question, within=within).rule == "none"
    assert judge("many", [gold], question, within=within).rule == "no rule"
    # Another accepted answer is as good.
    assert (
        judge(
            "six score thousand", [gold, "Six score thousand"], question, within=within
        ).rule
        == "equal"
    )
    assert (
        judge("It opened long ago.", ["1985"], YEAR[2], within=YEAR[1]).rule
        == "no rule"
    )


def test_an_answer_behind_an_excuse_counts() -> None:
    gold, within, question = PEOPLE
    answer = "I am not aware of any other source. It is 119,500."
    assert judge(answer, [gold], question, within=within).label == "correct"
