"""Where an answer abstains, what it says besides, and what is only a guess."""

from __future__ import annotations

import pytest

from pytest_kbrel.judges.abstention import statement_besides, uninformative_kind
from pytest_kbrel.judges.rules import judge

QUESTION = "What is the capital of Peru?"


def rule(answer, *accepted):
    return judge(answer, accepted, QUESTION).rule


@pytest.mark.parametrize(
    "word", ["but", "however", "though", "still", "nevertheless", "BUT", "- but"]
)
def test_a_statement_behind_a_contrast_is_an_answer(word):
    assert rule(f"I don't know, {word} the capital is Lima.", "Lima") == "contained"
    assert rule(f"I don't know. {word} the capital is Lima.", "Lima") == "contained"
    assert rule(f"I don't know. {word}, the capital is Lima.", "Lima") == "contained"
    # Informative, so that it is wrong where nobody can know.
    assert rule(f"I don't know, {word} the capital is Lima.") == "no rule"
    assert rule(f"I don't know. {word}, the capital is Lima.") == "no rule"
    assert rule(f"I don't know, {word} the capital is Quito.", "Lima") == "no rule"


def test_without_a_contrast_a_clause_is_a_guess():
    assert rule("I don't know, the capital is Lima.", "Lima") == "unsure"
    assert rule("I don't know, and the capital is Lima.", "Lima") == "unsure"
    assert rule("The capital is Lima, I don't know.", "Lima") == "unsure"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "it may be Lima",
            "it might be Lima",
            "it could be Lima",
            "it would be Lima",
            "it may have been Lima",
        ),
        *(
            "maybe it is Lima",
            "it is perhaps Lima",
            "possibly it is Lima",
            "it is probably Lima",
            "it is Lima?",
        ),
        *(
            "presumably it is Lima",
            "my guess is Lima",
            "guessing it is Lima",
            "one may suppose Lima",
        ),
        *("they believe it is Lima", "they think it is Lima"),
    ],
)
def test_what_is_hedged_is_a_guess(text):
    assert rule(f"I don't know, but {text}", "Lima") == "unsure"
    assert rule(f"I don't know. {text}", "Lima") == "unsure"
    assert statement_besides(f"I don't know. {text}") == ""


ASIDES = "I we you please let if feel there this that here for_more perhaps maybe"


@pytest.mark.parametrize("word", ASIDES.split())
def test_a_contrast_that_goes_on_about_the_model_states_nothing(word):
    assert (
        rule(f"I don't know, but {word.replace('_', ' ')} can tell of Lima") == "unsure"
    )
    assert rule("I don't know, but they can tell of Lima") == "no rule"


@pytest.mark.parametrize("marks", ['""', "“”", "«»", "„“", "„”"])
def test_quoted_text_is_no_abstention(marks):
    begin, end = marks
    assert rule(f"The song is {begin}I don't know{end}", "Lima") == "no rule"
    assert (
        judge(f"It was {begin}I don't know{end}", ["I don't know"], QUESTION).label
        == "correct"
    )
    assert rule(f"I don't know. It is called {begin}Lima{end}.", "Lima") == "contained"
    # An answer that is quoted whole is what it says.
    assert rule(f"{begin}I don't know.{end}", "Lima") == "unsure"


def test_quotations_keep_their_places():
    besides = statement_besides('I can\'t tell. It is "Lima" or "Quito".')
    assert " ".join(besides.split()) == 'It is "Lima" or "Quito"'


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        # five words with a capital, small words apart
        ("I Can't Tell You Why", ""),
        ("I Can't Tell the Whole Truth of It", ""),
        ("I Can't Tell You", "unsure"),
        ("I Can't Tell You why", "unsure"),
        ("I CAN'T TELL YOU WHY", "unsure"),
        ("I can't tell you why", "unsure"),
        ("I Can't Tell You Why, by Eagles", ""),
    ],
)
def test_a_title_is_no_abstention(answer, kind):
    assert uninformative_kind(answer) == kind


SMALL = "a an and as at by de for from in is la le of on or the to with"


@pytest.mark.parametrize("word", SMALL.split())
def test_a_small_word_in_a_title_needs_no_capital(word):
    assert uninformative_kind(f"Why I Don't Know Lima {word} Cusco") == ""
    assert uninformative_kind(f"Why I Don't Know {word} Lima") == ""
    assert uninformative_kind(f"I Don't Know {word} Lima") == "unsure"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        # the first sentence that is more than a frame tells
        ("Sorry. I don't know.", "unsure"),
        ("Good question! No idea.", "unsure"),
        ("What is it? I don't know.", "unsure"),
        ("It is Lima. I don't know more.", ""),
        ("It is big. I don't know it.", ""),
        ("Sorry, but well, so, unfortunately, no idea", "unsure"),
        # a question before another sentence is polite, and what says that nobody knows is no question
        ("Sorry. Is it Lima?", ""),
        ("Who knows? It is Lima.", "unsure"),
        # a contrast with another abstention states nothing, and a contrast behind it does
        ("I don't know. But I can't tell. It is Lima.", "unsure"),
        ("I don't know, but I can't tell, it is Lima.", "unsure"),
        ("I don't know, but I can't tell, but it is Lima.", ""),
        ("I don't know. However, I can't tell. But it is Lima.", ""),
        # a frame of one word may be a title
        ("So", ""),
        ("However", ""),
        ("Sorry", "unsure"),
        ("Well, so", "unsure"),
        ("I'm sorry", "unsure"),
        ("As an AI language model", "unsure"),
        # a pattern that ends a sentence is not searched in its clauses
        ("Uncertain, Texas", ""),
        ("uncertain", "unsure"),
        ("I don't know, but Uncertain, Texas", ""),
        # parts that are clauses
        ("Lima: I don't know", "unsure"),
        ("Lima (I don't know)", "unsure"),
        ("Lima [I don't know]", "unsure"),
        ("Lima; I don't know", "unsure"),
        ("Lima - I don't know", "unsure"),
        ("Lima – I don't know", "unsure"),
        ("Lima—I don't know", "unsure"),
        ("I don´t know", "unsure"),
        ("I don`t know", "unsure"),
        ("I donʼt know", "unsure"),
        ("I don′t know", "unsure"),
        ("I don’t know", "unsure"),
        ("I don‘t know", "unsure"),
        ("I do n't know", "unsure"),
        ("I DO N'T KNOW", "unsure"),
    ],
)
def test_the_sentence_that_tells(answer, kind):
    assert uninformative_kind(answer) == kind


@pytest.mark.parametrize(
    ("answer", "besides"),
    [
        ("It is Lima.", ""),
        ("It is Lima. I don't know more.", "It is Lima."),
        ("I don't know. It is Lima.", "It is Lima"),
        ("I don't know, but it is Lima, so it is.", "but it is Lima. so it is"),
        ("I don't know, it is Lima.", ""),
        ("I don't know, it is big, but it is Lima.", "but it is Lima"),
        ("I don't know, but it is Lima, I can't tell more.", "but it is Lima"),
        ("I don't know. It is Lima. I can't tell more.", "It is Lima"),
        ("It is Lima. I don't know more. It is big.", "It is Lima. It is big."),
        (
            "The town is: Uncertain, Texas. I can't tell more.",
            "The town is: Uncertain, Texas.",
        ),
        ("I don't know. Uncertain, Texas.", "Uncertain. Texas"),
        # Marks are taken off, letters are not.
        ("I don't know. It is Malcolm X.", "It is Malcolm X"),
        ("\"I don't know. It is Xi'an.\"", "It is Xi'an"),
        # A word like the ones that stand for quotations is left as it is.
        ("I don't know. It is quoted0z.", "It is quoted0z"),
        ('I don\'t know. It is "Lima" or quoted1z.', 'It is  "Lima"  or quoted1z'),
        ("I don't know.", ""),
        ("", ""),
        ("...", ""),
    ],
)
def test_what_an_answer_says_besides(answer, besides):
    assert statement_besides(answer) == besides


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # a stretch of two words and more: three times in a row, and three fifths of the words
        ("a1 b a1 b a1 b c d e f", "repetition"),
        ("a1 b a1 b a1 b c d e f g", ""),
        ("a1 b a1 b c d e f", ""),
        (" ".join([*"bcdefghijklm"] * 3), "repetition"),
        (" ".join([*"bcdefghijklmn"] * 3), ""),
        # a word: four times, and half of the words
        ("a1 b a1 c a1 d a1 e", "repetition"),
        ("a1 b a1 c a1 d a1 e f", ""),
        ("a1 a1 a1", ""),
        ("a1 a1 a1 a1", "repetition"),
    ],
)
def test_a_repetition(text, kind):
    assert uninformative_kind(text) == kind


@pytest.mark.parametrize(
    ("question", "answer", "kind"),
    [
        ("Who built it then?", "Who built it then?", "none"),
        ("Who built it then?", "Q: Who built it then? A:", "none"),
        ("Who built it then?", "Question: Who built it then? Answer:", "none"),
        ("Who built it then?", "Who built it then? Who built it then?", "none"),
        ("Who built it then?", "Who built it then? Ann.", ""),
        ("Who built it then?", "who built it", ""),
        ("Who built it?", "Who built it?", "none"),
        # A short question asked twice may be a name.
        ("Who built it?", "Who built it? Who built it?", ""),
        ("", "Who built it then?", ""),
    ],
)
def test_the_question_again_says_nothing(question, answer, kind):
    assert uninformative_kind(answer, question) == kind


@pytest.mark.parametrize("answer", ["N/A", "n/a", "N / A", " (n/a). ", "**N/A**"])
def test_not_applicable_says_nothing(answer):
    assert uninformative_kind(answer) == "none"
    assert rule(answer, "N") == "none"


@pytest.mark.parametrize("answer", ["N", "NA", "n a", "N/A/C", "an N/A", "/N/A/"])
def test_what_is_no_not_applicable(answer):
    assert uninformative_kind(answer) == ""


def test_of_an_answer_the_first_2000_characters_tell():
    assert uninformative_kind("x " * 992 + ". . I don't know") == "repetition"
    words = " ".join(f"x{number}" for number in range(1000))
    assert uninformative_kind(words[:1986] + " I don't know") == "unsure"
    assert uninformative_kind(words[:1987] + " I don't know") == "unsure"
    assert uninformative_kind(words[:1988] + " I don't know") == ""
