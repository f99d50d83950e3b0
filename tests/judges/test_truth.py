"""Replies to "Is the statement true or false?"."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.replies import read_truth


@pytest.mark.parametrize("word", ["not", "isn't", "isnt", "never"])
def test_a_denial_turns_the_verdict(word):
    assert read_truth(f"It {word} true") is False
    assert read_truth(f"It {word} false") is True
    assert read_truth(f"It {word} really true") is False
    assert read_truth(f"It {word} so very true") is True
    assert read_truth(f"It {word} TRUE, it {word} false") is None


@pytest.mark.parametrize(
    "echo", ["true or false", "true nor false", "false or true", "false nor true", "neither true nor false"]
)
def test_the_questions_own_words_are_no_verdict(echo):
    assert read_truth(echo) is None
    assert read_truth(f"{echo}? true") is True
    assert read_truth(f"{echo}? false") is False


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ("true", True),
        ("untrue", False),
        ("It is untrue.", False),
        ("It is true. True.", True),
        # The first word counts where it is the verdict.
        ("True, since it is false that it is not", True),
        ("False, since the true one is Lima", False),
        ("True or false? True, since the false one is Lima", True),
        ("Untrue, the true one is Lima", False),
        ("I say true, since the false one is Lima", None),
        ("nontrue", None),
        ("falsehood", None),
        ("truefalse", None),
    ],
)
def test_a_reply_is_true_false_or_neither(reply, verdict):
    assert read_truth(reply) is verdict
