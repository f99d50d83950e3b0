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
