"""Kinds of right answers that differ from an accepted one, and wrong answers that look like them."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.containment import short_forms
from pytest_kbrel.judges.rules import is_variant, judge

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
MARRY = "Who does Eric marry in the show?"
EARN = "What is the salary of a senator?"
FEE = "How much does it cost?"
MANY = "How many scholarships do they get?"
PLACE = "In what place did they finish?"
COLD = "What is minus 40 Fahrenheit in Celsius?"
COLLEGE = "Which college won the title?"
AIRPORT = "Which airport has the code ABC?"
FATHER = "Who was his father?"
LETTER = "Who got the letter?"
BLOOD = "Which blood type is the most common?"
LANGUAGE = "Which language is it written in?"
WHERE = "Where is it?"
FIRST = "Who was born first, Ann Lee or Bo Ray?"
MOST = "Who has the most wins?"
SONG = "When was the song released?"
SHORES = "Where did they land?"
SAYS = ["Sigismund I the Old"]

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
    (
        "When did Don't Look Back come out?",
        ["2 May 1974"],
        "Don't Look Back came out on May 2, 1974.",
    ),
    (
        "Which is the cycle of Krebs?",
        ["lactic acid"],
        "The Krebs (or citric) cycle is lactic acid.",
    ),
    (WHO, ["Ann Lee"], "Ann Lee, also known as Bee or Bo"),
    # A figure of fiction by the given name
    (MARRY, ["Donna"], "Eric marries Donna Pinciotti."),
    (MARRY, ["Donna"], "Donna Pinciotti"),
    (MARRY, ["Donna Pinciotti"], "Donna"),
    (MARRY, ["Donna Pinciotti"], "Eric marries Donna."),
    ("Which character dies in season 2?", ["Jack"], "Jack Shephard dies."),
    # A sum and the time it is for
    (EARN, ["$174,000"], "It is $174,000 per year."),
    (EARN, ["$174,000"], "A senator earns $174,000 a year."),
    ("How much is it a month?", ["$9.99"], "It costs $9.99 per month."),
    ("What is the monthly fee?", ["$9.99"], "It costs $9.99 per month."),
    (FEE, ["$9.99"], "It costs $9.99 per month."),
    ("How much does a barrel cost?", ["$50"], "It costs $50 per barrel."),
    # A bound where the most is asked for
    (MANY, ["36"], "They are allowed to offer up to 36."),
    ("How many can it carry?", ["36"], "It carries up to 36."),
    # A rank
    (PLACE, ["5"], "They finished fifth."),
    (PLACE, ["fifth"], "They finished in place 5."),
    (PLACE, ["5th"], "5"),
    ("What is its rank?", ["2"], "It is ranked second in the world."),
    # A minus in two writings, though the question has the number
    (COLD, ["minus 40"], "-40"),
    (COLD, ["-40"], "minus 40"),
    (COLD, ["minus 40"], "-40 degrees"),
    (COLD, ["minus 40 degrees"], "It is -40."),
    # What the kind of thing implies
    (COLLEGE, ["Arkansas"], "The University of Arkansas won it."),
    (COLLEGE, ["Michigan"], "The University of Michigan in 1997"),
    (AIRPORT, ["Prestwick"], "Glasgow Prestwick Airport has the code ABC."),
    (AIRPORT, ["Prestwick"], "Glasgow Prestwick"),
    # A ruler's byname and realm
    (FATHER, SAYS, "Sigismund I"),
    (FATHER, [*SAYS, "a king of Poland"], "It was King Sigismund I of Poland."),
    ("Who was the king of Poland?", SAYS, "Sigismund I of Poland"),
    # "In" and "at"
    (LETTER, ["the church at Philippi"], "the church in Philippi"),
    (LETTER, ["the church in Philippi"], "It was the church at Philippi."),
    # Signs
    (BLOOD, ["A+"], "The most common type is A+."),
    (BLOOD, ["A+", "O+"], "It is A positive (A+)."),
    (LANGUAGE, ["C++"], "The program is written in C++."),
    # A part of where it is
    (WHERE, ["Asia"], "South Asia"),
    (WHERE, ["Asia"], "It lives in Central Asia."),
    (WHERE, ["Europe"], "It is in Eastern Europe."),
    (
        "In which country is it?",
        ["United States"],
        "It is in the Midwestern United States.",
    ),
    # A choice
    (FIRST, ["Ann Lee"], "Ann Lee was born first, in 1966. Bo Ray was born in 1969."),
    (FIRST, ["Bo Ray"], "Bo Ray was born first, while Ann Lee was born in 1969."),
    # What stands in the same words as a comparison, where that is asked for
    (
        "Who is ahead of Ann Lee?",
        ["Bob Ray"],
        "She is behind, ahead of her is Bob Ray.",
    ),
    ("Who came after Ann Lee?", ["Bob Ray"], "Ann Lee was followed by Bob Ray."),
    ("Who followed Ann Lee?", ["Bob Ray"], "Ann Lee was followed by Bob Ray."),
    (MOST, ["Ann Lee"], "Ann Lee has the most wins, ahead of Bob Ray."),
    # Dates and rounded numbers
    (SONG, ["8 November 1968"], "in late 1968"),
    (SONG, ["8 May 1968"], "in mid 1968"),
    (SONG, ["late 1968"], "in 1968"),
    ("How many are there?", ["224"], "over 220"),
    ("How many are there?", ["216"], "nearly 220"),
    (SHORES, ["Plymouth, Massachusetts"], "plymouth, massachusetts"),
    (SHORES, ["Plymouth, Massachusetts"], "plymouth, on the coast"),
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
    (
        "When did Don't Look Back come out?",
        ["1974"],
        "Don't Look Back didn't come out in 1974.",
    ),
    (WHO, ["Ann Lee"], "Ann Lee or Bo, also known as Bee"),
    (WHO, ["Ann Lee"], "known as Ann Lee or Bo"),
    # Another figure, one who made the work, a name of the question, or nobody
    (MARRY, ["Donna"], "Eric marries Dora Pinciotti."),
    (MARRY, ["Donna", "Donna Pinciotti"], "Donna Reed"),
    (MARRY, ["Donna Pinciotti"], "Dora"),
    (MARRY, ["Eric Forman"], "Eric"),
    (MARRY, ["Donna"], "Donna House"),
    (MARRY, ["Donna"], "Not Donna Pinciotti."),
    (MARRY, ["London"], "London Tipton"),
    ("Who sings the song in the film?", ["Selena"], "Selena Gomez"),
    ("Who plays the mother in the show?", ["Cher"], "Cher Lloyd"),
    ("Who wrote it?", ["Homer"], "Homer Simpson"),
    ("Who wrote it?", ["William Shakespeare"], "William"),
    ("Which town is in the film?", ["Donna"], "Donna Pinciotti"),
    # Another time or another sum
    (EARN, ["$174,000"], "It is $174,000 per month."),
    (EARN, ["$174,000"], "It is $14,500 per year."),
    ("What is the annual fee?", ["$9.99"], "It costs $9.99 per month."),
    ("How much is it a year?", ["$9.99"], "It costs $9.99 per month."),
    (FEE, ["$9.99"], "It costs $9.99 per head."),
    (FEE, ["5 km"], "5 km per hour"),
    # A bound of something that is there
    (MANY, ["36"], "They get up to 36."),
    ("How many islands are there?", ["36"], "There are up to 36 islands."),
    ("How many can it carry?", ["36"], "It carries more than 36."),
    ("How many can it carry?", ["36"], "It carries up to 40."),
    # Another rank, or something else that is counted
    (PLACE, ["5"], "They finished fifteenth."),
    (PLACE, ["5"], "They finished fourth."),
    (PLACE, ["5"], "In the fifth season they won."),
    (PLACE, ["5"], "They finished third or fifth."),
    (PLACE, ["5"], "They did not finish fifth."),
    (PLACE, ["fifth"], "They had 5 wins."),
    ("How many were there?", ["5"], "the fifth"),
    ("Who came?", ["fifth"], "5"),
    ("What rank is it?", ["fifth"], "fifteen"),
    (PLACE, ["5"], "5 5"),
    # Another sign
    (COLD, ["minus 40"], "40"),
    (COLD, ["minus 40"], "40 degrees"),
    (COLD, ["40"], "minus 40"),
    (COLD, ["minus 40"], "-4"),
    ("What is 40 less 80?", ["-40"], "40"),
    # Another university, or none is asked for
    (COLLEGE, ["Arkansas"], "The University of Central Arkansas won it."),
    (COLLEGE, ["Arkansas"], "The University of Arkansas at Little Rock won it."),
    (COLLEGE, ["California"], "The University of California, Berkeley, won it."),
    (COLLEGE, ["Michigan"], "Michigan State won it."),
    (COLLEGE, ["Arkansas"], "The Bank of Arkansas won it."),
    ("Where did she live?", ["Virginia"], "the University of Virginia"),
    (AIRPORT, ["Glasgow"], "Glasgow Prestwick Airport"),
    (AIRPORT, ["Prestwick"], "Saint Prestwick Hall Airport"),
    (AIRPORT, ["Prestwick"], "Little Prestwick Airport"),
    (AIRPORT, ["Prestwick"], "The Ann Prestwick Airport"),
    ("Which bank is it?", ["Prestwick"], "Glasgow Prestwick"),
    # Another ruler
    (FATHER, SAYS, "Sigismund II"),
    (FATHER, SAYS, "Sigismund the Great"),
    (FATHER, ["Philip II the Bold"], "Philip II of Spain"),
    (FATHER, ["Philip II the Bold"], "It was King Philip II of Spain."),
    (FATHER, ["Philip II the Bold", "a duke of Burgundy"], "Philip II of Spain"),
    # Another church, and the titles of works
    (LETTER, ["the church at Philippi"], "the church of Philippi"),
    (LETTER, ["the church at Philippi"], "the church in Corinth"),
    ("Which album is it?", ["Live at Leeds"], "Live in Leeds"),
    ("What was it?", ["look at it"], "look in it"),
    # Another sign
    (BLOOD, ["A+"], "The most common type is A-."),
    (BLOOD, ["A+"], "The most common type is AA+."),
    (BLOOD, ["A+"], "A most common type is not known to them."),
    (BLOOD, ["A+"], "The most common type is not A+."),
    (LANGUAGE, ["C++"], "The program is written in C#."),
    (LANGUAGE, ["C++"], "The program is written in C."),
    # Another land
    (WHERE, ["America"], "South America"),
    (WHERE, ["Africa"], "South Africa"),
    (WHERE, ["Ireland"], "Northern Ireland"),
    (WHERE, ["Virginia"], "West Virginia"),
    ("Which airline is it?", ["Asia"], "South Asia"),
    ("Where is it?", ["United States"], "the South United States Bank"),
    # The other one
    (FIRST, ["Ann Lee"], "Bo Ray was born first, while Ann Lee was born in 1969."),
    (FIRST, ["Ann Lee"], "Ann Lee was born in 1966. Bo Ray was born first."),
    (FIRST, ["Ann Lee"], "Ann Lee and Bo Ray were born first."),
    (FIRST, ["Ann Lee"], "Ann Lee was not born first."),
    # What another is set before
    (MOST, ["Bob Ray"], "Ann Lee, followed by Bob Ray"),
    (MOST, ["Bob Ray"], "ann lee, surpassing bob ray"),
    (MOST, ["Bob Ray"], "Ann Lee with seven, ahead of Bob Ray"),
    (MOST, ["Bob Ray"], "It is high compared with Bob Ray."),
    # A finer date than the year, another part of it, another side of a round number
    (SONG, ["late 1968", "8 November 1968"], "in September 1968"),
    (SONG, ["8 November 1968"], "in early 1968"),
    (SONG, ["8 November 1968"], "in mid 1968"),
    (SONG, ["8 May 1968"], "late in 1968"),
    ("How many are there?", ["216"], "over 220"),
    ("How many are there?", ["12,345"], "over 12,350"),
    # Another place of the name
    (SHORES, ["Plymouth, Massachusetts"], "plymouth, england"),
    (SHORES, ["Plymouth, Massachusetts"], "plymouth, vermont"),
]


@pytest.mark.parametrize(
    ("question", "golds", "answer"), RIGHT, ids=[row[2] for row in RIGHT]
)
def test_the_same_said_otherwise_is_right(question, golds, answer):
    assert judge(answer, golds, question).label == "correct"


@pytest.mark.parametrize(
    ("question", "golds", "answer"), WRONG, ids=[row[2] for row in WRONG]
)
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


def test_a_minus_is_part_of_a_number_in_whichever_writing():
    assert is_variant("-40", ["minus 40"])
    assert not is_variant("40", ["minus 40"])
    assert not is_variant("-40", ["40"])
