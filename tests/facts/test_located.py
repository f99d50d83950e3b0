"""Nodes of YAML files with their lines: the values allowed, and the errors on others."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.bounds import Bounds
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Entry, Node, describe, read_document, unknown

PATH = Path("f.yaml")


def node(value: Any) -> Node:
    return Node(path=PATH, line=3, value=value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "nothing"),
        (True, "true"),
        (False, "false"),
        ("", "''"),
        ("x" * 60, "'" + "x" * 60 + "'"),
        ("x" * 61, "'" + "x" * 57 + "...'"),
        ([], "an empty list"),
        ((), "an empty list"),
        ([0], "a list"),
        ({}, "an empty mapping"),
        ({"a": 1}, "a mapping"),
        (0, "0"),
        (1.5, "1.5"),
    ],
)
def test_what_was_found_is_said_in_few_words(value: Any, said: str) -> None:
    assert describe(value) == said


@pytest.mark.parametrize("value", [0, 1, 7, -3, 0.0, 0.5, -1e300])
def test_a_number(value: float) -> None:
    assert node(value).number("n") == value


@pytest.mark.parametrize(
    "value",
    [True, False, None, "1", "", float("inf"), float("-inf"), float("nan"), (), {}],
)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(SuiteError, match=r"f\.yaml:3: n must be a number, found"):
        node(value).number("n")


@pytest.mark.parametrize(("value", "least"), [(0, 0), (1, 1), (5, 1), (-1, -1), (9, 0)])
def test_a_whole_number_from_the_least_to_the_most(value: int, least: int) -> None:
    assert node(value).integer("n", Bounds(least, 9)) == value


@pytest.mark.parametrize(
    ("value", "least"),
    [(-1, 0), (0, 1), (10, 0), (1.0, 0), (True, 0), (False, 0), ("1", 0), (None, 0)],
)
def test_what_is_no_whole_number_from_the_least(value: Any, least: int) -> None:
    with pytest.raises(
        SuiteError, match=f"n must be a whole number from {least} to 9, found"
    ):
        node(value).integer("n", Bounds(least, 9))


@pytest.mark.parametrize("value", ["x", " x ", "0"])
def test_a_text(value: str) -> None:
    assert node(value).text("t") == value


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


def test_a_list_has_an_item() -> None:
    assert node((node(None),)).items("l") == (node(None),)
    for value in ((), "x", {}, None, 0):
        with pytest.raises(
            SuiteError, match="l must be a list of names with at least one item, found"
        ):
            node(value).items("l")


def test_a_choice_is_one_of_the_words() -> None:
    assert node("b").choice("c", ("a", "b")) == "b"
    for value in ("B", "", None, ("a",), 0, True):
        with pytest.raises(SuiteError, match="c must be one of a, b, found"):
            node(value).choice("c", ("a", "b"))


def test_a_mapping_has_the_keys_that_it_may_and_must_have() -> None:
    value = {key: Entry(line=4, node=node(None)) for key in ("a", "b")}
    assert list(node(value).keys("m", ("a", "b", "c"))) == ["a", "b"]
    assert list(node({}).keys("m", ("a",))) == []
    with pytest.raises(
        SuiteError, match=r"f\.yaml:4: unknown key 'b' in m; allowed: a, c"
    ):
        node(value).keys("m", ("a", "c"))
    with pytest.raises(
        SuiteError, match=r"f\.yaml:3: m lacks the key 'c'; found: a, b; needed: a, c"
    ):
        node(value).keys("m", ("a", "b", "c"), required=("a", "c"))
    with pytest.raises(
        SuiteError, match="m lacks the key 'a'; found: nothing; needed: a"
    ):
        node({}).keys("m", ("a",), required=("a",))
    for wrong in (None, "x", ()):
        with pytest.raises(SuiteError, match="m must be a mapping, found"):
            node(wrong).keys("m", ("a",))


@pytest.mark.parametrize("value", ["2026-11-01", datetime.date(2026, 11, 1)])
def test_a_day_is_a_date_or_a_text_in_one_form(value: Any) -> None:
    assert node(value).date("d") == datetime.date(2026, 11, 1)


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


def test_an_unknown_name_is_told_the_nearest() -> None:
    assert unknown("key", "aple", ["pear", "apple"]) == (
        "unknown key 'aple'; allowed: pear, apple; did you mean 'apple'?"
    )
    assert (
        unknown("key", "zzz", ["pear"], where="a bowl")
        == "unknown key 'zzz' in a bowl; allowed: pear"
    )


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
        ("1:30", "found '1:30': YAML reads it as a number to base 60"),
        ("190:20:30.15", "found '190:20:30.15': YAML reads it as a number to base 60"),
        ("010", "found '010': YAML reads it as a number to base 8"),
        ("-07_7", "found '-07_7': YAML reads it as a number to base 8"),
        ("9" * 5000, "999...': it has 5,000 characters, allowed: at most 60"),
        ("0x" + "f" * 5000, "fff...': it has 5,002 characters, allowed: at most 60"),
        ("1." + "0" * 5000, "it has 5,002 characters, allowed: at most 60"),
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
def test_a_value_that_is_not_of_its_tag_is_an_error(
    tmp_path: Path, value: str, words: str
) -> None:
    with pytest.raises(SuiteError) as caught:
        read(tmp_path, f"a: 1\nb: {value}\n")
    assert str(caught.value).startswith(
        f"{tmp_path / 'f.yaml'}:2: not a value: {words}"
    )


def test_numbers_in_quotes_are_texts(tmp_path: Path) -> None:
    result = read(tmp_path, "b: '1:30'\nc: '007'\n")
    assert [entry.node.value for entry in result.value.values()] == ["1:30", "007"]  # type: ignore[attr-defined]
