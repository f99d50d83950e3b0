from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from tests.facts.readers.conftest import Read, lines

COLUMNS = "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n"


def cell(*texts: str) -> str:
    return '"' + json.dumps(list(texts)).replace('"', '""') + '"'


def test_the_table(read_text: Read) -> None:
    text = (
        COLUMNS
        + "7\tMira Holt\tplace of birth\tUlm\t142\t9\tWhere was Mira Holt born?\t"
        + f"{cell('Ulm', 'ULM', 'Ulm/Donau')}\n"
        + f'8\t"The ""Red"" Fox"\tauthor\tJo\t-2\t-2\tWho wrote it?\t{cell()}\n'
    )
    result = read_text("popqa", "popQA.tsv", text)
    assert [(f.id, f.relation, f.subject, f.object, f.aliases, f.popularity) for f in result.facts] == [
        ("7", "place_of_birth", "Mira Holt", "Ulm", ("Ulm/Donau",), 142.0),
        ("8", "author", 'The "Red" Fox', "Jo", (), None),
    ]
    assert result.facts[0].question == "Where was Mira Holt born?"
    assert result.facts[0].dataset == "popqa"
    assert [(r.label, r.answer_type) for r in result.relations.values()] == [
        ("place of birth", "location"),
        ("author", "person"),
    ]


RENAMED = {"input": "Who made Ash?", "output": '["Li", "li", "Lee"]', "id": 5, "s_pop": 41, "o_pop": -2}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("p.json", json.dumps({"name": "popqa", "dev": [RENAMED], "test": []}, indent=4)),
        ("p.json", json.dumps([RENAMED])),
        ("p.jsonl", lines(RENAMED)),
        ("p.json", json.dumps([{**RENAMED, "output": ["Li", "Lee"]}])),
    ],
)
def test_renamed_json(name: str, text: str, read_text: Read) -> None:
    result = read_text("popqa", name, text)
    (fact,) = result.facts
    assert (fact.id, fact.relation, fact.subject) == ("5", "popqa", "Who made Ash?")
    assert (fact.object, fact.aliases, fact.popularity) == ("Li", ("Lee",), 41.0)


def test_dev_and_test_are_both_read(read_text: Read) -> None:
    other = {**RENAMED, "id": 6, "input": "Who made Oak?", "s_pop": -1}
    result = read_text("popqa", "p.json", json.dumps({"dev": [RENAMED], "test": [other]}))
    assert [(fact.id, fact.popularity) for fact in result.facts] == [("5", 41.0), ("6", None)]


def test_one_id_for_facts_that_differ(read_text: Read, tmp_path: Path) -> None:
    rows = [RENAMED, {**RENAMED, "input": "Who made Oak?"}, RENAMED]
    result = read_text("popqa", "p.jsonl", lines(*rows))
    assert result.errors == [
        f"{tmp_path / 'p.jsonl'}:2: id '5' stands twice, for facts that differ; allowed: an id for each fact"
    ]
    assert [(fact.id, fact.duplicate_of) for fact in result.facts] == [("5", ""), ("5#2", "5")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("7\ta\tb\tc\tmany\t9\tQ?\t[]\n", "'s_pop' must be a number, found 'many'"),
        ("7\ta\tb\tc\t1\t9\tQ?\t[a]\n", "not JSON: Expecting value"),
        ("7\ta\tb\tc\t1\t9\tQ?\tnot a list\n", "not JSON"),
        ("7\ta\tb\tc\t1\t9\tQ?\t7\n", "'possible_answers' must hold a JSON list, found 7"),
        ("7\ta\tb\t\t1\t9\tQ?\t[]\n", "the key 'obj' is missing"),
        ("7\ta\tb\tc\n", "found 4 cells, the header has 8"),
    ],
)
def test_a_broken_row_says_where(row: str, message: str, read_text: Read, tmp_path: Path) -> None:
    (error,) = read_text("popqa", "p.tsv", COLUMNS + row).errors
    assert error.startswith(f"{tmp_path / 'p.tsv'}:2: ")
    assert message in error


def test_another_table(read_text: Read) -> None:
    with pytest.raises(
        SuiteError, match=r":1: not PopQA's header: the key 'subj' is missing; found: id, who"
    ):
        read_text("popqa", "p.tsv", "id\twho\n")
    with pytest.raises(SuiteError, match=r":1: not JSON: found 'i'"):
        read_text("popqa", "p.json", "id\twho\n")
