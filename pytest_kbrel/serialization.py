"""Records as builtins and as text: what JSON, execnet and files carry."""

from __future__ import annotations

import dataclasses
import json
import operator
import re
import types
from collections.abc import Callable
from functools import cache, partial
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

T = TypeVar("T")
Reader = Callable[[Any], Any]
_HALVES = re.compile("[\ud800-\udfff]")


def to_wire(value: Any) -> Any:
    """Return ``value`` as exact builtins that survive JSON.

    Records become dicts, tuples lists. Raises ``ValueError`` on NaN and infinity: no number is better than a
    wrong one.
    """
    return json.loads(_encode(value))


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name, as they are: no wire form, but :func:`encoder` makes it one.

    Sparse fields that have their default are left out. Raises ``TypeError`` for what is no record.
    """
    kind: Any = type(record)
    fields = dict(zip(_names_of(kind), _getter(kind)(record), strict=True))
    for name, default in _defaults(kind, sparse=True).items():
        if fields[name] == default:
            del fields[name]
    return fields


def values_of(record: Any) -> tuple[Any, ...]:
    """Return the fields of a record in their order, as they are."""
    kind: Any = type(record)
    return _getter(kind)(record)


def encoder(separators: tuple[str, str] = (", ", ": ")) -> Callable[[Any], str]:
    """Return what writes builtins with records among them as JSON: what their wire form would be written as.

    It raises ``ValueError`` on NaN and infinity.
    """
    return json.JSONEncoder(
        allow_nan=False, separators=separators, default=fields_of
    ).encode


_encode = encoder()


def dumps_compact(value: Any) -> str:
    """Return builtins with records among them as compact JSON, which execnet carries much faster.

    Fields of a record that have their default value are left out. ``json.loads`` and :func:`from_wire` read
    it. Raises ``ValueError`` on NaN and infinity.
    """
    return replace_surrogates(_encode_compact(value))


def _non_default_fields(record: Any) -> dict[str, Any]:
    kind: Any = type(record)
    fields = zip(_getter(kind)(record), _defaults(kind).items(), strict=True)
    return {name: value for value, (name, default) in fields if value is not default}


_encode_compact = json.JSONEncoder(
    allow_nan=False,
    separators=(",", ":"),
    ensure_ascii=False,
    default=_non_default_fields,
).encode


def replace_surrogates(text: str) -> str:
    """Return ``text`` with U+FFFD for each half of a surrogate pair: no UTF-8 holds those, nor execnet."""
    if text.isascii():
        return text
    return _HALVES.sub("\ufffd", text)


@cache
def _names_of(kind: Any) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"a value of type {kind.__name__} has no wire form")
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _defaults(kind: Any, *, sparse: bool = False) -> dict[str, Any]:
    """Return the defaults of all fields by name, or of the sparse ones."""
    fields = dataclasses.fields(kind)
    return {
        of.name: of.default for of in fields if not sparse or of.metadata.get("sparse")
    }


@cache
def _getter(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    names = _names_of(kind)
    # Of one name it would give the value alone, and of none it is not made.
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def from_wire(kind: type[T], data: Any) -> T:
    """Build a record of type ``kind`` from its wire form; unknown keys are ignored.

    Raises ``ValueError`` naming the record when a key is missing or a value has the wrong shape.
    """
    wanted: Any = kind
    return cast(T, _reader(wanted)(data))


# Types are looked at once, not at each value: a case of 100 facts has some thousand.
@cache
def _reader(kind: Any) -> Reader:
    origin = get_origin(kind)
    if origin in _BUILDERS:
        return partial(_BUILDERS[origin], get_args(kind))
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return partial(_build_record, kind)
    return partial(_build_leaf, kind) if isinstance(kind, type) else lambda data: data


def _build_tuple(args: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise ValueError(f"a list is needed, found {type(data).__name__}")
    if args[-1] is ...:
        return tuple(map(_reader(args[0]), data))
    return tuple(_reader(arg)(item) for arg, item in zip(args, data, strict=True))


def _build_record(kind: type, data: Any) -> Any:
    if not isinstance(data, dict):
        raise ValueError(
            f"{kind.__name__} needs an object, found {type(data).__name__}"
        )
    readers = _field_readers(kind)
    try:
        return kind(
            **{
                key: readers[key](value)
                for key, value in data.items()
                if key in readers
            }
        )
    except TypeError as error:
        raise ValueError(f"{kind.__name__}: {error}") from None


def _build_literal(allowed: tuple[Any, ...], data: Any) -> Any:
    if data not in allowed:
        raise ValueError(f"{data!r} is none of {allowed}")
    return data


def _build_leaf(kind: type, data: Any) -> Any:
    if type(data) is kind:
        return data
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, kind):
        raise ValueError(f"{kind.__name__} needed, found {data!r}")
    return data


@cache
def _field_readers(kind: Any) -> dict[str, Reader]:
    hints = get_type_hints(kind)
    return {
        field.name: _reader(hints[field.name]) for field in dataclasses.fields(kind)
    }


@cache
def _required(kind: type) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is missing and field.default_factory is missing
    )


def _build_union(members: tuple[Any, ...], data: Any) -> Any:
    if type(data) in members:
        return data
    records: list[Any] = [one for one in members if dataclasses.is_dataclass(one)]
    for member in records if isinstance(data, dict) else ():
        needed = _required(member)
        if needed and needed <= data.keys():
            return _reader(member)(data)
    for member in members:
        if member is not type(None) and member not in records:
            return _reader(member)(data)
    raise ValueError(f"{data!r} fits none of {members}")


_BUILDERS: dict[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    tuple: _build_tuple,
    types.UnionType: _build_union,
    Union: _build_union,
    Literal: _build_literal,
}
