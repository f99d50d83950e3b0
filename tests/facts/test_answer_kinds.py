"""Of which kind an answer is, by its text and by what its question asks for."""

from __future__ import annotations

import pytest

from pytest_kbrel.facts.answer_kinds import Kind, kind_of


def sort(answer: str | None, question: str = "", answer_type: str = "", *, cased: bool = True) -> str:
    return kind_of(answer, question, answer_type, cased=cased).sort


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    [
        ("1969", "when did they land", "year"),
        ("in 1969", "when did they land", "year"),
        ("44 BC", "in which year did he die", "year"),
        ("first published in 1890", "when did it come out", "year"),
        ("July 20, 1969", "when did they land", "date"),
        ("the 90s", "when was it popular", "date"),
        ("the 19th century", "when was it built", "date"),
        ("Saturday", "when is it shown", "date"),
        ("After World War II", "when was it introduced", "date"),
        ("at sunset", "when is it sung", "other"),
        ("1500", "how many ships were there", "number"),
        ("1500", "", "year"),
        ("seven", "how many seas are there", "number"),
        ("Twenty-seven", "how many changes were made", "number"),
        ("585 (HD)", "what channel is it on", "number"),
        ("8 bytes", "how many does it hold", "quantity"),
        ("20-year period", "how long did it take", "quantity"),
        ("$2.18 billion", "how much did it earn", "quantity"),
        ("1%", "what percentage is it", "quantity"),
        ("a week", "how long does it last", "quantity"),
        ("Ann Lee", "who wrote it", "person"),
        ("50 Cent", "who sings it", "person"),
        ("Ann Lee", "actor who plays the king", "person"),
        ("Ann Lee", "", "person"),
        ("his brother", "who is he talking about", "other"),
        ("Dhaka, Bangladesh", "which seat did it have", "place"),
        ("Utah", "where was it filmed", "place"),
        ("Lake Superior", "what is it called", "place"),
        ("Romania", "In what country is Vale?", "place"),
        ("a bank", "where do you get one", "other"),
        ("7 Rings", "which song came first", "title"),
        ("Help!", "what album is it on", "title"),
        ("Yes", "do you need one", "yes/no"),
        ("Yes", "what do you say when you win", "name"),
        ("epithelium", "what is it made of", "other"),
        ("Hinduism", "What is the religion of Rama?", "name"),
    ],
)
def test_a_sort_is_told_by_answer_and_question(answer: str, question: str, expected: str) -> None:
    assert sort(answer, question) == expected


@pytest.mark.parametrize(
    ("question", "keyword"),
    [
        ("In what country is Vale?", "country"),
        ("What is the religion of Rama?", "religion"),
        ("What is Ann Lee's occupation?", "occupation"),
        ("What profession does Ann Lee have?", "occupation"),
        ("What genre is Chicago?", "genre"),
        ("Who was the director of Vale?", "director"),
        ("who sang it", "sang"),
        ("Who is it?", ""),
        ("which film won the prize", "film"),
        ("what type of dog was it", "dog"),
        ("what is the name of the song", "song"),
        ("what is the scientific name for a calf", ""),
        ("how many seas are there", ""),
        ("where was it filmed", ""),
        ("", ""),
    ],
)
def test_the_word_a_question_asks_by(question: str, keyword: str) -> None:
    assert kind_of("Some Thing", question).keyword == keyword


def test_a_known_type_goes_before_the_questions_words() -> None:
    assert sort("Ann Lee", "What is it?", "person") == "person"
    assert sort("Vale", "What is it?", "location") == "place"
    assert sort("1984", "which book is it", "time") == "year"
    # A reader takes it for a time by its looks.
    assert sort("1500", "how many ships were there", "time") == "number"


def test_without_an_answer_the_question_tells() -> None:
    assert kind_of(None, "Who was the director of Vale?") == Kind(sort="person", keyword="director")
    assert sort(None, "when did it begin") == "date"
    assert sort(None, "what is it") == "unknown"


def test_where_names_have_no_capitals_they_are_names_all_the_same() -> None:
    assert sort("ann lee", "who wrote it", cased=False) == "person"
    assert sort("ann lee", "who wrote it") == "other"
    # Not every script has capitals.
    assert sort("李白", "who wrote it") == "person"


def test_what_one_noun_asks_for_is_alike_whether_it_looks_like_a_name_or_not() -> None:
    rock, jpop = (kind_of(name, "What genre is Vale?") for name in ("rock", "J-pop"))
    assert (rock.sort, jpop.sort) == ("other", "name")
    assert rock.closest == jpop.closest
    assert kind_of("J-pop", "What is it?").closest == ("name", "")
