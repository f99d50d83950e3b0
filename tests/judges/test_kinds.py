"""Kinds of right answers that differ from an accepted one, and wrong answers that look like them."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.containment import short_forms
from pytest_kbrel.judges.rules import judge

WHO = "Who wrote it?"
RANGE = "Which range of Italy is it?"
SEASON = "Which season was it?"
SHIP = "Which ship was it?"
THREE = "Who were the three painters?"
TWO = "Who were the two painters?"
PARTS = ["Ann Lee", "Bob Ray", "Cy Poe"]
STATES = "Which four states begin with New?"
NEW = ["New York, New Jersey, New Hampshire, New Mexico"]
OF_TWO = "Is it part of Asia or Europe?"

RIGHT = [
    # A surname is accepted. Which person of that name is meant, it does not tell.
    (WHO, ["Orwell"], "George Orwell"),
    (WHO, ["Orwell"], "It was written by George Orwell."),
    (WHO, ["Orwell", "City of Orwell"], "George Orwell"),
    (WHO, ["Woolf"], "Virginia Woolf"),
    ("Which English chemist was it?", ["Davy"], "Sir Humphry Davy"),
    ("Who plays the grandmother?", ["Rigg"], "Diana Rigg"),
    # The question names the nation.
    (RANGE, ["Alps"], "Italian Alps"),
    (RANGE, ["Alps"], "It is the Italian Alps."),
    # Ordinals and numbers
    (SEASON, ["ninth season"], "Season 9"),
    (SEASON, ["ninth season"], "It was season nine."),
    (SEASON, ["season 9"], "It was the ninth season."),
    (SEASON, ["season 9"], "It was the ninth."),
    (SEASON, ["ninth season"], "Ninth"),
    ("When was it?", ["Second World War"], "World War II"),
    ("When was it?", ["World War II"], "It was in the Second World War."),
    ("When was it?", ["World War 3"], "the third world war"),
    ("When was it?", ["Dynasty 12"], "the twelfth dynasty"),
    ("When was it?", ["Dynasty 21"], "It was in the 21st dynasty."),
    ("When was it?", ["Dynasty 22"], "It was in the 22nd dynasty."),
    ("In which century was it?", ["12th century"], "12th"),
    # Several are asked for.
    (THREE, ["Ann Lee, Bob Ray and Cy Poe"], "Cy Poe, Ann Lee and Bob Ray"),
    (THREE, PARTS, "Cy Poe, Ann Lee and Bob Ray"),
    (THREE, PARTS, "Ann Lee, Bob Ray and Di Fox"),
    ("Which painters signed?", PARTS, "The painters were Ann Lee, Bob Ray and Di Fox."),
    (STATES, NEW, "1. New Hampshire 2. New Jersey 3. New Mexico 4. New York"),
    # What somebody or something is
    ("Who was it?", ["Prime Minister Shinzo Abe"], "Shinzo Abe"),
    ("Who was it?", ["U.S. President John F. Kennedy"], "It was John F. Kennedy."),
    ("What was it?", ["the drama series Orion"], "Orion"),
    ("Who sang?", ["English rock band the Outfield"], "The Outfield"),
    (SHIP, ["HMS Victory"], "Victory"),
    (SHIP, ["Victory"], "HMS Victory"),
    ("Who won?", ["Confederate"], "the Confederate Army"),
    ("Who won?", ["Labour"], "It was the Labour Party."),
    # A clause about it
    ("Where is it?", ["Tandi, in Lahaul"], "Tandi"),
    ("Who was it?", ["Ann Lee, who wrote Orion with Bob Ray"], "Ann Lee"),
    ("Who gave it?", ["Oslo, Norway"], "Oslo"),
    ("Who gave it?", ["Oslo, Norway"], "The city of Oslo in Norway"),
    # The question's words
    ("What do they speak?", ["English language"], "They speak English."),
    ("In which month was it?", ["December"], "December 7, 1941"),
    (OF_TWO, ["Asia"], "It is part of Asia, not Europe."),
    ("When did Never Again open?", ["1974"], "Never Again opened in 1974."),
    ("When did Don't Look Back come out?", ["2 May 1974"], "Don't Look Back came out on May 2, 1974."),
    ("Which is the cycle of Krebs?", ["lactic acid"], "The Krebs (or citric) cycle is lactic acid."),
    (WHO, ["Ann Lee"], "Ann Lee, also known as Bee or Bo"),
]
WRONG = [
    # Another person, no person, or somebody of the same family
    (WHO, ["Orwell", "George Orwell"], "Jane Orwell"),
    (WHO, ["Orwell", "George Orwell"], "It was Jane Orwell."),
    (WHO, ["Orwell"], "George Orwell Smith"),
    (WHO, ["Orwell"], "the wife of George Orwell"),
    (WHO, ["Orwell"], "George Orwell's wife"),
    (WHO, ["Orwell"], "not George Orwell"),
    (WHO, ["Orwell"], "George Orwell or Ann Lee"),
    (WHO, ["Orwell"], "Orwell House"),
    (WHO, ["Orwell"], "george orwell"),
    (WHO, ["ORWELL"], "George Orwell"),
    ("Who was the wife of George Orwell?", ["Orwell"], "Sonia Orwell"),
    ("Which town is it?", ["Orwell"], "George Orwell"),
    ("Who declares war?", ["Congress"], "Continental Congress"),
    ("Who is it?", ["King"], "Burger King"),
    ("Who is it?", ["Woolf"], "Young Woolf"),
    ("Who is it?", ["Woolf"], "Company Woolf"),
    ("Who won?", ["Paris"], "Bob Paris"),
    ("Who is it?", ["Cher"], "Cher Lloyd"),
    ("Which Methodist town is it?", ["Methodist"], "Bob Methodist"),
    ("Which list is it?", ["Orwell"], "George Orwell"),
    # A place of the same name
    ("Which range is it?", ["Alps"], "Australian Alps"),
    (RANGE, ["Alps"], "Australian Alps"),
    (RANGE, ["Alps"], "It is the Australian Alps."),
    # Another number, another thing that is numbered, or how many there are
    (SEASON, ["ninth season"], "Season 8"),
    (SEASON, ["ninth season"], "episode nine"),
    (SEASON, ["ninth season"], "ninth episode"),
    (SEASON, ["ninth season"], "nine seasons"),
    (SEASON, ["ninth season"], "There were nine."),
    (SEASON, ["season 9"], "the nineteenth season"),
    ("When was it?", ["Second World War"], "World War I"),
    ("When was it?", ["Second World War"], "Star War II"),
    ("In which century was it?", ["12th century"], "13th"),
    ("How many were there?", ["12th century"], "12th"),
    # One missing, too many, or mostly others
    (THREE, ["Ann Lee, Bob Ray and Cy Poe"], "Ann Lee and Bob Ray"),
    (THREE, PARTS, "Ann Lee, Ed Day and Di Fox"),
    (TWO, PARTS[:2], "Ann Lee, Bob Ray and Di Fox"),
    (TWO, PARTS[:2], "The two painters were Ann Lee, Bob Ray and Di Fox."),
    ("Who was the painter?", PARTS[:2], "Ann Lee, Bob Ray and Di Fox"),
    (STATES, NEW, "New Hampshire, New Jersey and New Mexico"),
    # A whole name, and somebody else in the description
    ("Which island is it?", ["Prince Edward Island"], "Edward Island"),
    ("Which city is it?", ["Saint Petersburg"], "Petersburg"),
    ("Which company is it?", ["General Motors"], "Motors"),
    ("Who is it?", ["the father of Ann Lee"], "Ann Lee"),
    ("Who is it?", ["former king Bob Ray"], "Bob Ray"),
    ("Where is it?", ["the suburb Clichy"], "Clichy"),
    ("Who was it?", ["Ann Lee, who wrote Orion with Bob Ray"], "Bob Ray"),
    ("Which is it?", ["not Paris, which is in Texas"], "Paris"),
    (SHIP, ["Victory"], "HMS Victory Bell"),
    ("Who won?", ["Republican"], "the Republican Guard"),
    ("Who gave it?", ["Paris, Texas"], "Paris, France"),
    ("Who gave it?", ["Paris, Texas"], "Paris in France"),
    ("Which flight is it?", ["Apollo"], "Apollo 11"),
    # The question's words taken for more than they are
    ("What do they speak?", ["English language"], "Old English"),
    ("What do they speak?", ["sign language"], "sign"),
    (OF_TWO, ["Asia"], "It is part of Europe, not Asia."),
    (OF_TWO, ["Asia"], "It is part of Asia and Europe."),
    ("When did Never Again open?", ["1974"], "Never Again did not open in 1974."),
    ("When did Don't Look Back come out?", ["1974"], "Don't Look Back didn't come out in 1974."),
    (WHO, ["Ann Lee"], "Ann Lee or Bo, also known as Bee"),
    (WHO, ["Ann Lee"], "known as Ann Lee or Bo"),
]


@pytest.mark.parametrize(("question", "golds", "answer"), RIGHT, ids=[row[2] for row in RIGHT])
def test_the_same_said_otherwise_is_right(question, golds, answer):
    assert judge(answer, golds, question).label == "correct"


@pytest.mark.parametrize(("question", "golds", "answer"), WRONG, ids=[row[2] for row in WRONG])
def test_what_looks_like_it_is_wrong(question, golds, answer):
    assert judge(answer, golds, question).label == "wrong"


def test_a_surname_alone_does_not_tell_which_person_is_meant():
    assert judge("Jane Orwell", ["Orwell"], WHO).rule == "full name"
    assert judge("Jane Orwell", ["Orwell", "George Orwell"], WHO).label == "wrong"


@pytest.mark.parametrize(
    ("gold", "shorter"),
    [
        ("the drama series Orion", ("Orion",)),
        ("British Prime Minister Ann Lee", ("Ann Lee",)),
        ("English rock band the Outfield", ("Outfield",)),
        ("RMS Carpathia", ("Carpathia",)),
        ("Ann Lee, who was Bee from 1154 to 1159", ("Ann Lee",)),
        ("In Mississippi, as Thomas. He took a name.", ("In Mississippi",)),
        ("Orion", ()),
        ("General Motors", ()),
        ("band of brothers", ()),
        ("the drama series orion", ()),
        ("a gas, which is lighter than air", ()),
        ("not Paris, which is in Texas", ()),
        ("Paris, Texas", ()),
        ("", ()),
    ],
)
def test_a_gold_that_tells_more_than_a_name_is_the_name_as_well(gold, shorter):
    assert short_forms(gold) == shorter
