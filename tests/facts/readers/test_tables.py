"""The tables of the readers: names of keys, of relations and of answer types, each stated by hand."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.facts.readers.base import (
    popularity,
)
from tests.facts.readers.conftest import Read, lines

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


@pytest.mark.parametrize("value", [True, "many", [], {}, 10**400])
def test_what_is_no_popularity(value: object) -> None:
    with pytest.raises(ValueError, match="'p' must be a number, found"):
        popularity("p", value)
