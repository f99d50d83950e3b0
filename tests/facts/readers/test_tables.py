"""The tables of the readers: names of keys, of relations and of answer types, each stated by hand."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.facts.readers import FORMATS
from pytest_kbrel.facts.readers.base import (
    answers,
    clean,
    popularity,
    relation_id,
)
from pytest_kbrel.facts.readers.wikidata import PROPERTIES
from tests.facts.readers.conftest import Read, lines

WIKIDATA = {
    "person": "P6 P26 P50 P57 P58 P86 P162 P170 P175",
    "location": "P17 P19 P20 P27 P30 P36 P47 P131 P159 P190 P276 P495 P530 P740 P937 P1001 P1376",
    "other": "P31 P37 P39 P101 P103 P106 P108 P127 P136 P138 P140 P176 P178 P264 P279 P361 P364 P407 P413 "
    "P449 P463 P527 P1303 P1412",
}


def test_the_formats_there_are() -> None:
    assert {name for name, form in FORMATS.items() if form.folders} == {
        "fktc",
        "pararel",
        "lama",
    }
    assert {name for name, form in FORMATS.items() if form.own} == {
        "jsonl",
        "csv",
        "parquet",
    }
    assert set(FORMATS) == {
        *(
            "fktc",
            "head-to-tail",
            "popqa",
            "pararel",
            "lama",
            "nq-open",
            "triviaqa",
            "qa",
            "jsonl",
            "csv",
        ),
        *("parquet", "simpleqa"),
    }


@pytest.mark.parametrize("kind", WIKIDATA)
def test_the_answer_types_of_wikidata_properties(kind: str) -> None:
    assert {name for name, (_, result) in PROPERTIES.items() if result == kind} == set(
        WIKIDATA[kind].split()
    )


COLUMNS = ["id", "subj", "prop", "obj", "s_pop", "question", "possible_answers"]
ROW = {
    "id": "7",
    "subj": "Ann",
    "prop": "author",
    "obj": "Li",
    "s_pop": "0",
    "question": "Who?",
}


@pytest.mark.parametrize("column", COLUMNS)
def test_a_table_of_popqa_needs_its_columns(column: str, read_text: Read) -> None:
    header = "\t".join(name for name in COLUMNS if name != column)
    with pytest.raises(
        Exception, match=f"not PopQA's header: the key '{column}' is missing"
    ):
        read_text("popqa", "p.tsv", header + "\n")


@pytest.mark.parametrize("column", ["id", "subj", "prop", "obj", "question"])
def test_a_row_of_popqa_needs_most_of_its_cells(column: str, read_text: Read) -> None:
    def text(without: str) -> str:
        row = [{**ROW, without: ""}.get(name, "[]") for name in COLUMNS]
        return "\t".join(COLUMNS) + "\n" + "\t".join(row) + "\n"

    (error,) = read_text("popqa", "p.tsv", text(column)).errors
    assert f"the key '{column}' is missing" in error
    assert read_text("popqa", "p.tsv", text("s_pop")).facts[0].popularity is None


@pytest.mark.parametrize("key", ["input", "output"])
def test_a_question_of_popqa_in_json_needs_both_keys(key: str, read_text: Read) -> None:
    row = {"input": "Who?", "output": ["Li"], "s_pop": 0}
    (error,) = read_text(
        "popqa", "p.jsonl", lines({k: v for k, v in row.items() if k != key})
    ).errors
    assert f"the key '{key}' is missing" in error
    (fact,) = read_text("popqa", "p.jsonl", lines(row)).facts
    assert fact.popularity == 0.0
    (error,) = read_text("popqa", "p.jsonl", lines({**row, "output": []})).errors
    assert "'output' must hold at least one answer, found none" in error


@pytest.mark.parametrize("suffix", ["jsonl", "ndjson", "JSONL", "json", "txt"])
def test_a_question_file_of_any_suffix(suffix: str, read_text: Read) -> None:
    row = {"question": "Who?", "answers": ["Li"]}
    assert len(read_text("qa", f"q.{suffix}", lines(row, row)).facts) == 2
    assert len(read_text("qa", f"q.{suffix}", "\ufeff" + lines(row)).facts) == 1
    if suffix in ("json", "txt"):
        assert (
            len(read_text("qa", f"q.{suffix}", json.dumps({"data": [row, row]})).facts)
            == 2
        )


@pytest.mark.parametrize("key", ["Question", "QuestionId"])
def test_a_question_of_triviaqa_needs_its_keys(key: str, read_text: Read) -> None:
    row = {"Question": "Who?", "QuestionId": "t", "Answer": {"Value": "x"}}
    del row[key]
    (error,) = read_text("triviaqa", "t.json", json.dumps({"Data": [row]})).errors
    assert f"the key '{key}' is missing" in error


@pytest.mark.parametrize("key", ["subject", "object", "taxonomy"])
def test_a_fact_of_fktc_needs_its_keys(key: str, read_text: Read) -> None:
    row = {"subject": "a", "object": "b", "taxonomy": ["c"]}
    (error,) = read_text(
        "fktc",
        "P1.json",
        lines({"relations": ["[X]?"]}, {k: v for k, v in row.items() if k != key}),
    ).errors
    assert f"the key '{key}' is missing" in error


HEADS = ["name", "title", "label", "key", "id"]


@pytest.mark.parametrize("place", range(5))
def test_an_entity_is_named_by_the_first_of_its_names(
    place: int, read_text: Read
) -> None:
    entity = {
        name: f"E{number}" for number, name in enumerate(HEADS) if number >= place
    }
    row = [dict(reversed(entity.items())), "t", "Who?", "x"]
    (fact,) = read_text("head-to-tail", "h.json", json.dumps({"head": [row]})).facts
    assert fact.subject == f"E{place}"
    # A name that is no text is passed over.
    if place < 4:
        row[0] = {**entity, HEADS[place]: ["x"]}
        (fact,) = read_text("head-to-tail", "h.json", json.dumps({"head": [row]})).facts
        assert fact.subject == f"E{place + 1}"


@pytest.mark.parametrize(
    ("entity", "domain"),
    [
        ("<http://dbpedia.org/resource/Ash>", "open"),
        ("Ash", "open"),
        ("tt00123", "movie"),
        ("nm00123", "movie"),
        ("tt0012", "open"),
        ("https://imdb.com/x", "movie"),
        ("https://goodreads.com/x", "book"),
        (["tt00123", "x"], "movie"),
        (["x", "tt00123"], "open"),
        ({"name": "tt00123"}, "academics"),
    ],
)
def test_the_domain_of_an_entity(entity: object, domain: str, read_text: Read) -> None:
    result = read_text(
        "head-to-tail", "h.json", json.dumps({"head": [[entity, "t", "Who?", "x"]]})
    )
    assert result.relation.domain == domain


@pytest.mark.parametrize("value", [True, False, "many", [], {}, 10**400])
def test_what_is_no_popularity(value: object) -> None:
    with pytest.raises(ValueError, match="'p' must be a number, found"):
        popularity("p", value)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a  b\n c", "a b c"), (0, "0"), (7, "7"), (7.0, "7"), (7.5, "7.5"), (" x ", "x")],
)
def test_a_text_or_a_number_becomes_one_line(value: object, text: str) -> None:
    assert clean("x", value) == text


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, []),
        ("", []),
        ([], []),
        (0, ["0"]),
        ("x", ["x"]),
        (["x", "X", " x ", "y"], ["x", "y"]),
        (["", " ", None, "x"], ["x"]),
        ('["x", "y"]', ["x", "y"]),
        (' ["x"]', ["x"]),
        (("x", 7), ["x", "7"]),
    ],
)
def test_the_answers_of_a_source(value: object, result: list[str]) -> None:
    assert answers("x", value) == result


@pytest.mark.parametrize("name", ["", "日本", "_.", "!"])
def test_a_relation_without_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="a relation needs a name"):
        relation_id(name)
