from __future__ import annotations

import pytest

from pytest_kbrel.judges.replies import read_verdict


@pytest.mark.parametrize(
    "reply",
    [
        "correct",
        "Correct.",
        " CORRECT\n",
        "**Correct**",
        '"correct"',
        "`correct`",
        "(correct)",
        "The answer is correct.",
        "Verdict: correct",
        '{"verdict": "correct"}',
        "It's correct.",
        "Correct. The capital is Paris, so the answer is correct.",
        "Correct, since Big Apple is not a town of its own.",
        "Correct, since Lima is the capital and Quito is not",
        "Correct. The answer is correct, as Lima is in Peru and Quito is not",
        "Correct. The correct answer is Lima.",
    ],
)
def test_a_reply_that_says_correct(reply):
    assert read_verdict(reply) == "correct"


@pytest.mark.parametrize(
    "reply",
    [
        "incorrect",
        "**incorrect**",
        "Incorrect - Lyon is not the capital.",
        "not correct",
        "The answer is not correct.",
        "That isn't correct",
        "This isn’t correct.",
        "The model's answer is incorrect.",
        "It is not correct. Not correct.",
        "Incorrect, it is not correct.",
        "Incorrect, because the correct answer is Lima.",
        "The answer is not correct: the correct one is Lima.",
    ],
)
def test_a_reply_that_says_incorrect(reply):
    assert read_verdict(reply) == "incorrect"


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Paris",
        "yes",
        "correct or incorrect",
        "neither correct nor incorrect",
        "Correct? I think it is incorrect.",
        "correct?",
        "partly correct",
        "I cannot say whether it is correct",
        "not incorrect",
        "not not correct",
        "not a correct answer",
        "Correct. No, not correct.",
        "Correct, it is not incorrect.",
        "Incorrect?",
        "not correct?",
        "The answer correctly names the town",
        "corrects",
        "uncorrect",
        "incorrect or correct",
        "The correct answer is Lima, not Quito.",
        "Correct answer: Paris",
        '{"correct": false}',
        "Correct: false",
        "correct (no)",
        "It would be correct if it said Lima.",
        "Correct, but only partly.",
        "The answer is correct in part; the date is wrong",
    ],
)
def test_a_reply_that_cannot_be_read(reply):
    assert read_verdict(reply) == "unparsable"


LEAD = """
    a it its s is was this that the so therefore final my given proposed predicted model answer
    prediction response reply verdict judgement judgment result label considered :
    """


@pytest.mark.parametrize("word", LEAD.split())
def test_a_word_that_may_stand_before_the_verdict(word):
    assert read_verdict(f"{word} correct") == read_verdict(f"{word.upper()} {word} Correct.") == "correct"
    assert read_verdict(f"{word} incorrect") == "incorrect"
    assert (
        read_verdict(f"{word} perhaps correct") == read_verdict(f"perhaps {word} incorrect") == "unparsable"
    )


@pytest.mark.parametrize("word", ["not", "isn't", "isn’t", "wasn't", "wasn’t", "isnt", "NOT", "ISN'T"])
def test_a_word_that_denies_the_verdict(word):
    assert read_verdict(f"{word} correct") == read_verdict(f"It {word} correct.") == "incorrect"
    assert read_verdict(f"{word} incorrect") == "unparsable"
    assert read_verdict(f"Correct. {word} correct") == read_verdict(f"{word} {word} correct") == "unparsable"
    assert read_verdict(f"Correct. Ann {word} there") == "correct"


BACK = "but however although though except if unless only partly partially mostly no false wrong"


@pytest.mark.parametrize("word", BACK.split())
def test_a_word_that_takes_the_verdict_back(word):
    assert (
        read_verdict(f"Correct, {word} Lima")
        == read_verdict(f"Correct. It is {word.upper()}")
        == "unparsable"
    )
    # What is incorrect stays so.
    assert read_verdict(f"Incorrect, {word} Lima") == "incorrect"


@pytest.mark.parametrize(
    "mark", [*".,;!—–-", " because", " since", " as", '"', "'", "`", "*", "_)", "]", "}", "**."]
)
def test_what_may_follow_the_verdict(mark):
    tail = "" if mark in "\"'`*_)]}" else " Lima"
    assert read_verdict(f"correct{mark}{tail}") == "correct"


@pytest.mark.parametrize(
    "tail", [" Lima", " assuming so", "ly", "?", " or incorrect", " and incorrect", ": Lima", "/"]
)
def test_what_may_not_follow_the_verdict(tail):
    assert read_verdict(f"correct{tail}") == "unparsable"


def test_both_verdicts_make_none_unless_the_first_is_incorrect():
    assert read_verdict("Correct. Correct.") == "correct"
    assert read_verdict("Correct. Incorrect.") == read_verdict("Incorrect or correct") == "unparsable"
    assert read_verdict("Incorrect. Correct.") == "incorrect"
