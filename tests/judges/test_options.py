"""Which option a reply picks, word by word of the frames that it may stand in."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.replies import chosen_option

OPTIONS = ["Paris", "Rome", "New York", "Bern", "unsure"]
# In front of the letter or the text of an option.
FRAMES = [
    *("Answer ", "Answer: ", "Answer = ", "Option ", "Choice ", "Response ", "Letter ", "The answer is "),
    *("My answer is ", "The correct answer is ", "The right answer is ", "The best answer is "),
    *("My final answer is ", "The right option is ", "The best choice is ", "My response is "),
    *("The correct letter is ", "The answer would be ", "The answer must be ", "The answer is option "),
    *("The answer is letter ", "The answer is choice ", "So the answer is ", "Therefore the answer is "),
    *("Thus, the answer is ", "Hence , the answer is ", "THE ANSWER IS ", "answer is: "),
]
# In front of a letter only.
SAYINGS = [
    *("I choose ", "I pick ", "I select ", "I think ", "I would choose ", "I would pick ", "I would say "),
    *("I think it is ", "I think it's ", "I choose option ", "It is ", "It's ", "I CHOOSE "),
]


@pytest.mark.parametrize("place", range(5))
def test_every_option_can_be_picked_by_its_text_and_by_its_letter(place):
    text, letter = OPTIONS[place], "ABCDE"[place]
    for reply in (text, text.upper(), f" {text}. ", letter, f"{letter}) {text}", f"{letter.lower()})"):
        assert chosen_option(reply, OPTIONS) == place
    for reply in (f"The answer is {text}", f"The answer is {letter}", f"It is {letter}"):
        assert chosen_option(reply, OPTIONS) == place


@pytest.mark.parametrize("frame", FRAMES)
def test_a_frame_stands_before_a_letter_or_a_text(frame):
    assert chosen_option(f"{frame}B", OPTIONS) == 1
    assert chosen_option(f"{frame}b", OPTIONS) == 1
    assert chosen_option(f"{frame}Rome", OPTIONS) == 1
    assert chosen_option(f"{frame}B) Rome", OPTIONS) == 1
    assert chosen_option(f"{frame}B) Paris", OPTIONS) is None
    assert chosen_option(f"{frame}Lyon", OPTIONS) is None


@pytest.mark.parametrize("saying", SAYINGS)
def test_a_saying_stands_before_a_letter(saying):
    assert chosen_option(f"{saying}B", OPTIONS) == 1
    assert chosen_option(f"{saying}b", OPTIONS) == 1
    assert chosen_option(f"{saying}B or C", OPTIONS) is None


@pytest.mark.parametrize(
    "reply",
    ["I like B", "Perhaps the answer is B", "The wrong answer is B", "It was B", "I would B", "Not B"],
)
def test_other_words_before_a_letter_pick_nothing(reply):
    assert chosen_option(reply, OPTIONS) is None


@pytest.mark.parametrize(
    "reply",
    [*('"B"', "'B'", "*B*", "**B**", "[B]", "(B)", "B)", "B.", "B:", "B,", "B-", "(b", "b.", "b:", "b]")],
)
def test_marks_around_a_letter(reply):
    assert chosen_option(reply, OPTIONS) == 1


@pytest.mark.parametrize("reply", ["b", " b ", "b Rome", "B/C", "B;", "Bb", "B C", "B) C) D)"])
def test_what_is_no_lone_letter(reply):
    assert chosen_option(reply, OPTIONS) is None


def test_letter_and_text_may_stand_on_two_lines():
    assert chosen_option("C)\nNew\nYork", OPTIONS) == 2
    assert chosen_option("The answer is\nNew\nYork", OPTIONS) == 2


def test_letters_go_up_to_the_tenth():
    many = [f"Town {number}" for number in range(11)]
    assert [chosen_option(letter, many) for letter in "AJK"] == [0, 9, None]
    assert chosen_option("J", many[:9]) is None


def test_of_a_reply_the_first_400_characters_are_read():
    assert chosen_option(" " * 396 + "Rome", OPTIONS) == 1
    assert chosen_option(" " * 397 + "Rome", OPTIONS) is None


def test_an_option_without_a_word_is_picked_by_its_letter_only():
    assert chosen_option("", ["!!!", "Rome"]) is None
    assert chosen_option("???", ["!!!", "Rome"]) is None
    assert chosen_option("A", ["!!!", "Rome"]) == 0
