"""Spellings of one thing that an answer and an accepted answer may have, and look-alikes that are another."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge


@pytest.mark.parametrize(
    ("answer", "accepted", "question"),
    [
        ("They offer 36 scholarships.", "36.0", "How many scholarships do they offer?"),
        ("36.0", "36", "How many?"),
        ("36.00 metres", "36 m", "How long is it?"),
        ('Dwayne "The Rock" Johnson', "Dwayne Johnson", "Who sings it?"),
        ("It was sung by Dwayne “The Rock” Johnson.", "Dwayne Johnson", "Who sang it?"),
        ("Harry Connick Jr.", "Harry Connick Jnr", "Who recorded it?"),
        ("Sammy Davis Jnr. sang it.", "Sammy Davis Jr.", "Who sang it?"),
        ("50 Massachusetts Ave NE", "50 Massachusetts Avenue NE", "Where is it?"),
        ("It is at 12 Sunset Blvd.", "12 Sunset Boulevard", "Where is it?"),
        ("Abbey Rd.", "Abbey Road", "Where is it?"),
        ("the 1979-1980 season", "1979–80 season", "When was it?"),
        (
            "It began in the 1979-1980 season.",
            "the 1979–80 season",
            "When did it begin?",
        ),
        ("1998/99", "1998-1999", "In which season?"),
    ],
)
def test_one_thing_in_two_spellings(answer: str, accepted: str, question: str) -> None:
    assert judge(answer, [accepted], question).label == "correct"


@pytest.mark.parametrize(
    ("answer", "accepted", "question"),
    [
        ("They may offer up to 36.5.", "36", "How many may they offer?"),
        ("360", "36.0", "How many?"),
        ('Dwayne "The Rock" Johnson', "Dwayne Jackson", "Who sings it?"),
        ('Boris "The Rock" Johnson', "Dwayne Johnson", "Who sings it?"),
        ("Harry Connick Sr.", "Harry Connick Jnr", "Who recorded it?"),
        ("50 Massachusetts Road", "50 Massachusetts Ave", "Where is it?"),
        ("1979-81", "1979–80", "When was it?"),
        ("1979-1981 season", "1979–80 season", "When was it?"),
        ("15 Massachusetts Ave", "50 Massachusetts Avenue", "Where is it?"),
    ],
)
def test_two_things_that_look_alike(answer: str, accepted: str, question: str) -> None:
    assert judge(answer, [accepted], question).label == "wrong"
