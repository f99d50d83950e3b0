"""More kinds of right answers that differ from an accepted one, and wrong answers that look like them."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import is_variant, judge

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
    ("In which country is it?", ["United States"], "It is in the Midwestern United States."),
    # A choice
    (FIRST, ["Ann Lee"], "Ann Lee was born first, in 1966. Bo Ray was born in 1969."),
    (FIRST, ["Bo Ray"], "Bo Ray was born first, while Ann Lee was born in 1969."),
    # What stands in the same words as a comparison, where that is asked for
    ("Who is ahead of Ann Lee?", ["Bob Ray"], "She is behind, ahead of her is Bob Ray."),
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


@pytest.mark.parametrize(("question", "golds", "answer"), RIGHT, ids=[row[2] for row in RIGHT])
def test_the_same_said_otherwise_is_right(question, golds, answer):
    assert judge(answer, golds, question).label == "correct"


@pytest.mark.parametrize(("question", "golds", "answer"), WRONG, ids=[row[2] for row in WRONG])
def test_what_looks_like_it_is_wrong(question, golds, answer):
    assert judge(answer, golds, question).label == "wrong"


def test_a_minus_is_part_of_a_number_in_whichever_writing():
    assert is_variant("-40", ["minus 40"])
    assert not is_variant("40", ["minus 40"])
    assert not is_variant("-40", ["40"])
