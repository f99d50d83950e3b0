"""Records as text and back: each shape a field may have, and the neighbours that do not fit it."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any, Literal

import pytest

from pytest_kbrel.records import record
from pytest_kbrel.serialization import (
    dumps_compact,
    encoder,
    fields_of,
    from_wire,
    replace_surrogates,
    to_wire,
    values_of,
)


@record
class Point:
    """Two numbers, one of which may be left out."""

    x: int
    y: float = 0.5


@record
class Named:
    """Something with a name only."""

    name: str


@record
class Shape:
    """One field of each kind."""

    pair: tuple[str, int] = ("a", 1)
    many: tuple[Point, ...] = ()
    kind: Literal["round", "flat"] = "round"
    share: float | None = None
    part: Point | Named | None = None
    limit: int | float | None = None
    is_open: bool = False


@pytest.mark.parametrize(
    ("name", "wire", "value"),
    [
        ("pair", ["b", 0], ("b", 0)),
        ("many", [], ()),
        ("many", [{"x": 0}, {"x": 1, "y": 0.0}], (Point(x=0), Point(x=1, y=0.0))),
        ("kind", "flat", "flat"),
        ("share", None, None),
        ("share", 0.0, 0.0),
        ("share", 0, 0.0),
        ("part", None, None),
        ("part", {"x": 0}, Point(x=0)),
        ("part", {"name": ""}, Named(name="")),
        ("part", {"x": 1, "later": 2}, Point(x=1)),
        ("limit", 3, 3),
        ("limit", 0.5, 0.5),
        ("is_open", False, False),
    ],
)
def test_a_field_is_read_as_what_it_is(name: str, wire: Any, value: Any) -> None:
    result = from_wire(Shape, {name: wire})
    assert result == Shape(**{name: value})
    assert type(getattr(result, name)) is type(value)
    assert from_wire(Shape, to_wire(result)) == result
    assert from_wire(Shape, json.loads(dumps_compact(result))) == result


@pytest.mark.parametrize(
    ("name", "wire"),
    [
        *(
            ("pair", wire)
            for wire in (["b"], ["b", 0, 1], [0, "b"], {"b": 0}, "b0", None)
        ),
        *(("many", wire) for wire in ([{}], [{"y": 1.0}], {"x": 1}, None)),
        *(("kind", wire) for wire in ("Round", "", None)),
        *(("share", wire) for wire in ("0.5", True, [])),
        *(("part", wire) for wire in ({}, {"y": 1.0}, {"Name": "a"}, [], "a", 1)),
        *(("is_open", wire) for wire in (0, 1, "true", None)),
    ],
)
def test_what_does_not_fit_a_field_is_refused(name: str, wire: Any) -> None:
    with pytest.raises(ValueError):
        from_wire(Shape, {name: wire})


@pytest.mark.parametrize(
    "value", [Named(name=""), Named(name="a"), Point(x=0), Point(x=1, y=0.0), Shape()]
)
def test_a_record_is_made_anew_of_its_fields(value: Any) -> None:
    assert type(value)(**fields_of(value)) == value
    assert list(fields_of(value)) == list(type(value).__slots__)


def test_values_that_equal_a_default_and_are_another_are_told() -> None:
    # A whole number in the place of its equal fraction must come back as it was.
    assert json.loads(dumps_compact(Point(x=1, y=0.0))) == {"x": 1, "y": 0.0}
    assert json.loads(dumps_compact(Shape())) == {}
    assert json.loads(dumps_compact(Shape(is_open=True))) == {"is_open": True}


def test_builtins_of_all_kinds_have_a_wire_form() -> None:
    value = {"a": (1, 2.5), 3: [None, True, "x"], "r": Named(name="n")}
    assert to_wire(value) == {"a": [1, 2.5], "3": [None, True, "x"], "r": {"name": "n"}}
    assert encoder()(Named(name="é")) == '{"name": "\\u00e9"}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_has_none(number: float) -> None:
    for write in (to_wire, dumps_compact, encoder()):
        with pytest.raises(ValueError):
            write([number])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("plain", "plain"),
        ("é\U0001f600", "é\U0001f600"),
        ("\ud800", "\ufffd"),
        ("a\udfffb\ud83d", "a\ufffdb\ufffd"),
        ("\ud7ff\ue000", "\ud7ff\ue000"),
        ("", ""),
    ],
)
def test_halves_of_surrogate_pairs_are_replaced_and_nothing_else(
    text: str, result: str
) -> None:
    assert replace_surrogates(text) == result


def test_what_is_no_record_has_no_fields() -> None:
    for read in (fields_of, values_of):
        with pytest.raises(TypeError, match="a value of type dict has no wire form"):
            read({"a": 1})


@record
class Later:
    """A field that is made anew each time."""

    names: tuple[str, ...] = field(default_factory=tuple)
    only: Named | None = None


def test_a_field_with_a_made_default_need_not_be_there() -> None:
    assert from_wire(Later, {}) == Later()
    assert from_wire(Later, json.loads(dumps_compact(Later(names=("a",))))) == Later(
        names=("a",)
    )
