"""Nodes of YAML files with their lines: the values allowed, and the errors on others."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Node, read_document

PATH = Path("f.yaml")


def node(value: Any) -> Node:
    return Node(path=PATH, line=3, value=value)


@pytest.mark.parametrize(
    ("value", "quotes"),
    [
        *((value, True) for value in (0, 1.5, True, datetime.date(2030, 1, 1))),
        *((value, False) for value in ("", " ", "a\nb", "a\u2028b", None, (), {})),
    ],
)
def test_what_is_no_text(value: Any, quotes: bool) -> None:
    wanted = "t must be text of one line, not blank and without NUL, found"
    with pytest.raises(SuiteError, match=wanted) as caught:
        node(value).text("t")
    assert ("put it in quotes if text is meant" in str(caught.value)) == quotes


@pytest.mark.parametrize(
    "value",
    [
        *(
            "20261101",
            "2026-11-1",
            "2026-02-30",
            "01.11.2026",
            "",
            " 2026-11-01",
            "2026-11-01T00:00:00",
        ),
        *(None, 2026, True, datetime.datetime(2026, 11, 1, 12)),
    ],
)
def test_what_is_no_day(value: Any) -> None:
    with pytest.raises(SuiteError, match="d must be a date such as 2026-11-01, found"):
        node(value).date("d")


@pytest.mark.parametrize("key", [False, True])
@pytest.mark.parametrize(
    "text", ["!!bool 2", "!!timestamp x", "!!int ''", "!!float ''"]
)
def test_a_tag_that_does_not_suit_its_text(
    text: str, key: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(f"a: 1\n{text}: b\n" if key else f"a: 1\nb: {text}\n", "utf-8")
    kind = text.removeprefix("!!").split(" ")[0]
    with pytest.raises(
        SuiteError, match=rf"t\.yaml:2: not a value: '.*' is no {kind}$"
    ):
        read_document(path)


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "f.yaml"
    path.write_text(text, "utf-8")
    return read_document(path)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1:30", "found '1:30'"),
        ("010", "found '010'"),
        ("9" * 5000, "found '9999"),
    ],
)
def test_a_number_that_is_not_what_it_looks_like_is_refused(
    tmp_path: Path, number: str, words: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        read(tmp_path, f"a: 1\nb: {number}\n")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'f.yaml'}:2: not a plain number: found ")
    assert words in message
    assert message.endswith(
        "; allowed: a decimal number of up to 60 characters, or quotes if text is meant"
    )
    assert len(message) < len(str(tmp_path)) + 260
