"""The form of ``--kb-model-args``: ``key=value,key=value``, as lm-eval has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pytest_kbrel.bounds import Bounds, shown
from pytest_kbrel.errors import ModelError, nearest
from pytest_kbrel.untrusted import parse

_CLOSING = {"{": "}", "[": "]"}
_NEXT = re.compile(r",|\s+(?=\w+=)")


def parse_args(model_args: str, allowed: Sequence[str]) -> dict[str, str]:
    """Read ``key=value,key=value``.

    A value in quotation marks, or one that is JSON in braces or brackets, may hold commas. Raises
    :class:`ModelError` for a key that is not ``allowed``, has no value or is given twice, and for quotation
    marks or brackets that are not closed.
    """
    found: dict[str, str] = {}
    for part in _parts(model_args.strip()):
        if not part:
            continue
        key, equals, value = part.partition("=")
        key, value = key.strip(), _unquoted(value.strip())
        if key not in allowed:
            raise ModelError(
                f"model-args: unknown key {key!r}; allowed: {', '.join(allowed)}{nearest(key, allowed)}"
            )
        if not equals or not value:
            raise ModelError(f"model-args: {key} has no value; the form is key=value,key=value")
        if key in found:
            raise ModelError(f"model-args: {key} is given twice")
        found[key] = value
    return found


def join_args(args: Mapping[str, str]) -> str:
    """Return arguments as one text that :func:`parse_args` reads as the same ones."""
    return ",".join(f"{key}={_quoted(value)}" for key, value in args.items())


def all_auto(text: str, why: str, run: Mapping[str, str]) -> None:
    """Raise :class:`ModelError` where ``run`` tells the model ``text`` its device, dtype or batch size."""
    for key, value in run.items():
        if value != "auto":
            raise ModelError(f"{text}: {key.replace('_', ' ')} {value!r} {why}; allowed is auto")


def flag(args: Mapping[str, str], key: str) -> bool | None:
    """Return an argument that is True or False, ``None`` without it; else raise :class:`ModelError`."""
    if key not in args:
        return None
    value = args[key].lower()
    if value not in ("true", "false", "1", "0"):
        raise ModelError(f"model-args: {key}={args[key]}; allowed is True or False")
    return value in ("true", "1")


def whole(what: str, value: str, bounds: Bounds, unit: str = "") -> int:
    """Return ``value`` as a whole number within ``bounds``; else raise :class:`ModelError`."""
    try:
        return bounds.integer(value)
    except ValueError:
        raise ModelError(f"{what} {shown(value)}; allowed is {bounds}{unit and ', ' + unit}") from None


def whole_or_auto(what: str, value: str, bounds: Bounds, unit: str = "") -> int | None:
    """Return ``value`` as :func:`whole` does, ``None`` for ``auto``."""
    return None if value == "auto" else whole(what, value, bounds, unit)


def number(what: str, value: str, bounds: Bounds, unit: str = "") -> float:
    """Return ``value`` as a number within ``bounds``; else raise :class:`ModelError`."""
    try:
        return bounds.number(value)
    except ValueError:
        raise ModelError(f"{what} {shown(value)}; allowed is {bounds}{unit and ', ' + unit}") from None


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between commas, or blanks before the next key, that are outside of values."""
    start = place = 0
    while place < len(text):
        if text[place] in "\"'{[" and text[:place].rstrip()[-1:] == "=":
            place = _end_of_value(text, place)
        elif between := _NEXT.match(text, place):
            yield text[start:place].strip()
            start = place = between.end()
        else:
            place += 1
    yield text[start:].strip()


def _end_of_value(text: str, start: int) -> int:
    """Return the place behind a quoted or bracketed value that begins at ``start``."""
    opening = text[start]
    if opening not in _CLOSING:
        end = text.find(opening, start + 1) + 1
        if not end:
            raise ModelError(f"model-args: {_key(text, start)}: the quotation mark {opening} is not closed")
        return end
    depth, inside = 0, False
    for place in range(start, len(text)):
        character = text[place]
        if character == '"' and text[place - 1] != "\\":
            inside = not inside
        elif not inside:
            depth += (character == opening) - (character == _CLOSING[opening])
            if not depth:
                return place + 1
    raise ModelError(f"model-args: {_key(text, start)}: {opening} is not closed by {_CLOSING[opening]}")


def _key(text: str, start: int) -> str:
    """Return the key before a value; the value may be a secret."""
    return re.split(r"[,\s]", text[:start].rstrip())[-1].rstrip("=")


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value


def _is_json(value: str) -> bool:
    try:
        return value[0] in _CLOSING and bool(parse(value))
    except ValueError:
        return False


def _quoted(value: str) -> str:
    if not re.search(r"[,\s\"']", value) or _is_json(value):
        return value
    mark = "'" if '"' in value else '"'
    return f"{mark}{value}{mark}"
