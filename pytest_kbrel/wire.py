"""Records as exact builtins: what JSON, execnet and files carry."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from typing import Any, Literal, TypeVar

T = TypeVar("T")


def to_wire(value: Any) -> Any:
    """Return ``value`` as exact builtins that survive JSON and execnet.

    Records become dicts, tuples lists. Raises ``ValueError`` on NaN and infinity: no number is better than a
    wrong one.
    """

    def plain(item: Any) -> Any:
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return {f.name: plain(getattr(item, f.name)) for f in dataclasses.fields(item)}
        if isinstance(item, dict):
            return {str(key): plain(val) for key, val in item.items()}
        if isinstance(item, (list, tuple)):
            return [plain(val) for val in item]
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"{item} has no wire form")
        return item

    # The round trip turns subclasses of str, int and float into the exact builtins execnet insists on.
    return json.loads(json.dumps(plain(value), allow_nan=False))


def from_wire(kind: type[T], data: Any) -> T:
    """Build a record of type ``kind`` from its wire form; unknown keys are ignored.

    Raises ``ValueError`` naming the record when a key is missing or a value has the wrong shape.
    """
    return typing.cast(T, _build(kind, data))


def _build(kind: Any, data: Any) -> Any:
    origin = typing.get_origin(kind)
    if origin is tuple:
        args = typing.get_args(kind)
        if not isinstance(data, list):
            raise ValueError(f"a list is needed, found {type(data).__name__}")
        if args[-1] is ...:
            return tuple(_build(args[0], item) for item in data)
        return tuple(_build(arg, item) for arg, item in zip(args, data, strict=True))
    if origin in (types.UnionType, typing.Union):
        return _build_union(typing.get_args(kind), data)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(data, dict):
            raise ValueError(f"{kind.__name__} needs an object, found {type(data).__name__}")
        known = _field_types(kind)
        try:
            return kind(**{key: _build(known[key], val) for key, val in data.items() if key in known})
        except TypeError as error:
            raise ValueError(f"{kind.__name__}: {error}") from None
    if origin is Literal:
        if data not in typing.get_args(kind):
            raise ValueError(f"{data!r} is none of {typing.get_args(kind)}")
        return data
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if isinstance(kind, type) and not isinstance(data, kind):
        raise ValueError(f"{kind.__name__} needed, found {data!r}")
    return data


@functools.cache
def _field_types(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@functools.cache
def _required(kind: type) -> frozenset[str]:
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(kind)
        if field.default is missing and field.default_factory is missing
    )


def _build_union(members: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in members:
        return None
    for member in members:
        if isinstance(member, type) and dataclasses.is_dataclass(member) and isinstance(data, dict):
            needed = _required(member)
            if needed and needed <= data.keys():
                return _build(member, data)
    for member in members:
        if member is not type(None) and not dataclasses.is_dataclass(member):
            return _build(member, data)
    raise ValueError(f"{data!r} fits none of {members}")
