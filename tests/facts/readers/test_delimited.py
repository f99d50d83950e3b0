from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.readers.streams import table


def rows_of(path: Path, delimiter: str = ",") -> list[tuple[int, object]]:
    return [(n, str(row) if isinstance(row, SuiteError) else row) for n, row in table(path, delimiter)]


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), min_size=1).filter(str.strip)


@settings(
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(cells=st.lists(st.tuples(CELLS, CELLS), max_size=4), delimiter=st.sampled_from([",", "\t"]))
def test_it_reads_what_csv_writes(cells: list[tuple[str, str]], delimiter: str, tmp_path: Path) -> None:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([("a", "b"), *cells])
    path = tmp_path / "t"
    path.write_bytes(text.getvalue().encode())
    expected = [{"a": a, "b": b} for a, b in [("a", "b"), *cells]]
    assert [row for _, row in table(path, delimiter)] == expected


def test_lines_empty_cells_and_broken_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfa,b\n1,"x\ny"\n\n2,\n3\n4,"z"z\n5,\xff\n6,w\n')
    assert rows_of(path) == [
        (1, {"a": "a", "b": "b"}),
        (2, {"a": "1", "b": "x\ny"}),
        (5, {"a": "2"}),
        (6, f"{path}:6: found 1 cells, the header has 2: a, b"),
        (7, f"{path}:7: not a row of the table: ',' expected after '\"'"),
        (8, f"{path}:8: not UTF-8: found byte 0xff"),
        (9, {"a": "6", "b": "w"}),
    ]


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("", ":1: the file is empty"),
        ("a,a\n", ":1: column 'a' stands twice"),
        ("a,\n", "a column has no name"),
    ],
)
def test_headers(text: str, result: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(SuiteError, match=result):
        rows_of(path)


def test_long_cells(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "x" * 200_000 + "\n")
    assert len(rows_of(path)[1][1]["a"]) == 200_000  # type: ignore[index]
