"""What forbids to count an answer, each rule by itself: no other rule may hide it."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.matching.containment import (
    is_city_named_so,
    is_other_name,
    may_stand_at,
)
from pytest_kbrel.judges.matching.enumerations import is_one_of_several
from pytest_kbrel.judges.matching.negation import is_negated, points_elsewhere
from pytest_kbrel.judges.matching.parsing import (
    find_spans,
    read_answer,
    read_gold,
    read_question,
)
from pytest_kbrel.judges.text.tokens import read_words

ASKED = "Which is it?"


def result(rule, answer, sought, question=ASKED, accepted=()):
    """Apply a rule to the first place of ``sought`` in an answer."""
    query = read_question(question)
    reply = read_answer(answer, query)
    span = next(find_spans(reply.words, read_words(sought).words))
    if rule is is_other_name:
        return rule(reply, span, read_gold(sought), query)
    if rule is is_city_named_so:
        return rule(reply, span)
    if rule is is_one_of_several:
        spans = [
            span,
            *(
                one
                for text in accepted
                for one in find_spans(reply.words, read_words(text).words)
            ),
        ]
        return rule(reply, span, query, spans)
    return rule(reply, span, query)


@pytest.mark.parametrize(
    ("answer", "sought", "question", "other"),
    [
        ("it is west virginia today so", "virginia", ASKED, True),
        ("it is west, virginia today so", "virginia", ASKED, False),
        ("it is west virginia today so", "virginia", "What is west?", False),
        # a nation
        ("It is an American Ash Tree", "Ash Tree", ASKED, False),
        ("It is a West African Ash Tree", "Ash Tree", ASKED, True),
        ("It is the West, African Ash Tree", "Ash Tree", ASKED, False),
        ("African Ash Tree of the West", "Ash Tree", ASKED, False),
        ("It is an American Ash", "Ash", ASKED, True),
        ("It is an American Poet", "Poet", ASKED, False),
        ("It is an Old Ash Tree", "Ash Tree", ASKED, True),
        ("It is a Big Red Ash Tree", "Ash Tree", ASKED, True),
        # a title
        ("It is King Ash", "Ash", ASKED, False),
        ("It is Kung Ash", "Ash", ASKED, True),
        # "of", for names of one word
        ("It is the Church of Old Rye", "Church", ASKED, True),
        ("It is the Church Hall of Rye", "Church Hall", ASKED, False),
        ("It is the Hall of Rye", "Rye", ASKED, True),
        ("It is the Hall of Rye Town", "Rye Town", ASKED, False),
        # a common noun beside another word, in a short phrase
        ("peanut butter", "butter", ASKED, True),
        ("butter peanut", "butter", ASKED, True),
        ("one big peanut butter", "butter", ASKED, True),
        ("one big red peanut butter", "butter", ASKED, False),
        ("peanut, butter", "butter", ASKED, False),
        ("butter, peanut", "butter", ASKED, False),
        ("peanut Butter", "Butter", ASKED, False),
        ("peanut butter jam", "butter jam", ASKED, False),
        ("is peanut butter", "butter", ASKED, False),
        ("fresh butter peanut", "butter", ASKED, True),
        ("9 butter", "butter", ASKED, False),
        ("peanut butter", "butter", "Which peanut is it?", False),
        # a number behind a name
        ("It is Apollo 13", "Apollo", ASKED, True),
        ("It is Apollo 7", "Apollo", ASKED, True),
        ("It is Apollo 999", "Apollo", ASKED, True),
        ("It is Apollo 1000", "Apollo", ASKED, False),
        ("It is Apollo 13", "Apollo", "Which 13 is it?", False),
        ("It is Apollo, 13", "Apollo", ASKED, False),
        ("it is apollo 13 now so", "apollo", ASKED, False),
        # a name that goes on
        ("It is Paris Hilton", "Paris", ASKED, True),
        ("It is Paris, Hilton", "Paris", ASKED, False),
        ("It is Paris hilton", "Paris", ASKED, False),
        ("It is paris Hilton", "paris", ASKED, False),
        ("It is Paris Hilton", "Paris", "Where is the Hilton?", False),
        ("It is Paris This", "Paris", ASKED, False),
        ("Little Paris is it", "Paris", ASKED, True),
        ("Big Paris Town is it", "Paris Town", ASKED, True),
        ("Ben Paris is it", "Paris", ASKED, True),
        ("Ben Paris Town is it", "Paris Town", ASKED, False),
        ("Van Paris", "Paris", ASKED, True),
        ("it was paris hilton", "paris", ASKED, False),
        ("it was paris hilton", "Paris", ASKED, True),
        ("it was so paris hilton", "Paris", ASKED, False),
    ],
)
def test_another_name(answer, sought, question, other):
    assert result(is_other_name, answer, sought, question) is other


@pytest.mark.parametrize(
    ("answer", "sought", "question", "other"),
    [
        ("It is the Hall of Rye", "Rye", ASKED, True),
        ("Hall of Rye", "Rye", ASKED, True),
        ("Hall of Rye was it", "Rye", ASKED, False),
        ("It is the hall of Rye", "Rye", ASKED, False),
        ("It is the Hall, of Rye", "Rye", ASKED, False),
        ("It is the Hall of (Rye)", "Rye", ASKED, False),
        ("It is the Hall on Rye", "Rye", ASKED, False),
        ("of Rye Hall", "Rye", ASKED, True),
        ("It is the Hall of Rye", "Rye", "Which hall is it?", False),
        ("It is the Town of Rye", "Rye", ASKED, False),
        ("It is the King of Rye", "Rye", ASKED, False),
        ("It is the Democratic Town of Rye", "Rye", ASKED, True),
        ("it is the democratic hall of rye", "rye", ASKED, False),
        ("Town of Rye, the Democratic", "Rye", ASKED, False),
    ],
)
def test_what_stands_before_of(answer, sought, question, other):
    assert result(is_other_name, answer, sought, question) is other


@pytest.mark.parametrize(
    ("answer", "question", "other"),
    [
        ("It is the Church of Rye", ASKED, True),
        ("It is the Church of rye", ASKED, False),
        ("It is the church of Rye", ASKED, False),
        ("It is the Church, of Rye", ASKED, False),
        ("It is the Church on Rye", ASKED, False),
        ("It is the Church of Rye", "What is in Rye?", False),
        ("It is the Church of", ASKED, False),
    ],
)
def test_what_stands_behind_of(answer, question, other):
    assert result(is_other_name, answer, "Church", question) is other


@pytest.mark.parametrize(
    ("answer", "sought", "question", "city"),
    [
        ("It is Mexico City", "Mexico", ASKED, True),
        ("it is mexico city", "mexico", ASKED, True),
        ("It is Mexico city", "Mexico", ASKED, False),
        ("It is Mexico, City", "Mexico", ASKED, False),
        ("It is Mexico Town", "Mexico", ASKED, False),
        ("It is Mexico", "Mexico", ASKED, False),
        ("It is Kansas City", "Kansas", ASKED, True),
        ("It is New Zealand City", "New Zealand", ASKED, True),
        ("It is Carson City", "Carson", ASKED, False),
        ("It is Canadian City", "Canadian", ASKED, False),
        ("It is Mexico City", "Mexico", "Where in Mexico is it?", False),
    ],
)
def test_the_city_of_a_nation(answer, sought, question, city):
    assert result(is_city_named_so, answer, sought, question) is city


@pytest.mark.parametrize(
    ("answer", "gold", "can"),
    [
        ("it is in it", "IN", False),
        ("IN", "IN", False),
        ("it is GO here", "GO", True),
        ("it is Go here", "GO", False),
        ("it is go here", "GO", False),
        ("go", "GO", True),
        ("it is gob here", "GOB", True),
        ("it is x1 here", "X1", True),
        ("it is 7 here", "7", True),
        ("it is of the", "of the", False),
        ("it is go by", "go by", True),
    ],
)
def test_short_words_are_found_in_capitals_only(answer, gold, can):
    reply, sought = read_answer(answer, read_question(ASKED)), read_gold(gold)
    start = next((start for start, _ in find_spans(reply.words, sought.words)), 0)
    assert may_stand_at(reply, sought, start) is can


@pytest.mark.parametrize(
    ("answer", "denied"),
    [
        ("Paris gets wrong", False),
        ("Paris is right", False),
        ("Paris", False),
        ("Paris is", False),
        ("Paris is quite wrong", True),
        ("Paris is not wrong there", True),
        ("Paris is wrong and not there", True),
        ("Paris is so very wrong", False),
        ("It is false that Paris is it", True),
        ("It is false about Paris", False),
        ("It is not false that Paris is it", True),
        ("It is not really false that it so is Paris", True),
        ("They doubt Paris", False),
        ("I doubt Paris", True),
        ("I really doubt Paris", True),
        ("I really truly doubt Paris", False),
        ("we doubt Paris", True),
        ("I know; they doubt Paris", False),
        ("Paris, no, it is Lyon", True),
        ("Paris: no: Lyon", True),
        ("Paris, no doubt", False),
        ("Paris, no", False),
        ("Paris no, Lyon", False),
        ("Paris it is, or no, Lyon", False),
        ("Paris. No, Lyon", True),
        ("Paris. No Lyon", False),
        ("Paris. Actually, Lyon", True),
        ("It is Paris. Actually, so", False),
        ("It is Paris. Actually, This", False),
        ("it is paris. actually, it is lyon", True),
        ("It is Paris. Well, Lyon", False),
    ],
)
def test_a_denial(answer, denied):
    assert result(is_negated, answer, "Paris") is denied


def test_a_correction_says_something_new():
    assert not result(
        is_negated, "It is Paris. Actually, France", "Paris", "What is it in France?"
    )
    assert result(
        is_negated, "It is Paris. Actually, Lyon", "Paris", "What is it in France?"
    )
    assert not result(is_negated, "It is not Paris", "Paris", "What is it not?")
    assert result(is_negated, "It is not false that it is Paris", "Paris")
    assert not result(
        is_negated, "It is not false that it is Paris", "Paris", "Which is not it?"
    )
    assert not result(
        is_negated, "It is not so false that it is Paris", "Paris", "Which is not it?"
    )
    assert result(
        is_negated,
        "It is not so very false that it is Paris",
        "Paris",
        "Which is not it?",
    )
    assert not result(is_negated, "I do not doubt Paris", "Paris", "Which is not it?")
    assert result(
        is_negated, "I not do so doubt we doubt Paris", "Paris", "Which is not it?"
    )


@pytest.mark.parametrize(
    ("answer", "question", "beside"),
    [
        ("starring Saab", ASKED, True),
        ("starring young Saab", ASKED, True),
        ("starring a very young Saab", ASKED, False),
        ("the successor of Saab", ASKED, True),
        ("successor to Saab", ASKED, False),
        ("Saab's successor", ASKED, True),
        ("Saab, a successor", ASKED, False),
        ("Saab's successor", "Which is related to it?", False),
        ("the successor of Saab", "Which rival is it?", False),
        # away from it
        ("near Saab", ASKED, True),
        ('near "Saab"', ASKED, True),
        ("near, Saab", ASKED, False),
        ("Saab is near", ASKED, False),
        ("From Saab, it is far", ASKED, False),
        ("north of Saab", ASKED, True),
        ("north by Saab", ASKED, False),
        ("of Saab, north it is", ASKED, False),
        ("North of Saab they got in", ASKED, True),
        ("in the north of Saab", ASKED, False),
        ("by the north of Saab", ASKED, True),
        ("a suburb of Saab", ASKED, True),
        ("a suburb from Saab", ASKED, False),
        ("north from Saab", ASKED, True),
        ("miles from Saab", ASKED, True),
        ("20 miles from Saab", ASKED, True),
        ("20 km from Saab", ASKED, True),
        ("20 km of Saab", ASKED, False),
        ("away from Saab", ASKED, True),
        ("far from Saab", ASKED, True),
        ("came from Saab", ASKED, False),
        ("close to Saab", ASKED, True),
        ("came to Saab", ASKED, False),
        ("close to Saab", "Which is close?", False),
        # what a person owns
        ("Saab's lawyer came", ASKED, False),
        ("Saab's lawyer came", "Who is it?", True),
        ("Saab's Lawyer came", "Who is it?", False),
        ("Saab's lawyer came", "Who of the lawyers is it?", False),
        ("Saab's only lawyer came", "Who is it?", False),
        ("Saab's best film came", "Who is it?", False),
        ("Saab's lawyer in film", "Who is it?", False),
        ("Saab's lawyer in his film", "Who is it?", True),
        ("Saab house and Bob's house", "Who is it?", False),
        ("Saab lives in Saab's house", "Who is it?", False),
        ("Saab house and Bob's car and Saab's house", "Who is it?", True),
    ],
)
def test_what_an_answer_only_points_from(answer, question, beside):
    assert result(points_elsewhere, answer, "Saab", question) is beside


@pytest.mark.parametrize(
    ("answer", "accepted", "several"),
    [
        ("it was Riga or Oslo", (), True),
        ("it was Oslo or Riga", (), True),
        ("it was Riga b c d e f or Oslo", (), True),
        ("it was Riga b c d e f g or Oslo", (), False),
        ("Oslo or b c d e f Riga was it", (), True),
        ("Oslo or b c d e f g Riga was it", (), False),
        ("Oslo or so. It was Riga", (), False),
        ("It was Riga. Oslo or so", (), False),
        ("it was Riga or Oslo", ("Oslo",), False),
        ("it was Riga or old Oslo", ("Oslo",), True),
        ("it was old Oslo or Riga", ("Oslo",), False),
        ("it was Oslo old or Riga", ("Oslo",), True),
    ],
)
def test_a_choice(answer, accepted, several):
    assert result(is_one_of_several, answer, "Riga", accepted=accepted) is several


def test_a_choice_of_the_question_or_inside_the_answer_is_none():
    assert not result(
        is_one_of_several, "it was Riga or Oslo", "Riga", "Was it this or that?"
    )
    assert not result(is_one_of_several, "it was Dead or Alive", "Dead or Alive")
