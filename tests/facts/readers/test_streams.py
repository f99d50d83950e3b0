from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers import base
from pytest_kbrel.facts.readers.base import elements, table


def rows_of(path: Path, delimiter: str = ",") -> list[tuple[int, object]]:
    return [
        (n, str(row) if isinstance(row, SuiteError) else row)
        for n, row in table(path, delimiter)
    ]


CELLS = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1
).filter(str.strip)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    cells=st.lists(st.tuples(CELLS, CELLS), max_size=4),
    delimiter=st.sampled_from([",", "\t"]),
)
def test_it_reads_what_csv_writes(
    cells: list[tuple[str, str]], delimiter: str, tmp_path: Path
) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("a", "b"), *cells])
    path = tmp_path / "t"
    path.write_bytes(text.getvalue().encode())
    expected = [{"a": a, "b": b} for a, b in [("a", "b"), *cells]]
    assert [row for _, row in table(path, delimiter)] == expected


def test_lines_empty_cells_and_broken_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\n1,"x\ny"\n\n2,\n3\n4,"z"z\n6,w\n')
    assert rows_of(path) == [
        (1, {"a": "a", "b": "b"}),
        (2, {"a": "1", "b": "x\ny"}),
        (5, {"a": "2"}),
        (6, f"{path}:6: found 1 cells, the header has 2: a, b"),
        (7, f"{path}:7: not a row of the table: ',' expected after '\"'"),
        (8, {"a": "6", "b": "w"}),
    ]
    path.write_bytes(b"a,b\n1,2\n5,\xff\n")
    with pytest.raises(SuiteError, match=r"t\.csv:3: not UTF-8: found byte 0xff"):
        rows_of(path)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ":1: the file is empty"),
        ("a,a\n", ":1: found the columns 'a', 'a'; allowed: each column once"),
        ("a,\n", "found the columns 'a', ''"),
    ],
)
def test_headers(text: str, result: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(SuiteError, match=result):
        rows_of(path)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)


def members(document: Any) -> list[tuple[str, Any]]:
    arrays = document.items() if isinstance(document, dict) else [("", document)]
    return [
        (key, value)
        for key, array in arrays
        if isinstance(array, list)
        for value in array
    ]


@settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(
    document=st.lists(VALUES, max_size=4)
    | st.dictionaries(st.text('ab"\\é', max_size=3), VALUES, max_size=4),
    indent=st.sampled_from([None, 1]),
    ascii_only=st.booleans(),
)
def test_it_finds_what_json_finds(
    document: Any, indent: int | None, ascii_only: bool, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(
        json.dumps(document, indent=indent, ensure_ascii=ascii_only).encode()
    )
    result = [(key, json.loads(text)) for _, key, text in elements(path, "form")]
    assert result == [
        (json.dumps(k, ensure_ascii=ascii_only)[1:-1], v) for k, v in members(document)
    ]


@pytest.mark.parametrize(
    ("text", "line", "result"),
    [
        ("", 1, "the file is empty"),
        ("5", 1, "found '5'"),
        ("[1,\n", 2, "Expecting value"),
        ("[1\n2]", 2, "found '2'; allowed: ',' or ']'"),
        ('[\n{"a": 1', 2, "Expecting ',' delimiter"),
        ('["a', 1, "Unterminated string"),
        ("[1", 1, "found the end of the file; allowed: ',' or ']'"),
        ("[1]\n]", 2, "found ']' behind the end"),
        ('{"a" 1}', 1, "no ':' after the key 'a'"),
        ("{a: 1}", 1, "a key in quotes is missing"),
        ('{"a": 1', 1, "found the end of the file; allowed: ',' or '}'"),
        ("[" * 100_000, 1, "nested more than 100 levels deep"),
    ],
)
def test_a_broken_document_says_where(
    text: str, line: int, result: str, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(SuiteError) as caught:
        list(elements(path, "the form"))
    assert str(caught.value).startswith(f"{path}:{line}: not JSON: {result}")
    assert str(caught.value).endswith("; the form")


def test_what_is_no_text_or_too_large_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b'[1,\n2,\n"\xff"]')
    with pytest.raises(SuiteError, match=r"x\.json:3: not UTF-8: found byte 0xff"):
        list(elements(path, "the form"))
    monkeypatch.setattr(base, "_LARGEST", 1024)
    path.write_text("[" + "1, " * 500 + "1]")
    with pytest.raises(SuiteError, match="allowed: at most 1 KiB"):
        list(elements(path, "the form"))
