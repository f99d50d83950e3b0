from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import Read


def test_templates_of_one_name_are_two_relations(read_text: Read) -> None:
    rows = [
        ["a", "<http://one.org/name>", "Question a?", "x"],
        ["b", "<http://two.org/name>", "Question b?", "y"],
        ["c", 3, "Question c?", "z"],
    ]
    result = read_text("head-to-tail", "h.json", json.dumps({"head": rows}))
    assert [fact.relation for fact in result.facts] == [
        "name",
        "two.org_name",
        "template_3",
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            [1, 2, 3],
            "a row must be [entity, template, question, answer], found a list",
        ),
        ({"a": 1}, "found a mapping"),
        (["a", "t", "Q?", []], "'answer' must hold at least one answer, found none"),
        (["a", "t", "Q?", True], "'answer' must be text or a number, found true"),
        (["a", "t", None, "x"], "'question' must be text or a number, found nothing"),
        (
            [{"who": "a"}, "t", "Q?", "x"],
            "the entity must have one of name, title, label, key, id; found: who",
        ),
    ],
)
def test_a_broken_row_says_where(
    row: object, message: str, read_text: Read, tmp_path: Path
) -> None:
    text = '{"head": [\n' + json.dumps(row) + ',\n["a", "t", "Q?", "x"]]}'
    result = read_text("head-to-tail", "h.json", text)
    (error,) = result.errors
    assert error == f"{tmp_path / 'h.json'}:2: {error.split(':2: ')[1]}"
    assert message in error
    assert len(result.facts) == 1


def test_other_documents(read_text: Read, tmp_path: Path) -> None:
    with pytest.raises(
        SuiteError, match=r":1: unknown bucket 'heads'; allowed: .*did you mean 'head'"
    ):
        read_text("head-to-tail", "h.json", '{"heads": [[1, 2, 3, 4]]}')
    with pytest.raises(SuiteError, match=r":1: found a list; a Head-to-Tail file is"):
        read_text("head-to-tail", "h.json", "[[1, 2, 3, 4]]")
