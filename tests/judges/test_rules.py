from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import chosen_option, label


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Paris", "correct"),
        (" paris. ", "correct"),
        ("The Paris", "correct"),
        ("PARIS", "correct"),
        ("City of Light", "correct"),
        ("Paris, France", "wrong"),
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
    ],
)
def test_an_answer_is_labelled(answer, expected):
    assert label(answer, ("Paris", "City of Light"), "What is the capital of France?") == expected


def test_nothing_informative_is_right_where_no_answer_exists():
    assert label("Paris", ()) == "wrong"
    assert label("unsure", ()) == "uninformative"


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
        ("", None),
        ("Berlin", None),
    ],
)
def test_a_reply_picks_an_option_by_text_or_letter(reply, picked):
    assert chosen_option(reply, ["Paris", "Rome", "Oslo", "Bern", "unsure"]) == picked


def test_text_goes_before_letter_where_options_are_letters_themselves():
    assert chosen_option("C", ["H", "C", "O", "N", "unsure"]) == 1
