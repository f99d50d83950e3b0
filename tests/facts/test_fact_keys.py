"""The keys of a fact one by one: what each may be, and what it may not."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kbrel.facts.files import KEYS, as_fact
from pytest_kbrel.records import Fact

BARE = {"relation": "P36", "subject": "Mali", "object": "Bamako"}


def made(**changes: Any) -> Fact:
    return as_fact({**BARE, **changes})


def test_the_keys_of_the_format() -> None:
    assert set(KEYS) == {
        *("id", "relation", "subject", "object", "aliases", "negatives", "popularity", "question"),
        *("answer_type", "bucket", "source", "licence", "dataset", "duplicate_of", "valid_until"),
        *("language", "answer_range"),
    }


def test_a_range_is_two_numbers_in_their_order() -> None:
    assert made(answer_range=[118000, 122000.5]).answer_range == (118000.0, 122000.5)
    assert made(answer_range=[-5, -5]).answer_range == (-5.0, -5.0)
    assert made().answer_range is made(answer_range=None).answer_range is None
    for wrong in (
        5,
        "1 to 2",
        [],
        [1],
        [1, 2, 3],
        [2, 1],
        ["1", "2"],
        [1, True],
        [1, float("nan")],
        {"a": 1},
    ):
        with pytest.raises(ValueError, match="'answer_range' must be the least and the greatest number"):
            made(answer_range=wrong)
    with pytest.raises(ValueError, match=r"such as \[118, 122\], found \[2, 1\]"):
        made(answer_range=[2, 1])
    with pytest.raises(ValueError, match="'answer_range' is for questions with an answer"):
        made(object=None, question="How many?", answer_range=[1, 2])


@pytest.mark.parametrize("key", ["id", "relation", "subject", "object", "question"])
@pytest.mark.parametrize("wrong", ["", " ", " x", "x ", "\tx", "a\nb", "a\u2028b", 7, True, [], {"a": 1}])
def test_a_text_is_one_line_without_space_around(key: str, wrong: Any) -> None:
    with pytest.raises(ValueError, match=f"'{key}' must be text of one line without space around it, found"):
        made(**{key: wrong})


@pytest.mark.parametrize("key", ["id", "relation", "subject", "object"])
def test_a_text_that_must_be_there_may_not_be_nothing(key: str) -> None:
    with pytest.raises(ValueError, match=f"'{key}' must be text of one line without space around it, found"):
        made(**{key: None})


@pytest.mark.parametrize("key", ["relation", "subject", "object"])
def test_three_keys_are_needed(key: str) -> None:
    rest = {name: text for name, text in BARE.items() if name != key}
    with pytest.raises(ValueError, match=f"the key '{key}' is missing; .* needed: relation, subject, object"):
        as_fact(rest)


@pytest.mark.parametrize("key", ["source", "licence", "dataset", "duplicate_of"])
def test_a_note_is_any_text(key: str) -> None:
    assert getattr(made(**{key: ""}), key) == ""
    assert getattr(made(**{key: " two\nlines "}), key) == " two\nlines "
    for wrong in (None, 3, ["x"]):
        with pytest.raises(ValueError, match=f"'{key}' must be text without NUL, found"):
            made(**{key: wrong})


@pytest.mark.parametrize("key", ["aliases", "negatives"])
def test_a_list_of_texts(key: str) -> None:
    assert getattr(made(**{key: []}), key) == ()
    assert getattr(made(**{key: ["x", "y"]}), key) == ("x", "y")
    for wrong in (None, "x", {"x": 1}):
        with pytest.raises(ValueError, match=f"'{key}' must be a list of texts, found"):
            made(**{key: wrong})
    for wrong in ("", " x", "a\nb", None, 1):
        with pytest.raises(ValueError, match=f"each of '{key}' must be text of one line without space"):
            made(**{key: ["x", wrong]})


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("answer_type", ["number", "person", "time", "location", "other"]),
        ("bucket", ["head", "torso", "tail"]),
    ],
)
def test_a_choice_is_one_of_its_words_or_nothing(key: str, words: list[str]) -> None:
    for word in (*words, ""):
        assert getattr(made(**{key: word}), key) == word
    for wrong in (words[0].title(), f"{words[0]} ", "none", None, 0):
        with pytest.raises(ValueError, match=f"'{key}' must be one of {', '.join(words)}, found"):
            made(**{key: wrong})


@pytest.mark.parametrize(
    ("given", "read"), [(0, 0.0), (0.0, 0.0), (1, 1.0), (0.25, 0.25), (1e300, 1e300), (None, None)]
)
def test_a_popularity_from_nothing_up_is_a_popularity(given: float | None, read: float | None) -> None:
    result = made(popularity=given).popularity
    assert (result, type(result)) == (read, type(read))


@pytest.mark.parametrize("wrong", [-1, -1e-9, 1.1e300, float("inf"), True, False, "0", "", []])
def test_what_is_no_popularity(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"'popularity' must be a number from 0 to 1e\+300, found"):
        made(popularity=wrong)


@pytest.mark.parametrize(
    "wrong", [None, 2028, "2028", "20280714", "2028-W28-5", "2028-02-30", "14.07.2028", " "]
)
def test_a_day_is_written_in_one_way(wrong: Any) -> None:
    assert made(valid_until="").valid_until == ""
    assert made(valid_until="2028-02-29").valid_until == "2028-02-29"
    with pytest.raises(ValueError, match="'valid_until' must be a date such as 2028-07-14, found"):
        made(valid_until=wrong)


def test_only_a_fact_with_a_question_may_be_without_an_object() -> None:
    fact = made(object=None, question="Who?")
    assert (fact.object, fact.question, fact.accepted) == (None, "Who?", ())
    assert made(question=None).question is None
    for without in ({}, {"question": None}):
        with pytest.raises(ValueError, match="'object' must be text of one line"):
            made(object=None, **without)


@pytest.mark.parametrize("key", ["id", "relation", "subject"])
def test_a_question_stands_for_no_other_text(key: str) -> None:
    with pytest.raises(ValueError, match=f"'{key}' must be text of one line"):
        made(**{key: None, "question": "Who?"})


@pytest.mark.parametrize("wrong", ["", " x", 7, False, []])
def test_beside_a_question_too_an_object_is_a_text_or_nothing(wrong: Any) -> None:
    with pytest.raises(ValueError, match="'object' must be text of one line"):
        made(object=wrong, question="Who?")


def test_a_fact_without_an_id_is_named_by_its_relation_and_subject() -> None:
    assert made().id == "P36:Mali"
    assert made(id="own").id == "own"


@pytest.mark.parametrize("right", ["Bamako", "BAMAKO", "Bamako-sur-Niger", "bamako-sur-niger"])
def test_a_right_answer_is_no_wrong_one_in_any_capitals(right: str) -> None:
    with pytest.raises(ValueError, match=f"must be wrong answers, found '{right}', which is a right one"):
        made(aliases=["Bamako-sur-Niger"], negatives=["Ségou", right])


def test_a_wrong_answer_stands_once_in_any_capitals() -> None:
    for twin in ("Ségou", "SÉGOU"):
        with pytest.raises(ValueError, match="'negatives' must differ from each other, found 'Ségou' twice"):
            made(negatives=["Gao", "Ségou", twin])
    assert made(negatives=["Gao", "Ségou"]).negatives == ("Gao", "Ségou")
