"""Answers written by hand, in eleven languages, and what the rules say of each of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_kbrel.judges.rules import Judged, is_variant, judge
from pytest_kbrel.judges.words import strip_wrapping
from pytest_kbrel.records import LANGUAGES
from tests.judges.phrases import HALVES, phrases

ANSWERS = yaml.safe_load(
    (Path(__file__).parent / "answers.yaml").read_text(encoding="utf-8")
)
PHRASES = [
    phrase
    for language in LANGUAGES
    for half in HALVES
    for phrase in phrases(language, half)
]
# A denial of one person in front of the name of another is read as one of the question.
KNOWN = {"Paul Durand n'a pas gagné, c'est Marie Dubois."}


@pytest.mark.parametrize(
    ("label", "rule"), [(label, rule) for label in ANSWERS for rule in ANSWERS[label]]
)
def test_an_answer_is_judged_by_its_rule(label, rule):
    expected = Judged(label=label, rule=rule)
    assert [
        (row, actual)
        for row in ANSWERS[label][rule]
        if (actual := judge(row[2], row[1], row[0])) != expected
    ] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_phrases_of_a_language_are_judged_as_what_they_are(language):
    own = [phrase for phrase in PHRASES if phrase.language == language]
    assert len(own) > 50
    missed = {phrase.answer for phrase in own if not phrase.recognised}
    assert missed <= KNOWN
    for phrase in own:
        if phrase.group == "abstains":
            args = phrase.answer, [], phrase.question
            assert judge(*args, language=language).label == "uninformative", args
        if phrase.group == "denies":
            args = phrase.answer, ["Lima"], "Who?"
            assert judge(*args, language=language).label != "correct", args


@pytest.mark.parametrize("language", LANGUAGES)
def test_english_abstentions_count_in_every_language(language):
    for answer in ("unsure", "I don't know.", "As an AI, I cannot know that.", "N/A"):
        verdict = judge(answer, ["Lima"], "?", language=language)
        assert verdict.label == "uninformative", answer


@pytest.mark.parametrize("language", ["", "en", "fr", "ja"])
def test_abstentions_of_another_language_count_and_its_words_alone_do_not(language):
    for answer in (
        "Das weiß ich nicht.",
        "No lo sé.",
        "Não sei.",
        "Не знаю.",
        "我不知道。",
    ):
        assert judge(answer, ["Lima"], "Where?", language=language).rule == "unsure"
    for answer in ("No.", "Nicht Lima", "Das Boot", "La mer", "Non-stop"):
        assert judge(answer, ["Cuzco"], "Which?", language=language).label == "wrong"


@pytest.mark.parametrize(
    "wrapped",
    [
        "<think>Quito? No.</think> Lima",
        "so it must be Quito\n</think>\nLima",
        "Lima<|im_end|>",
        "Lima<|eot_id|><|start_header_id|>user<|end_header_id|>\nQuito",
        "<|start_header_id|>assistant<|end_header_id|>\n\nLima",
        "<start_of_turn>model\nLima<end_of_turn>",
        "[INST] Lima [/INST]",
        "<s>Lima</s><pad><pad>",
        "<0x0A>ĠLima",
        "Assistant: Lima\nUser: and of Chile?",
        "Lima\nQuestion: What of Chile?\nAnswer: Santiago",
        "**Final answer:** Lima",
        "$\\boxed{\\text{Lima}}$",
        "[Lima](https://example.org/Lima)",
        "<answer>Lima</answer>",
        "&quot;Lima&quot; [1]",
        '{"answer": "Lima"}',
        "```\nLima\n```",
    ],
)
def test_what_stands_around_an_answer_is_stripped(wrapped):
    assert judge(wrapped, ["Lima"], "What is the capital?").label == "correct"
    unsure = judge(wrapped.replace("Lima", "I don't know."), ["Lima"], "Which one?")
    assert unsure.label == "uninformative"
    assert "Quito" not in strip_wrapping(wrapped)


@pytest.mark.parametrize(
    ("accepted", "within", "right", "wrong"),
    [
        (
            "120,000",
            (118e3, 122e3),
            "About 119k people|121 thousand|118,000",
            "123,000",
        ),
        ("1985", (1983.0, 1987.0), "c. 1984|12 May 1985|in 1987", "1988|May 1982"),
        ("-33.77", (-33.8, -33.7), "-33.75|−33.8 degrees", "33.75|-33"),
        ("$3.5 million", (3.4e6, 3.6e6), "3.5 million dollars|$3,450,000", "$3.5"),
    ],
)
def test_a_number_is_held_against_a_range_alone(accepted, within, right, wrong):
    for label, answers in (("correct", right), ("wrong", wrong)):
        for answer in answers.split("|"):
            actual = judge(answer, [accepted], "How many?", within=within)
            assert actual == Judged(label=label, rule="range"), answer
    assert judge("no idea", [accepted], within=within).label == "uninformative"


def test_a_users_patterns_come_after_the_shipped_ones():
    extra = (("none", "pass"), ("unsure", "beyond my training"))
    assert judge("It is BEYOND my training.", ["Lima"], extra=extra).rule == "unsure"
    assert judge("I don't know, I pass.", ["Lima"], extra=extra).rule == "unsure"
    assert judge("I pass.", ["Lima"], extra=extra).rule == "none"
    assert judge("Pass", ["Pass"], extra=extra).rule == "equal"


@pytest.mark.parametrize(
    ("answer", "language", "right"),
    [
        ("04/05/2010", "en", True),
        ("5/4/2010", "en", True),
        ("6/4/2010", "en", False),
        ("4.5.2010", "de", True),
        ("5.4.2010", "de", False),
        ("2010-05-04", "en", True),
        ("2010年5月4日", "ja", True),
    ],
)
def test_a_date_in_digits_is_read_as_its_language_orders_it(answer, language, right):
    label = judge(answer, ["4 May 2010"], "When?", language=language).label
    assert (label == "correct") == right


@pytest.mark.parametrize(
    ("answer", "accepted", "variant"),
    [
        ("shakespeare", "William Shakespeare", True),
        ("March 22nd, 1832", "1832-03-22", True),
        ("1832", "1832-03-22", False),
        ("Richard Rodgers", "Richard Charles Rodgers", True),
        ("It is Lima.", "Lima", False),
        ("Quito", "Lima", False),
        ("", "Lima", False),
    ],
)
def test_only_the_whole_of_an_answer_is_a_variant(answer, accepted, variant):
    assert is_variant(answer, [accepted]) == variant


@pytest.mark.parametrize(
    ("answer", "accepted", "question", "right"),
    [
        ("Panama", "Panama City", "What is the capital of Panama?", False),
        ("Panama City", "Panama City", "What is the capital of Panama?", True),
        ("Singapore", "Singapore", "What is the capital of Singapore?", True),
        (
            "Singapore's capital is Singapore.",
            "Singapore",
            "The capital of Singapore?",
            True,
        ),
        (
            "The capital of Singapore is Jakarta.",
            "Singapore",
            "The capital of Singapore?",
            False,
        ),
        ("It is Carrie.", "Carrie", "Who sold more, Kelly or Carrie?", True),
    ],
)
def test_what_a_question_names_is_no_answer_by_itself(
    answer, accepted, question, right
):
    assert (judge(answer, [accepted], question).label == "correct") == right


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
        "東京",
        "не",
        "لا",
        "</think>",
        "<|im_end|>",
        "Answer:",
        "\n",
        '"',
        "'",
        "but",
        "unsure",
        "\x1b",
        "\u200b",
        "ŉ",
    ]
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(_WORDS, max_size=9),
    st.lists(_WORDS, min_size=1, max_size=4),
    st.sampled_from(LANGUAGES),
)
def test_every_text_has_a_verdict_and_the_same_twice(words, gold, language):
    answer, accepted = " ".join(words), [" ".join(gold)]
    verdict = judge(answer, accepted, "Which?", language=language)
    assert verdict == judge(answer, accepted, "Which?", language=language)
    assert judge(answer, [], "Which?").label != "correct"


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="abcdefghijk0123456789 ", min_size=3).filter(str.strip))
def test_what_equals_an_accepted_answer_is_right(text):
    for language in ("en", "de", "ja"):
        assert (
            judge(text.upper(), [text], "Which?", language=language).label == "correct"
        )


@pytest.mark.parametrize(
    "text",
    ["\n" * 10**5, "a " * 10**5, "(" * 10**5, "<" * 10**5, "no, " * 10**5, "9" * 10**5],
)
def test_a_hostile_answer_takes_no_time(text):
    begun = time.monotonic()
    judge(text, ["Lima"], "What is the capital of Peru?")
    assert time.monotonic() - begun < 5
