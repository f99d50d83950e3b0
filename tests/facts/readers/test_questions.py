"""NQ-open, TriviaQA, and question files of other makers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import Read, lines


def test_nq_open(read_text: Read) -> None:
    result = read_text(
        "nq-open",
        "n.jsonl",
        lines(
            {"question": "who baked  the first\u00a0bun ", "answer": ["Ann\n\nLee", "A. Lee", "a. lee", ""]},
            {"question": "how many buns", "answer": [12, 12.0], "def_correct_predictions": ["a dozen"]},
        ),
    )
    first, second = result.facts
    assert (first.question, first.object, first.aliases) == (
        "who baked the first bun",
        "Ann Lee",
        ("A. Lee",),
    )
    assert (second.object, second.aliases, second.answer_type) == ("12", (), "number")
    assert {fact.relation for fact in result.facts} == {"nq_open"}


def test_ids_are_made_of_the_content_not_of_the_place(read_text: Read) -> None:
    rows = [{"question": f"who is {n}", "answer": ["x"]} for n in range(4)]
    ids = {f.question: f.id for f in read_text("nq-open", "a.jsonl", lines(*rows)).facts}
    turned = {f.question: f.id for f in read_text("nq-open", "b.jsonl", lines(*rows[::-1])).facts}
    assert ids == turned
    assert len(set(ids.values())) == 4


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "who", "answer": []}, "'answer' must hold at least one answer, found none"),
        ({"question": "who", "answers": ["x"]}, "the key 'answer' is missing; found: question, answers"),
        ({"question": "", "answer": ["x"]}, "'question' must be text or a number, found ''"),
        ({"question": "who", "answer": [{}]}, "'answer' must be text or a number, found an empty mapping"),
        ('{"question": "who", "answer": ["\\ud800"]}', "half a surrogate pair"),
        ('{"question": "a", "question": "b", "answer": ["x"]}', "key 'question' stands twice"),
    ],
)
def test_a_broken_line_of_nq_open(row: object, message: str, read_text: Read, tmp_path: Path) -> None:
    (error,) = read_text("nq-open", "n.jsonl", lines("", row)).errors
    assert error.startswith(f"{tmp_path / 'n.jsonl'}:2: ")
    assert message in error


def trivia(number: int, **answer: Any) -> dict[str, Any]:
    return {"Question": f"Q{number}?", "QuestionId": f"tc_{number}", "Answer": answer, "SearchResults": [{}]}


def test_triviaqa(read_text: Read, tmp_path: Path) -> None:
    data = [
        trivia(
            1,
            Value="Moss Rd",
            Aliases=["Moss Road", "moss rd"],
            NormalizedAliases=["moss road", "the moss"],
            HumanAnswers=["Mossy"],
        ),
        trivia(2, Value="1931", Aliases=[]),
        {"Question": "Q3?", "QuestionId": "tc_3"},
        trivia(4),
    ]
    result = read_text(
        "triviaqa", "t.json", json.dumps({"Data": data, "Domain": "Web", "Version": 1.0}, indent=1)
    )
    assert [(f.id, f.object, f.aliases, f.answer_type) for f in result.facts] == [
        ("tc_1", "Moss Rd", ("Moss Road", "Mossy", "the moss"), ""),
        ("tc_2", "1931", (), "time"),
    ]
    third, fourth = result.errors
    assert "'Answer' must be an object with 'Value', found nothing; allowed: files with answers" in third
    assert fourth.endswith("the key 'Value' is missing; found: nothing; needed: Value")
    text = (tmp_path / "t.json").read_text().splitlines()
    assert [text[row.line - 1] for row in result.rows] == ["  {"] * 4


def test_other_lists_of_triviaqa_are_passed_over(read_text: Read) -> None:
    document = {"Notes": [{"Question": "no"}], "Data": [trivia(1, Value="x")], "More": [1, 2]}
    result = read_text("triviaqa", "t.json", json.dumps(document))
    assert ([fact.id for fact in result.facts], result.errors) == (["tc_1"], [])


def test_predictions_are_no_questions(read_text: Read) -> None:
    with pytest.raises(SuiteError, match=r":1: no questions found; a TriviaQA file is"):
        read_text("triviaqa", "t.json", '{"tc_1": "Moss"}')


QA = {"question": "Who?", "answers": ["Li", "Lee"], "source": "Own Set", "s_pop": 3}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.json", json.dumps([QA], indent=1)),
        ("q.json", json.dumps({"data": [QA]})),
        ("q.json", lines(QA)),
        ("q.jsonl", lines(QA)),
        (
            "q.jsonl",
            lines({"query": "Who?", "possible_answers": '["Li", "Lee"]', "dataset": "Own Set", "s_pop": 3}),
        ),
        (
            "q.jsonl",
            lines({"input": "Who?", "output": ["Li", "Lee", "LI"], "source": "Own Set", "popularity": "3"}),
        ),
    ],
)
def test_question_files_by_their_usual_names(name: str, text: str, read_text: Read) -> None:
    (fact,) = read_text("qa", name, text).facts
    assert (fact.question, fact.object, fact.aliases) == ("Who?", "Li", ("Lee",))
    assert (fact.dataset, fact.relation, fact.popularity) == ("Own_Set", "Own_Set", 3.0)


def test_questions_without_an_answer(read_text: Read) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "A?", "answer": None, "answer_type": "Date", "valid_until": "2031-01-01"},
        {"question": "B?", "answers": [], "id": 9},
        {"question": "C?"},
        {"question": "D?", "answer": "unsure"},
        {"question": "E?", "answer": 0},
    ]
    facts = read_text("qa", "q.jsonl", lines(*rows)).facts
    assert [fact.object for fact in facts] == [None, None, None, None, "0"]
    assert (facts[0].answer_type, facts[0].valid_until, facts[1].id) == ("time", "2031-01-01", "9")
    assert {fact.dataset for fact in facts} == {"qa"}


def test_relations_and_subjects_of_question_files(read_text: Read) -> None:
    row = {"question": "Who?", "answer": "Li", "relation": "made by", "subject": "Ash", "dataset": "d"}
    result = read_text("qa", "q.jsonl", lines(row))
    assert (result.relation.id, result.relation.label, result.relation.domain) == ("made_by", "made by", "d")
    assert result.facts[0].subject == "Ash"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"q": "Who?", "answer": "x"}, "no question; found: q, answer; allowed: one of question, query"),
        (
            {"question": "Who?", "anser": "x"},
            "unknown key 'anser'; answers stand under one of .*did you mean 'answer'",
        ),
        ({"question": "Who?", "answer": "x", "answer_type": "colour"}, "'answer_type' must be one of number"),
        ({"question": "Who?", "answer": None, "valid_until": "soon"}, "'valid_until' must be a date"),
        (
            {"question": "Who?", "answer": "x", "dataset": "日本"},
            "a relation needs a name with ASCII letters",
        ),
    ],
)
def test_a_broken_question(row: object, message: str, read_text: Read) -> None:
    import re

    for name, text in (("q.jsonl", lines("", row)), ("q.json", "[\n" + json.dumps(row) + "]")):
        (error,) = read_text("qa", name, text).errors
        assert re.search(rf"{name}:2: .*{message}", error)
