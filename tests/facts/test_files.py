from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.files import (
    as_fact,
    fact_line,
    read_shots,
)
from pytest_kbrel.facts.readers import read_own_facts
from pytest_kbrel.records import Fact, Former
from pytest_kbrel.serialization import to_wire

GOOD = b'{"relation": "P36", "subject": "Peru", "object": "Lima"}\n'


def write(folder: Path, data: bytes) -> Path:
    path = folder / "facts.jsonl"
    path.write_bytes(data)
    return path


def line(**changes: object) -> bytes:
    return json.dumps(
        {"relation": "P36", "subject": "Mali", "object": "Bamako", **changes}
    ).encode()


def test_all_keys_and_defaults(tmp_path: Path) -> None:
    full = Fact(
        id="x",
        relation="P36",
        subject="Côte d’Ivoire",
        object="Yamoussoukro",
        aliases=("Yakro",),
        popularity=3.0,
        negatives=("Abidjan",),
        question="Where?",
        source="own",
        licence="CC0-1.0",
        answer_type="location",
        dataset="own",
        bucket="tail",
        duplicate_of="P36:Peru",
        valid_from="1983-03-21",
        valid_until="2028-07-14",
        former=(
            Former(object="Bingerville", valid_until="1933-08-31", aliases=("B",)),
            Former(object="Abidjan", valid_from="1933-09-01", valid_until="1983-03-20"),
        ),
    )
    assert as_fact(json.loads(fact_line(full))) == full
    data = b"\xef\xbb\xbf" + GOOD + b"\r\n  \n" + json.dumps(to_wire(full)).encode()
    path = write(tmp_path, data)
    first = Fact(id="P36:Peru", relation="P36", subject="Peru", object="Lima")
    assert read_own_facts(path) == (first, full)


@pytest.mark.parametrize(
    ("bad", "parts"),
    [
        (b'{"relation": "P36",', ("not JSON", "column", "one JSON object a line")),
        (b"[1, 2]", ("not a JSON object: found a list", "one JSON object a line")),
        (b'"text"', ("not a JSON object: found 'text'",)),
        (
            line(answer_type="colour"),
            ("'answer_type' must be one of number", "found 'colour'"),
        ),
        (line(bucket=1), ("'bucket' must be one of head, torso, tail", "found 1")),
        (
            line(valid_until="2028-7-1"),
            ("'valid_until' must be a date", "found '2028-7-1'"),
        ),
        (line(former=["x"]), ("each of 'former' must be an object", "found 'x'")),
        (line(former=[{"object": "x"}]), ("'valid_until' is missing",)),
        (
            line(
                former=[
                    {
                        "object": "x",
                        "valid_from": "2001-01-01",
                        "valid_until": "2000-12-31",
                    }
                ]
            ),
            ("not before 'valid_from'", "found '2000-12-31'"),
        ),
        (b"\xff\xfe", ("not UTF-8: found byte 0xff", "one JSON object a line")),
        (b"[" * 100_000, ("nested more than 100 levels deep",)),
        (
            b'{"relation": "P36", "object": "x"}',
            ("'subject' is missing", "found: relation, object", "needed"),
        ),
        (
            line(alias=["x"]),
            ("unknown key 'alias'", "allowed: id, relation", "did you mean 'aliases'?"),
        ),
        (line(object=None), ("'object' must be text of one line", "found nothing")),
        (line(object=" x"), ("without NUL or space around it", "found ' x'")),
        (line(subject="a\nb"), ("'subject' must be text of one line", "found 'a\\nb'")),
        (line(aliases="x"), ("'aliases' must be a list of texts", "found 'x'")),
        (line(aliases=["x", 1]), ("each of 'aliases' must be text", "found 1")),
        (
            line(popularity="high"),
            ("'popularity' must be a number from 0 to 1e+300", "found 'high'"),
        ),
        (line(popularity=True), ("'popularity' must be a number", "found true")),
        (line(popularity=-1), ("from 0 to 1e+300", "found -1")),
        (line(popularity=float("nan")), ("found NaN", "allowed: finite numbers")),
        (
            line(popularity=10**400),
            ("; allowed: finite numbers",),
        ),
        (line(source=3), ("'source' must be text", "found 3")),
        (line(negatives=["bamako"]), ("must be wrong answers", "found 'bamako'")),
        (
            line(negatives=["x", "X"]),
            ("must differ from each other", "found 'x' twice"),
        ),
        (
            b'{"relation": "P36", "relation": "P37"}',
            ("key 'relation' stands twice", "allowed: each key once"),
        ),
        (line(subject="\ud800"), ("half a surrogate pair", "allowed: Unicode text")),
        (
            GOOD.strip(),
            ("id 'P36:Peru' stands twice", "facts.jsonl:1", "allowed: an 'id'"),
        ),
    ],
)
def test_a_broken_line_says_where_what_and_what_is_allowed(
    bad: bytes, parts: tuple[str, ...], tmp_path: Path
) -> None:
    path = write(tmp_path, GOOD + b"\n" + bad + b"\n")
    with pytest.raises(SuiteError) as caught:
        read_own_facts(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert caught.value.line == 3
    for part in parts:
        assert part in str(caught.value)


PUBLIC = "a public dataset in a format of its own needs that format's name.*'format'"


@pytest.mark.parametrize(
    ("data", "result"),
    [
        (
            b"id\tsubj\tprop\tobj\n1\tGeorge\toccupation\tpolitician\n",
            r"not JSON: .*found 'id\\tsubj",
        ),
        (
            b"[\n" + GOOD + b"]\n",
            r"not JSON: Expecting value in column 1, found '\['",
        ),
    ],
)
def test_a_foreign_file_is_told_the_format(
    data: bytes, result: str, tmp_path: Path
) -> None:
    with pytest.raises(
        SuiteError,
        match=rf':1: {result}.*; a facts file has one JSON object a line: {{"relation".*{PUBLIC}',
    ):
        read_own_facts(write(tmp_path, data))


def test_an_empty_file_and_no_file(tmp_path: Path) -> None:
    with pytest.raises(
        SuiteError, match=r"facts.jsonl: no facts found; allowed: own facts, JSON Lines"
    ):
        read_own_facts(write(tmp_path, b"\n \n"))
    with pytest.raises(SuiteError, match="cannot be read: No such file"):
        read_own_facts(tmp_path / "none.jsonl")


BARE = {"relation": "P36", "subject": "Mali", "object": "Bamako"}


def made(**changes: Any) -> Fact:
    return as_fact({**BARE, **changes})


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
        with pytest.raises(
            ValueError, match="'answer_range' must be the least and the greatest number"
        ):
            made(answer_range=wrong)
    with pytest.raises(ValueError, match=r"such as \[118, 122\], found \[2, 1\]"):
        made(answer_range=[2, 1])
    with pytest.raises(
        ValueError, match="'answer_range' is for questions with an answer"
    ):
        made(object=None, question="How many?", answer_range=[1, 2])


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "shots.jsonl"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, ("no examples found", '{"question"')),
        ("nonsense\n", 1, ("not JSON", "'nonsense'")),
        ("[1]\n", 1, ("not a JSON object", "found a list")),
        (
            '\n{"question": "Q?"}\n',
            2,
            ("the key 'answer' is missing", "found: question"),
        ),
        (
            '{"question": "Q?", "answr": "A"}\n',
            1,
            ("unknown key 'answr'", "did you mean 'answer'?"),
        ),
        (
            '{"question": "", "answer": "A"}\n',
            1,
            ("'question' must be text of one line", "found ''"),
        ),
        (
            '{"question": "Q?", "answer": 3}\n',
            1,
            ("'answer' must be text", "found 3"),
        ),
        (
            '{"question": "Q?", "answer": null, "valid_until": "2041"}\n',
            1,
            ("'valid_until' must be a date such as", "found '2041'"),
        ),
        (
            '{"question": "Q?", "answer": "A", "valid_until": "2041-01-01"}\n',
            1,
            ("'valid_until' is for examples without an answer",),
        ),
        (
            '{"question": "Q?", "answer": "A"}\n' * 2,
            2,
            ("stands twice", "the first is on line 1"),
        ),
    ],
)
def test_a_wrong_line_says_where_and_what(
    tmp_path: Path, text: str, line: int, words: tuple[str, ...]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SuiteError) as caught:
        read_shots(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert [word for word in words if word not in str(caught.value)] == []
