"""Replies of models: the option that they pick, true or false, and the verdict of a judge."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.replies import chosen_option, read_truth, read_verdict

OPTIONS = ["Paris", "Rome", "New York", "Bern", "unsure"]
# In front of the letter or the text of an option.
FRAMES = ["Answer = ", "Option ", "Letter ", "My final answer is ", "The best choice is ",
          "The answer must be ", "The answer is letter ", "Hence , the answer is ", "answer is: "]  # fmt: skip
# In front of a letter only.
SAYINGS = ["I choose ", "I would say ", "I think it's ", "I choose option ", "It is ", "I CHOOSE "]  # fmt: skip


@pytest.mark.parametrize("place", range(5))
def test_every_option_can_be_picked_by_its_text_and_by_its_letter(place):
    text, letter = OPTIONS[place], "ABCDE"[place]
    for reply in (
        text,
        text.upper(),
        f" {text}. ",
        letter,
        f"{letter}) {text}",
        f"{letter.lower()})",
    ):
        assert chosen_option(reply, OPTIONS) == place
    for reply in (
        f"The answer is {text}",
        f"The answer is {letter}",
        f"It is {letter}",
    ):
        assert chosen_option(reply, OPTIONS) == place


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_stands_before_a_letter_or_a_text(frame):
    assert chosen_option(f"{frame}B", OPTIONS) == 1
    assert chosen_option(f"{frame}b", OPTIONS) == 1
    assert chosen_option(f"{frame}Rome", OPTIONS) == 1
    assert chosen_option(f"{frame}B) Rome", OPTIONS) == 1
    assert chosen_option(f"{frame}B) Paris", OPTIONS) == 0
    assert chosen_option(f"{frame}Lyon", OPTIONS) is None


@pytest.mark.parametrize("saying", SAYINGS)
def test_a_saying_stands_before_a_letter(saying):
    assert chosen_option(f"{saying}B", OPTIONS) == 1
    assert chosen_option(f"{saying}b", OPTIONS) == 1
    assert chosen_option(f"{saying}B or C", OPTIONS) is None


@pytest.mark.parametrize(
    "reply",
    [
        *(
            '"B"',
            "'B'",
            "*B*",
            "**B**",
            "[B]",
            "(B)",
            "B)",
            "B.",
            "B:",
            "B,",
            "B-",
            "(b",
            "b.",
            "b:",
            "b]",
        )
    ],
)
def test_marks_around_a_letter(reply):
    assert chosen_option(reply, OPTIONS) == 1


@pytest.mark.parametrize(
    "reply", ["b", " b ", "B/C", "B;", "Bb", "B C", "B) C) D)", "B) Rome or C) Bern"]
)
def test_what_is_no_lone_letter(reply):
    assert chosen_option(reply, OPTIONS) is None


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("**B**", 1),
        ("**Answer: B) Rome**", 1),
        ("The answer is **B**.", 1),
        ("The answer to the question is B.", 1),
        ("B is the correct answer.", 1),
        ("B) Rome is the capital of Italy.", 1),
        ("B) It lies on the Tiber.", 1),
        ("C) New York, not Paris", None),
        ("B) Paris", 0),
        ("A) Rome", 1),
        ("B) Paris is in France", None),
        ("B) York", None),
        ("B) It is not given.", None),
        ("A:", None),
        ("A: Rome", 1),
        ("A) or B)", None),
        ("The capital of Italy is Rome.", 1),
        ("I would say that it is New York.", 2),
        ("It lies in Italy, and Italy in Europe.", None),
        ("Rome or Bern.", None),
        ("It is not Rome.", None),
        ("I don't know.", 4),
        ("I am not sure, perhaps Rome or Bern.", None),
        ("E) I am unsure", 4),
        ("A city in Italy called Rome", 1),
        ("A city in Italy", None),
        ("The answer is a city in Italy called Rome", 1),
    ],
)
def test_a_reply_is_read_as_models_write_it(reply, index):
    assert chosen_option(reply, OPTIONS) == index


def test_what_the_question_says_is_no_pick():
    options = ["Singapore", "Malaysia", "China", "Japan", "unsure"]
    asked = "Which country is Singapore in?"
    for reply, index in (
        ("Singapore is an island.", None),
        ("Singapore lies in Malaysia.", None),
        ("Singapore", 0),
        ("A) Singapore", 0),
        ("It lies in Malaysia.", 1),
    ):
        assert (reply, chosen_option(reply, options, asked)) == (reply, index)


def test_a_name_may_begin_with_an_initial_or_hold_another_option():
    writers = ["Mark Twain", "A. B. Yehoshua", "C. S. Lewis", "Lewis", "unsure"]
    assert chosen_option("C. S. Lewis wrote it.", writers) == 2
    assert chosen_option("A. B. Yehoshua", writers) == 1
    assert chosen_option("It was Lewis", writers) == 3


def test_letter_and_text_may_stand_on_two_lines():
    assert chosen_option("C)\nNew\nYork", OPTIONS) == 2
    assert chosen_option("The answer is\nNew\nYork", OPTIONS) == 2


def test_letters_go_up_to_the_tenth():
    many = [f"Town {number}" for number in range(11)]
    assert [chosen_option(letter, many) for letter in "AJK"] == [0, 9, None]
    assert chosen_option("J", many[:9]) is None


def test_an_option_without_a_word_is_picked_by_its_letter_only():
    assert chosen_option("", ["!!!", "Rome"]) is None
    assert chosen_option("???", ["!!!", "Rome"]) is None
    assert chosen_option("A", ["!!!", "Rome"]) == 0


@pytest.mark.parametrize("word", ["not", "isn't", "isnt", "never"])
def test_a_denial_turns_the_verdict(word):
    assert read_truth(f"It {word} true") is False
    assert read_truth(f"It {word} false") is True
    assert read_truth(f"It {word} really true") is False
    assert read_truth(f"It {word} so very true") is True
    assert read_truth(f"It {word} TRUE, it {word} false") is None


@pytest.mark.parametrize(
    "echo",
    [
        "true or false",
        "true nor false",
        "false or true",
        "false nor true",
        "neither true nor false",
    ],
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


def test_both_verdicts_make_none_unless_the_first_is_incorrect():
    assert read_verdict("Correct. Correct.") == "correct"
    assert (
        read_verdict("Correct. Incorrect.")
        == read_verdict("Incorrect or correct")
        == "unparsable"
    )
    assert read_verdict("Incorrect. Correct.") == "incorrect"
