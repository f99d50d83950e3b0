from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_kbrel.judges.abstention import is_repetition, uninformative_kind
from pytest_kbrel.judges.rules import judge


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
        # Three times, but not in a row; not quite three times; twice.
        ("one two one two three one two", False),
        ("three one two one two one four", False),
        (
            "one two three four five one two three four five six seven eight nine ten",
            False,
        ),
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
    assert uninformative_kind("I pass.", extra=(("none", "I PASS"),)) == "none"
    assert uninformative_kind("I don't know, I pass.", extra=extra) == "unsure"
    assert judge("I pass.", ["Paris"], extra=extra).rule == "none"
    # Equality goes before them as well.
    assert judge("pass", ["Pass"], extra=extra).rule == "equal"


def test_a_users_pattern_sees_the_answer_as_it_is_and_normalised():
    assert uninformative_kind("I'm <eos> gone", extra=(("none", "<eos>"),))
    assert uninformative_kind("I'm   the   one", extra=(("none", "i m one"),))


ABSTENTIONS = [
    "The answer is unsure.",
    "I would say unsure",
    "I can't help with that.",
    "I cannot assist with that request.",
    "I need more context.",
    "Could you please provide more context?",
    "That information is not available.",
    "I have no record of that.",
    "I lack the information",
    "I don't possess that information",
    "Unfortunately, I don't have this information",
    "I've never heard of that",
    "No one knows",
    "It's hard to say.",
    "The context does not provide this information.",
    "I don't have real-time data",
    "I don't have up-to-date information",
    "I don't have info on that",
    "Honestly, no idea.",
    "I don\u00b4t know",
    "I do n't know",
    "I'm sorry",
    "As an AI language model",
    "Based on the context, it is not possible to tell.",
    "I don't know, but I can help you find out.",
    "Good question! I have no idea.",
    "What is it? I don't know.",
    '"I don\'t know."',
    "That is after my knowledge cutoff.",
    "As an AI, I do not have personal beliefs.",
    "I have not heard of it.",
    "There's no way to know.",
    "It isn't possible to determine.",
    "no idea lol",
    "unsure",
    "Unsure.",
]


@pytest.mark.parametrize("answer", ABSTENTIONS)
@pytest.mark.parametrize("accepted", [("Lima",), ()])
def test_an_abstention_is_unsure(answer, accepted):
    assert judge(answer, accepted, "What is the capital of Peru?").rule == "unsure"


@pytest.mark.parametrize(
    "answer",
    [
        "Lima. I am not aware of any other capital.",
        "The capital is Lima. I don't have information about its population.",
        "As an AI language model, I can tell you that the capital of Peru is Lima.",
        "Lima, as of my knowledge cutoff.",
        "I don't have real-time data, but as of my knowledge cutoff the capital is Lima.",
        "I'm sorry, but it is Lima.",
    ],
)
def test_a_statement_beside_an_abstention_is_an_answer(answer):
    question = "What is the capital of Peru?"
    assert judge(answer, ("Lima",), question).label == "correct"
    assert judge(answer.replace("Lima", "Quito"), ("Lima",), question).label == "wrong"
    # Of what nobody can know, it is informative and so wrong.
    assert judge(answer, (), question).label == "wrong"


def test_what_follows_an_excuse_counts_only_where_it_is_right():
    question = "What is the capital of Peru?"
    answer = "I don't have access to the internet. The capital of Peru is Lima."
    assert judge(answer, ("Lima",), question).label == "correct"
    assert judge(answer, ("Quito",), question).rule == "unsure"
    assert judge(answer, (), question).rule == "unsure"
    assert (
        judge("I'm not sure, but it may be Lima.", ("Lima",), question).rule == "unsure"
    )
    assert judge("I am not sure, Lima", ("Lima",), question).rule == "unsure"
    assert judge("Lima, I am not sure", ("Lima",), question).rule == "unsure"
    assert judge("I don't know. Is it Lima?", ("Lima",), question).rule == "unsure"
    assert judge("I don't know, not Lima.", ("Lima",), question).rule == "unsure"
    assert (
        judge('I know little. It is called "Lima".', ("Lima",), question).label
        == "correct"
    )
    # One who asks for a person may be given a last name.
    lee, other = "I don't know the rest. It is Lee.", "Whose is it?"
    assert (
        judge(lee, ("Ann Lee",), "Which is it?", answer_type="person").label
        == "correct"
    )
    assert judge(lee, ("Ann Lee",), other, answer_type="work").rule == "unsure"
    assert (
        judge("Lima. " + "I don't know. " * 4, ("Lima",), question).rule == "repetition"
    )


@pytest.mark.parametrize(
    "answer",
    [
        'The song is "I Don\'t Know How to Love Him".',
        "I Can't Tell You Why by Eagles",
        "No Idea Records, Gainesville",
        "Unsure by Bob",
        "Uncertain, Texas",
        "Sorry, Wrong Number",
        "So",
        "However",
        "Nobody Knows",
    ],
)
def test_a_title_or_quoted_text_is_no_abstention(answer):
    assert judge(answer, ("Lima",), "Which is it?").label == "wrong"
    assert judge(answer, (), "Which is it?").label == "wrong"


def test_the_question_again_is_none():
    question = "Who built the old bridge over the river?"
    assert uninformative_kind(question, question) == "none"
    assert uninformative_kind(f"Question: {question} Answer:", question) == "none"
    assert uninformative_kind(f"Q: {question} A:", question) == "none"
    assert uninformative_kind(f"{question} {question}", question) == "none"
    assert (
        uninformative_kind("The old bridge over the river was built by Ann.", question)
        == ""
    )
    assert uninformative_kind("Who?", "Who?") == "none"
    assert (
        uninformative_kind("Q: Who built this bridge?", "Who built this bridge?")
        == "none"
    )
    assert uninformative_kind("Who?", "Who?")
    assert not uninformative_kind("Who?")


def test_the_rules_are_read_when_an_answer_is_judged_and_not_before():
    code = (
        "import sys, pytest_kbrel.judges.rules as rules\n"
        "assert 'yaml' not in sys.modules\n"
        "rules.judge('x', ['y'])\n"
        "assert 'yaml' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ("Question: Which river flows through Cairo?", "none"),
        ("Q: In which country is Cairo?", "none"),
        ("Question: Who wrote it? Answer: Goethe", ""),
        ("Question Time", ""),
        ("Q", ""),
        ("Question", ""),
    ],
)
def test_another_question_in_place_of_an_answer_says_nothing(answer, kind):
    assert uninformative_kind(answer, "What is the capital of Ecuador?") == kind
