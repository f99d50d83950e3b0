"""What must hold for every text, also a hostile one."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_kbrel.judges.replies import chosen_option
from pytest_kbrel.judges.rules import judge
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import UNINFORMATIVE

# Words the rules treat in a special way, so that random texts reach them.
_WORDS = st.sampled_from(
    [
        "Paris",
        "Lyon",
        "the",
        "of",
        "not",
        "or",
        "and",
        "is",
        "Dr.",
        "1997–98",
        "8",
        "September",
        "2010",
        "B.C.",
        "$2.5",
        "million",
        "II",
        "seven,",
        "hundred",
        "US",
        "U.S.A.",
        "(film)",
        "\n",
        "Inc.",
        "O'Brien",
        "isn't",
        "&",
        "/",
        "6ft",
        "1in",
        "5:15",
        "-1",
        "1,000",
        "½",
        "²",
        "İ",
        "ß",
        "é",
        "が",
        "👍",
        "\x00",
        "�",
        "who",
        "when",
        "I",
        "don't",
        "know",
        "France.",
        "J.",
        "R.",
        "R.",
        "Tolkien",
        "Hess,",
        "Rudolf",
        "between",
        "to",
        "until",
        "00",
        "99999999999999999999",
        "1e9",
        "x",
        "by",
    ]
)
_TEXTS = st.one_of(st.text(max_size=60), st.lists(_WORDS, max_size=12).map(" ".join))
_GOLDS = st.lists(_TEXTS, max_size=4)


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(answer=_TEXTS, golds=_GOLDS, question=_TEXTS)
@example(answer="8" * 1900, golds=["8" * 1899], question="How many?")
@example(answer="١٩٩٨", golds=["1998"], question="When?")
@example(answer="0000-00-00", golds=["00/00/0000"], question="When?")
@example(answer="'s ' n't", golds=["'s"], question="")
def test_every_text_gets_one_verdict_and_the_same_again(answer, golds, question):
    result = judge(answer, golds, question)
    assert result == judge(answer, golds, question)
    assert (result.label == "uninformative") == (result.rule in UNINFORMATIVE)
    assert result.rule


@settings(max_examples=200, deadline=None)
@given(answer=_TEXTS, golds=_GOLDS, question=_TEXTS)
def test_equality_is_always_right_and_nothing_accepted_never(answer, golds, question):
    if len(normalise(answer)) > 1:
        assert judge(answer, [*golds, answer], question).rule == "equal"
    assert judge(answer, [], question).label != "correct"


@settings(max_examples=200, deadline=None)
@given(answer=_TEXTS, golds=_GOLDS, question=_TEXTS)
def test_the_order_of_golds_does_not_change_the_verdict(answer, golds, question):
    assert (
        judge(answer, golds, question).label
        == judge(answer, golds[::-1], question).label
    )


@settings(max_examples=200, deadline=None)
@given(reply=_TEXTS, options=st.lists(_TEXTS, min_size=1, max_size=6))
def test_an_option_is_one_of_those_there_are(reply, options):
    assert chosen_option(reply, options) in (None, *range(len(options)))


def test_a_very_long_answer_costs_little_time():
    hostile = [
        "a" * 200_000,
        "Paris " * 50_000,
        "1," * 100_000,
        "((((" * 50_000,
        "I am sorry " * 20_000,
        "né" * 99_999,
        "\n" * 100_000,
        "x" + "\n" * 100_000 + "y",
        "\nQ " * 60_000,
        "<think>" * 50_000,
        " ".join(f"(but I am {number}, " for number in range(20_000)),
        " ".join(f'"{number} not' for number in range(20_000)),
    ]
    start = time.process_time()
    for answer in hostile:
        judge(
            answer,
            ["Paris", "1997–98", "5 km", "X" * 5000],
            "What is the capital of France?",
        )
        chosen_option(answer, ["Paris", "Rome"])
    assert time.process_time() - start < 6


def test_the_time_for_an_answer_grows_no_faster_than_its_length():
    def seconds(size):
        taken = []
        for _ in range(3):
            start = time.process_time()
            judge("\n" * size, ["x"], "q")
            judge("x" + "\n" * size + "y", ["x"], "q")
            judge("\n 7" * size, ["x"], "q")
            taken.append(time.process_time() - start)
        return min(taken)

    # Ten times the length: linear work takes ten times as long, quadratic a hundred times.
    assert seconds(400_000) < 40 * max(seconds(40_000), 0.001)
