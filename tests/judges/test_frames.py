"""What is taken off an answer before it is judged: thoughts, tags, labels and the next question."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.rules import judge, strip_wrapping

TAGS = (
    "final_answer final answer response output result a b i u s p q em strong br hr div span sub sup code "
    "pre ul ol li h1 h2 h3 h4 h5 h6 bos eos pad"
)


def proper(answer):
    return " ".join(strip_wrapping(answer).split())


@pytest.mark.parametrize("tag", TAGS.split())
def test_a_tag_that_models_write_is_taken_off(tag):
    for answer in (
        f"<{tag}>Lima</{tag}>",
        f"<{tag.upper()}>Lima",
        f"Lima<{tag}/>",
        f"Lima <{tag} />",
    ):
        assert proper(answer) == "Lima"


@pytest.mark.parametrize(
    "answer",
    ["<Lima>", "<h7>", "<h>", "<x>Lima</x>", "< b>Lima", "<b c>", "<ab>", "<bb>"],
)
def test_another_word_in_brackets_is_no_tag(answer):
    assert proper(answer) == answer


@pytest.mark.parametrize(
    "tag", ["think", "thinking", "thought", "reasoning", "THINK", "Thinking"]
)
def test_thoughts_are_taken_off(tag):
    assert proper(f"<{tag}>Quito\n\nor Lima?</{tag}>\nLima") == "Lima"
    assert proper(f"<{tag}>Quito</{tag}><{tag}>Rome</{tag}>Lima") == "Lima"
    assert proper(f"It may be\nQuito.</{tag}>Lima") == "Lima"
    assert proper(f"Lima<{tag}>or Quito?\nNo") == "Lima"


def test_thoughts_end_with_the_tag_that_they_begin_with():
    assert proper("<think>Quito</thought>Lima</think>Rome") == "Rome"
    assert proper("<thoughts>Lima") == "<thoughts>Lima"


LABELS = [
    *(
        "Answer: ",
        "ANSWER: ",
        "answer:",
        "Response: ",
        "The answer: ",
        "My answer: ",
        "Final answer: ",
    ),
    *(
        "My final answer: ",
        "The short answer: ",
        "Short answer = ",
        "The correct answer: ",
        "**Answer:** ",
    ),
    *("* Answer *: * ", "** Final Answer **\n:\n"),
]


@pytest.mark.parametrize("label_", LABELS)
def test_a_label_is_taken_off(label_):
    assert proper(f"{label_}Lima") == "Lima"
    assert proper(f"\n {label_}Lima") == "Lima"


@pytest.mark.parametrize(
    "answer",
    [
        "Answer Lima",
        "Answers: Lima",
        "The true answer: Lima",
        "Lima: answer: Quito",
        "An answer: Lima",
    ],
)
def test_what_is_no_label(answer):
    assert proper(answer) == answer


def test_one_label_is_taken_off_and_not_a_second():
    assert proper("Answer: Response: Lima") == "Response: Lima"


@pytest.mark.parametrize(
    "question",
    [
        "Q:",
        "q:",
        "Q.",
        "Q1:",
        "Q 12:",
        "Q1234 :",
        "Question:",
        "question 2.",
        "QUESTION :",
        "  Q:",
        "\tQ     1     :",
    ],
)
def test_the_next_question_ends_an_answer(question):
    assert proper(f"Lima\n{question} What of Chile?\nA: Santiago") == "Lima"
    assert proper(f"Lima\n\n{question} What of Chile?") == "Lima"


@pytest.mark.parametrize(
    "next_line",
    [
        "Quito:",
        "Q12345:",
        "Q",
        "QA:",
        "Questions:",
        "A Q:",
        "Q      1:",
        " " * 21 + "Q:",
    ],
)
def test_what_is_no_next_question(next_line):
    answer = f"Lima\n{next_line} Chile"
    assert proper(answer) == " ".join(answer.split())


def test_a_question_before_the_answer_is_kept():
    assert proper("Q: What of Peru?\nA: Lima") == "Q: What of Peru? A: Lima"
    assert proper("\nQ: What of Peru?") == "Q: What of Peru?"


def test_of_an_answer_the_first_2000_characters_are_read():
    assert strip_wrapping("x" * 3000) == "x" * 2000
    assert judge("It is so" + "," * 1989 + "Lima", ("Lima",)).label == "wrong"
    assert judge("It is so" + "," * 1988 + "Lima", ("Lima",)).label == "correct"
    # Space in front does not count.
    assert judge(" " * 5000 + "Lima", ("Lima",)).label == "correct"
