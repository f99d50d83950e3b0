"""Readers of PopQA, NQ-open, TriviaQA, SimpleQA, and question files of other makers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers import read_own_facts
from tests.facts.readers.conftest import Read, lines


def test_nq_open(read_text: Read) -> None:
    result = read_text(
        "nq-open",
        "n.jsonl",
        lines(
            {
                "question": "who baked  the first\u00a0bun ",
                "answer": ["Ann\n\nLee", "A. Lee", "a. lee", ""],
            },
            {
                "question": "how many buns",
                "answer": [12, 12.0],
                "def_correct_predictions": ["a dozen"],
            },
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


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"question": "who", "answer": []},
            "'answers' must hold at least one answer, found none",
        ),
        (
            {"question": "", "answer": ["x"]},
            "'question' must be text or a number, found ''",
        ),
        (
            {"question": "who", "answer": [{}]},
            "'answers' must be text or a number, found an empty mapping",
        ),
    ],
)
def test_a_broken_line_of_nq_open(
    row: object, message: str, read_text: Read, tmp_path: Path
) -> None:
    (error,) = read_text("nq-open", "n.jsonl", lines("", row)).errors
    assert error.startswith(f"{tmp_path / 'n.jsonl'}:2: ")
    assert message in error


def trivia(number: int, **answer: Any) -> dict[str, Any]:
    return {
        "Question": f"Q{number}?",
        "QuestionId": f"tc_{number}",
        "Answer": answer,
        "SearchResults": [{}],
    }


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
        trivia(4, Value="<unk>", Aliases=[]),
    ]
    result = read_text(
        "triviaqa",
        "t.json",
        json.dumps({"Data": data, "Domain": "Web", "Version": 1.0}, indent=1),
    )
    assert [(f.id, f.object, f.aliases, f.answer_type) for f in result.facts] == [
        ("tc_1", "Moss Rd", ("Moss Road", "Mossy", "the moss"), ""),
        ("tc_2", "1931", (), "time"),
    ]
    assert len(result.errors) == 2
    assert all("'answers' must hold at least one" in error for error in result.errors)
    text = (tmp_path / "t.json").read_text().splitlines()
    assert [text[row.line - 1] for row in result.rows] == ["  {"] * 4


def test_predictions_are_no_questions(read_text: Read) -> None:
    with pytest.raises(SuiteError, match=r"t.json: no facts found; allowed: TriviaQA"):
        read_text("triviaqa", "t.json", '{"tc_1": "Moss"}')


HUB = {
    "question": "Which river?",
    "question_id": "tc_1",
    "search_results": {"title": []},
    "answer": {
        "aliases": ["The Ash", "River Ash"],
        "normalized_aliases": ["ash", "river ash"],
        "type": "WikipediaEntity",
        "value": "Ash",
    },
}
SQUAD = {"id": "s1", "context": "...", "question": "Which river?"}
ASH = ("Ash", ("The Ash", "River Ash"))


@pytest.mark.parametrize(
    ("form", "row", "found"),
    [
        ("triviaqa", HUB, ("tc_1", *ASH)),
        ("qa", HUB, ("tc_1", *ASH)),
        (
            "qa",
            {
                "id": "k1",
                "input": "Which river?",
                "output": [
                    {"answer": "Ash", "provenance": []},
                    {"provenance": [{"wikipedia_id": "1"}]},
                    {"answer": "The Ash"},
                    {"answer": "River Ash"},
                    {"answer": ""},
                ],
            },
            ("k1", *ASH),
        ),
        (
            "qa",
            {**SQUAD, "answers": {"text": ["Ash", *ASH[1]], "answer_start": [1, 2, 3]}},
            ("s1", *ASH),
        ),
        (
            "qa",
            {**SQUAD, "answers": {"text": [], "answer_start": []}},
            ("s1", None, ()),
        ),
        (
            "simpleqa",
            {
                "problem": "Which river?",
                "answer": "Ash",
                "original_index": 4,
                "answer_type": "Place",
            },
            ("4", "Ash", ()),
        ),
        (
            "popqa",
            {
                "id": 5,
                "subj": "x",
                "prop": "river",
                "obj": "Ash",
                "question": "Which river?",
                "s_pop": 3,
                "possible_answers": '["Ash"]',
            },
            ("5", "Ash", ()),
        ),
    ],
)
def test_the_forms_of_the_hub(
    form: str, row: dict[str, Any], found: object, tmp_path: Path, read_text: Read
) -> None:
    viewer = {
        "features": [{"feature_idx": 0, "name": "question", "type": {}}],
        "rows": [{"row_idx": 0, "row": row, "truncated_cells": ["context"]}],
        "num_rows_total": 1,
    }
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "q.jsonl").write_text(lines(row))
    duckdb.sql(f"COPY (FROM '{tmp_path}/q.jsonl') TO '{tmp_path}/q.parquet'")
    for name, data in (
        ("q.jsonl", lines(row)),
        ("q.json", json.dumps([row])),
        ("v.json", json.dumps(viewer)),
        ("q.parquet", (tmp_path / "q.parquet").read_bytes()),
    ):
        result = read_text(form, name, data)
        assert result.errors == []
        assert [(f.id, f.object, f.aliases) for f in result.facts] == [found]
        assert result.facts[0].question == "Which river?"


def test_articles_of_squad(read_text: Read) -> None:
    asked = [
        {
            **SQUAD,
            "answers": [{"text": "Ash", "answer_start": 1}],
            "is_impossible": False,
        },
        {
            **SQUAD,
            "id": "s2",
            "question": "Which lake?",
            "answers": [],
            "plausible_answers": [{"text": "Elm", "answer_start": 9}],
            "is_impossible": True,
        },
    ]
    article = {"title": "Ash", "paragraphs": [{"context": "...", "qas": asked}]}
    data = json.dumps(
        {"version": "v2.0", "data": [article, {"paragraphs": [{}]}]}, indent=1
    )
    result = read_text("qa", "dev-v2.0.json", data)
    assert [(f.id, f.object) for f in result.facts] == [("s1", "Ash"), ("s2", None)]
    (error,) = result.errors
    assert "no question: 'qas'; a question file has" in error


def test_a_cell_that_the_viewer_cut_short_is_no_answer(read_text: Read) -> None:
    row = {"row_idx": 0, "row": {**HUB, "answer": "{"}, "truncated_cells": ["answer"]}
    (error,) = read_text("qa", "v.json", json.dumps({"rows": [row]})).errors
    assert "v.json:1: no question: the viewer cut answer short" in error


def test_questions_without_an_answer(read_text: Read) -> None:
    rows: list[dict[str, Any]] = [
        {
            "question": "A?",
            "answer": None,
            "answer_type": "Date",
            "valid_until": "2031-01-01",
        },
        {"question": "B?", "answers": [], "id": 9},
        {"question": "C?"},
        {"question": "D?", "answer": "unsure"},
        {"question": "E?", "answer": 0},
    ]
    facts = read_text("qa", "q.jsonl", lines(*rows)).facts
    assert [fact.object for fact in facts] == [None, None, None, None, "0"]
    assert (facts[0].answer_type, facts[0].valid_until, facts[1].id) == (
        "time",
        "2031-01-01",
        "9",
    )
    assert {fact.dataset for fact in facts} == {"qa"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"q": "Who?", "answer": "x"},
            "no question; found: q, answer; allowed: one of question, query",
        ),
        (
            {"question": "Who?", "anser": "x"},
            "unknown key 'anser'; answers stand under one of .*did you mean 'answer'",
        ),
        (
            {"question": "Who?", "answer": "x", "answer_type": "colour"},
            "'answer_type' must be one of number",
        ),
        (
            {"question": "Who?", "answer": None, "valid_until": "soon"},
            "'valid_until' must be a date",
        ),
        (
            {"question": "Who?", "answer": "x", "dataset": "日本"},
            "a name needs ASCII letters or digits",
        ),
    ],
)
def test_a_broken_question(row: object, message: str, read_text: Read) -> None:
    import re

    for name, text in (
        ("q.jsonl", lines("", row)),
        ("q.json", "[\n" + json.dumps(row) + "]"),
    ):
        (error,) = read_text("qa", name, text).errors
        assert re.search(rf"{name}:2: .*{message}", error)


COLUMNS = "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n"


RENAMED = {
    "input": "Who made Ash?",
    "output": '["Li", "li", "Lee"]',
    "id": 5,
    "s_pop": 41,
    "o_pop": -2,
}


def test_renamed_json(read_text: Read) -> None:
    text = json.dumps({"name": "popqa", "dev": [RENAMED], "test": []}, indent=4)
    result = read_text("popqa", "p.json", text)
    (fact,) = result.facts
    assert (fact.id, fact.relation, fact.subject) == ("5", "popqa", "Who made Ash?")
    assert (fact.object, fact.aliases, fact.popularity) == ("Li", ("Lee",), 41.0)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "7\ta\tb\tc\tmany\t9\tQ?\t[]\n",
            "'popularity' must be a number, found 'many'",
        ),
        ("7\ta\tb\tc\t1\t9\tQ?\t[a]\n", "not JSON: Expecting value"),
        ("7\ta\tb\t\t1\t9\tQ?\t[]\n", "the key 'obj' is missing"),
        ("7\ta\tb\tc\n", "found 4 cells, the header has 8"),
    ],
)
def test_a_broken_row_says_where(
    row: str, message: str, read_text: Read, tmp_path: Path
) -> None:
    (error,) = read_text("popqa", "p.tsv", COLUMNS + row).errors
    assert error.startswith(f"{tmp_path / 'p.tsv'}:2: ")
    assert message in error


PLAIN = "metadata,problem,answer\n"
VERIFIED = "original_index,problem,answer,topic,answer_type,multi_step,requires_reasoning,urls\n"


def verified(index: int, problem: str, answer: str, kind: str) -> str:
    return f'{index},{problem},"{answer}",Geography,{kind},No,No,"https://a.example,https://b.example"\n'


def test_the_table_of_simpleqa(read_text: Read) -> None:
    about = "\"{'topic': 'Art', 'answer_type': 'Person', 'urls': ['https://a.example/O\\'Neill', 'https://b']}\""
    text = (
        PLAIN
        + f"{about},Who painted the Vale mural?,Mira Holt\n"
        + ",Who made it?,Jo\n"
    )
    result = read_text("simpleqa", "simple_qa_test_set.csv", text)
    assert result.errors == []
    assert [(f.object, f.question, f.answer_type, f.dataset) for f in result.facts] == [
        ("Mira Holt", "Who painted the Vale mural?", "person", "simpleqa"),
        ("Jo", "Who made it?", "", "simpleqa"),
    ]
    assert result.facts[0].subject == result.facts[0].question
    assert result.facts[0].id.startswith("simpleqa:")
    assert (result.relation.id, result.relation.label, result.relation.frames) == (
        "simpleqa",
        "SimpleQA",
        (),
    )


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        ("5 feet 4 inches", "5 feet 3 inches and 5 feet 5 inches"),
        ("3:45", "3:40 and 3:50"),
    ],
)
def test_ends_of_several_numbers_are_no_range(
    told: str, ends: str, read_text: Read
) -> None:
    answer = f"{told} (acceptable range: anything between {ends})"
    (fact,) = read_text(
        "simpleqa", "q.csv", VERIFIED + verified(1, "How much?", answer, "Number")
    ).facts
    assert (fact.object, fact.answer_range) == (told, None)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            verified(
                1, "Q?", "5 (acceptable range: anything between few and many)", "Number"
            ),
            "a range must be of two numbers",
        ),
        (
            verified(
                1, "Q?", "5 (acceptable range: anything between 6 and 4)", "Number"
            ),
            "must begin with its lower end",
        ),
        (
            verified(1, "Q?", "(acceptable range: anything between 4 and 6)", "Number"),
            "'answer' must say more",
        ),
        (
            verified(1, "Q?", "5", "Colour"),
            "'answer_type' must be one of number, person, time, location, other",
        ),
        ("1,,5,Art,Number,No,No,u\n", "the key 'problem' is missing"),
        ("1,Q?,,Art,Number,No,No,u\n", "the key 'answer' is missing"),
    ],
)
def test_a_row_that_cannot_be_read_is_an_error(
    row: str, message: str, read_text: Read
) -> None:
    result = read_text("simpleqa", "q.csv", VERIFIED + row)
    (error,) = result.errors
    assert "q.csv:2: " in error
    assert message in error


def test_another_table_is_refused(read_text: Read) -> None:
    with pytest.raises(
        SuiteError,
        match=r"not SimpleQA's header: the key 'problem' is missing; found: question",
    ):
        read_text("simpleqa", "q.csv", "question,answer\nWho?,Jo\n")


TABLE = (
    "question,answer,question_2,group,language\n"
    "Capital of Peru?,Lima|Ciudad de los Reyes,Which city governs Peru?,South America,\n"
    '"Hauptstadt, von Peru?",Lima,,,de\n'
)


@pytest.mark.parametrize(
    "saved",
    [
        TABLE.encode(),
        # As spreadsheets save it: BOM, semicolons, CRLF, and rows that were cleared.
        TABLE.replace(",", ";")
        .replace("; von", ", von")
        .replace("\n", "\r\n")
        .encode("utf-8-sig")
        + b";;;;\r\n",
        TABLE.replace(",", "\t").replace("\t von", ", von").encode(),
    ],
    ids=["commas", "semicolons", "tabs"],
)
def test_a_table_of_questions(read_text: Read, saved: bytes) -> None:
    result = read_text("questions", "q.csv", saved)
    assert not result.errors
    first, second = result.facts
    assert (first.question, first.object) == ("Capital of Peru?", "Lima")
    assert first.aliases == ("Ciudad de los Reyes",)
    assert first.wordings == ("Which city governs Peru?",)
    assert (first.group, first.language) == ("South America", "")
    assert second.question == "Hauptstadt, von Peru?"
    assert (second.group, second.language, second.wordings) == ("", "de", ())


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("Where?,", "'answer' must hold at least one answer, found none"),
        ("Where?,|", "'answer' must hold at least one answer, found none"),
        (",Lima", "'question' must be text or a number, found nothing"),
        ("who?,Ann", "the question stands twice, first on line 2; .* in one cell"),
    ],
)
def test_a_broken_row_of_a_table_of_questions(
    read_text: Read, row: str, message: str
) -> None:
    (error,) = read_text(
        "questions", "q.csv", f"question,answer\nWho?,Ann\n{row}\n"
    ).errors
    assert re.search(f"q.csv:3: {message}", error)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "question,gruop,answer",
            "q.csv:1: unknown column 'gruop'.*did you mean 'group'",
        ),
        ("question,group", "q.csv:1: .*'answer' is missing; found: question, group"),
    ],
)
def test_a_wrong_header_of_a_table_of_questions(
    tmp_path: Path, header: str, message: str
) -> None:
    path = tmp_path / "q.csv"
    path.write_text(f"{header}\nWho?,Ann\n")
    with pytest.raises(SuiteError, match=message):
        read_own_facts(path)
