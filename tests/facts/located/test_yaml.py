"""Numbers in YAML files that are not what they look like, and files that are larger than they look."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import read_document


def read(tmp_path: Path, text: str) -> object:
    path = tmp_path / "f.yaml"
    path.write_text(text, "utf-8")
    return read_document(path)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        ("1:30", "found '1:30': YAML reads it as a number to base 60"),
        ("190:20:30.15", "found '190:20:30.15': YAML reads it as a number to base 60"),
        ("010", "found '010': YAML reads it as a number to base 8"),
        ("-07_7", "found '-07_7': YAML reads it as a number to base 8"),
        ("9" * 5000, "999...': it has 5,000 characters, allowed: at most 60"),
        ("0x" + "f" * 5000, "fff...': it has 5,002 characters, allowed: at most 60"),
        ("1." + "0" * 5000, "it has 5,002 characters, allowed: at most 60"),
    ],
)
def test_a_number_that_is_not_what_it_looks_like_is_refused(tmp_path: Path, number: str, words: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read(tmp_path, f"a: 1\nb: {number}\n")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'f.yaml'}:2: not a plain number: found ")
    assert words in message
    assert message.endswith("; allowed: a decimal number, or quotes if text is meant")
    assert len(message) < len(str(tmp_path)) + 260


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("1_000", 1000),
        ("0x1f", 31),
        ("0b11", 3),
        ("0.5", 0.5),
        ("1e-3", 0.001),
    ],
)
def test_other_numbers_are_read(tmp_path: Path, number: str, value: float) -> None:
    result = read(tmp_path, f"b: {number}\n")
    assert result.value["b"].node.value == value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("!!bool 2suite", "'2suite' is no bool"),
        ("!!int ''", "'' is no int"),
        ("!!int x", "'x' (invalid literal"),
        ("!!float x", "'x' (could not convert"),
        ("!!timestamp x", "'x' is no timestamp"),
        ("2026-13-01", "'2026-13-01' (month must be in 1..12)"),
    ],
)
def test_a_value_that_is_not_of_its_tag_is_an_error(tmp_path: Path, value: str, words: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read(tmp_path, f"a: 1\nb: {value}\n")
    assert str(caught.value).startswith(f"{tmp_path / 'f.yaml'}:2: not a value: {words}")


def test_numbers_in_quotes_are_texts(tmp_path: Path) -> None:
    result = read(tmp_path, "b: '1:30'\nc: '007'\n")
    assert [entry.node.value for entry in result.value.values()] == ["1:30", "007"]  # type: ignore[attr-defined]
