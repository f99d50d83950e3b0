from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_kbrel.judges.rules import is_uninformative, judge, uninformative_kind
from pytest_kbrel.judges.uninformative import is_repetition


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        ("no no no", False),
        ("no no no no", True),
        ("Duran Duran Duran Duran", True),
        # Four times, but less than half of the words.
        ("la one la two la three la four five", False),
        ("la one la two la three la four", True),
        # Three times in a row, and 6 of 10 words.
        ("one two one two one two three four five six", True),
        ("one two one two one two three four five six seven", False),
        ("one two one two three four five six", False),
        ("to be or not to be that is the question", False),
    ],
)
def test_a_repetition_is_often_enough_and_most_of_the_text(text, repeats):
    assert is_repetition(text.split()) == repeats


def test_users_patterns_come_after_the_shipped_and_in_their_kind():
    extra = (("none", "pass"), ("unsure", "beyond my training"))
    assert uninformative_kind("It is beyond my training.") == ""
    assert uninformative_kind("It is BEYOND my training.", extra=extra) == "unsure"
    assert uninformative_kind("I pass.", extra=extra) == "none"
    assert uninformative_kind("I don't know, I pass.", extra=extra) == "unsure"
    assert judge("I pass.", ["Paris"], extra=extra).rule == "none"
    # Equality goes before them as well.
    assert judge("pass", ["Pass"], extra=extra).rule == "equal"


def test_a_users_pattern_sees_the_answer_as_it_is_and_normalised():
    assert is_uninformative("I'm <eos> gone", extra=(("none", "<eos>"),))
    assert is_uninformative("I'm   the   one", extra=(("none", "i m one"),))


def test_the_question_again_is_none():
    question = "Who built the old bridge over the river?"
    assert uninformative_kind(question, question) == "none"
    assert uninformative_kind(f"Question: {question} Answer:", question) == "none"
    assert uninformative_kind("The old bridge over the river was built by Ann.", question) == ""
    assert uninformative_kind("Who?", "Who?") == "none"


def test_the_rules_are_read_when_an_answer_is_judged_and_not_before():
    code = (
        "import sys, pytest_kbrel.judges.rules as rules\n"
        "assert 'yaml' not in sys.modules\n"
        "rules.label('x', ['y'])\n"
        "assert 'yaml' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
