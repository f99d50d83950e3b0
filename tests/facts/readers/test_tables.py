"""The tables of the readers: names of keys, of relations and of answer types, each stated by hand."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.facts.readers import FORMATS
from pytest_kbrel.facts.readers.base import (
    popularity,
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
        *("parquet", "simpleqa", "questions"),
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


@pytest.mark.parametrize("column", ["id", "question"])
def test_a_row_of_popqa_needs_most_of_its_cells(column: str, read_text: Read) -> None:
    def text(without: str) -> str:
        row = [{**ROW, without: ""}.get(name, "[]") for name in COLUMNS]
        return "\t".join(COLUMNS) + "\n" + "\t".join(row) + "\n"

    (error,) = read_text("popqa", "p.tsv", text(column)).errors
    assert f"the key '{column}' is missing" in error
    assert read_text("popqa", "p.tsv", text("s_pop")).facts[0].popularity is None


@pytest.mark.parametrize(
    "suffix",
    [
        "jsonl",
        "json",
    ],
)
def test_a_question_file_of_any_suffix(suffix: str, read_text: Read) -> None:
    row = {"question": "Who?", "answers": ["Li"]}
    assert len(read_text("qa", f"q.{suffix}", lines(row, row)).facts) == 2
    assert len(read_text("qa", f"q.{suffix}", "\ufeff" + lines(row)).facts) == 1
    if suffix in ("json", "txt"):
        assert (
            len(read_text("qa", f"q.{suffix}", json.dumps({"data": [row, row]})).facts)
            == 2
        )


@pytest.mark.parametrize(
    ("entity", "domain"),
    [
        ("<http://dbpedia.org/resource/Ash>", "open"),
        ("Ash", "open"),
        (["tt00123", "x"], "movie"),
        ({"name": "tt00123"}, "academics"),
    ],
)
def test_the_domain_of_an_entity(entity: object, domain: str, read_text: Read) -> None:
    result = read_text(
        "head-to-tail", "h.json", json.dumps({"head": [[entity, "t", "Who?", "x"]]})
    )
    assert result.relation.domain == domain


@pytest.mark.parametrize("value", [True, "many", [], {}, 10**400])
def test_what_is_no_popularity(value: object) -> None:
    with pytest.raises(ValueError, match="'p' must be a number, found"):
        popularity("p", value)
