"""The tables of the readers: names of keys, of relations and of answer types, each stated by hand."""

from __future__ import annotations

import json

import pytest

from tests.facts.readers.conftest import Read, lines


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
