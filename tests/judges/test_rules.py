from __future__ import annotations

import pytest

from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.judges.rules import judge


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", "correct"),
        (" paris. ", "correct"),
        ("The Paris", "correct"),
        ("PARIS", "correct"),
        ("City of Light", "correct"),
        # Right since other ways of writing the gold count (before, only equality did).
        ("Paris, France", "correct"),
        ("The capital of France is Paris.", "correct"),
        ("Paris or Lyon", "wrong"),
        ("Lyon", "wrong"),
        ("", "uninformative"),
        ("...", "uninformative"),
        ("unsure", "uninformative"),
        ("Unsure.", "uninformative"),
        ("I'm not sure.", "uninformative"),
        ("I am just an AI", "uninformative"),
        ("I do not know", "uninformative"),
        ("I cannot provide that.", "uninformative"),
        ("There is no information available.", "uninformative"),
        ("What is the capital of France?", "uninformative"),
        ("la la la la la la", "uninformative"),
        # A band's name repeats a word and is an answer all the same.
        ("Duran Duran", "wrong"),
        ("Unsworth", "wrong"),
        ("N/A", "uninformative"),
        ("n/a.", "uninformative"),
        ("No information", "uninformative"),
        ("There is no data", "uninformative"),
        ("There is no record of it.", "uninformative"),
        ("Not applicable", "uninformative"),
        ("No answer", "uninformative"),
        ("I have no idea", "uninformative"),
        ("None.", "uninformative"),
        ("None of the above", "uninformative"),
        ("It is unknown.", "uninformative"),
        ("No Country for Old Men", "wrong"),
        ("No Data Plan", "wrong"),
        ("Nonesuch", "wrong"),
        ("None Like Us", "wrong"),
        ("Unknown Soldier", "wrong"),
        ("N", "wrong"),
        ("NA", "wrong"),
    ],
)
def test_an_answer_is_labelled(answer, expected):
    assert (
        judge(
            answer, ("Paris", "City of Light"), "What is the capital of France?"
        ).label
        == expected
    )


def test_nothing_informative_is_right_where_no_answer_exists():
    assert judge("Paris", ()).label == "wrong"
    assert judge("unsure", ()).label == "uninformative"


@pytest.mark.parametrize(
    ("reply", "picked"),
    [
        ("Rome", 1),
        ("rome.", 1),
        ("B", 1),
        ("B)", 1),
        ("(B)", 1),
        ("B.", 1),
        ("B) Rome", 1),
        ("B: Rome", 1),
        ("B) Paris", None),
        ("E", 4),
        ("unsure", 4),
        ("F", None),
        ("A or B", None),
        ("Both", None),
        ("b)", 1),
        ("(b)", 1),
        ("b", None),
        ("Option B", 1),
        ("The answer is B", 1),
        ("The correct answer is B.", 1),
        ("Answer: B) Rome", 1),
        ("**B**", 1),
        ("The answer is Rome.", 1),
        ("I choose B", 1),
        ("The answer is B) Paris", None),
        ("The answer is F", None),
        ("I think B or C", None),
        ("A capital city", None),
        ("It is a city", None),
        ("I", None),
        ("unsure.", 4),
        ("", None),
        ("Berlin", None),
    ],
)
def test_a_reply_picks_an_option_by_text_or_letter(reply, picked):
    assert chosen_option(reply, ["Paris", "Rome", "Oslo", "Bern", "unsure"]) == picked


def test_a_letter_beyond_the_options_picks_nothing():
    assert chosen_option("D", ["Paris", "Rome"]) is None
    assert chosen_option("The answer is D", ["Paris", "Rome"]) is None


def test_text_goes_before_letter_where_options_are_letters_themselves():
    assert chosen_option("C", ["H", "C", "O", "N", "unsure"]) == 1


@pytest.mark.parametrize(
    "gold",
    [
        "Unknown Pleasures",
        "None",
        "Unknown",
        "No Information",
        "Duran Duran Duran Duran",
    ],
)
def test_an_answer_that_equals_the_gold_is_right_whatever_it_sounds_like(gold):
    assert judge(gold, (gold,)).label == "correct"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("<think>Lyon? No, Paris.</think>Lyon", "wrong"),
        ("<think>Lyon? No.</think>\n\nParis", "correct"),
        ("<THINKING>Lyon</THINKING> <answer>Paris</answer>", "correct"),
        ("<reasoning>Lyon <b>or</b> Rome</reasoning>It is Paris.", "correct"),
        ("It could be Lyon.</think>Paris", "correct"),
        ("It is Paris.</think>It is Lyon.", "wrong"),
        ("<think>It is Paris", "uninformative"),
        ("<think>I don't know.</think>Lyon", "wrong"),
    ],
)
def test_what_a_model_thinks_is_no_answer(answer, expected):
    assert judge(answer, ("Paris",), "What is the capital of France?").label == expected


def test_only_known_tags_are_taken_off():
    assert judge("<Paris>", ("Paris",)).label == "correct"
    assert judge("The answer is <Paris>", ("Paris",)).label == "correct"
    assert judge("<Lyon>", ("Paris",)).label == "wrong"
    assert judge("<b>Pa</b><br/>", ("Pa",)).label == "correct"


def test_signs_count_where_they_tell_things_apart():
    pairs = [
        "C",
        "C++",
        "C#",
        "O-",
        "O+",
        "-5",
        "5",
        "126",
        "126%",
        "1,234",
        "1.234",
        "1.5",
        "1/5",
        "3",
        "3/4",
    ]
    for gold in pairs:
        for answer in pairs:
            assert (judge(answer, (gold,), "Which is it?").label == "correct") == (
                answer == gold
            ), (
                answer,
                gold,
            )
    assert judge("\u22125", ("-5",)).label == "correct"
    assert judge("minus 5", ("-5",)).label == "correct"
    assert judge("minus 5", ("5",)).label == "wrong"
    assert judge("It is C++.", ("C",)).label == "wrong"
    assert judge("O positive", ("O-",)).label == "wrong"
    assert judge("2\u20131", ("2-1",)).label == "correct"


def test_nothing_and_not_applicable_equal_no_gold():
    assert judge("", ("!!!",)).label == "uninformative"
    assert judge("N/A", ("N",)).label == "uninformative"
    assert judge("N", ("N",)).label == "correct"
