"""JSON as facts come in: strict, and with errors that say what was found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.untrusted import lines, parse


def json_rows(path: Path, form: str) -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
    """Yield the objects of a JSON Lines file one by one with their line numbers; blank lines are skipped.

    A line that is no JSON object is yielded as the error it is, so that a caller may go on behind it.
    ``form`` words what the file should look like. Raises ``SuiteError`` where the file cannot be read.
    """
    first, line = True, 0
    try:
        with path.open("rb") as stream:
            for line, raw in enumerate(lines(stream), 1):
                data = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
                if not data.strip():
                    continue
                try:
                    yield line, json_object(data, form, first=first)
                except ValueError as error:
                    yield line, SuiteError(str(error), path, line)
                first = False
    except ValueError as error:
        raise SuiteError(str(error), path, line + 1) from None
    except OSError as error:
        raise SuiteError(f"cannot be read: {error.strerror}", path) from None


def json_object(data: bytes, form: str, *, first: bool = False) -> dict[str, Any]:
    """Parse one JSON object; raises ``ValueError``. The ``first`` is shown when it is no JSON at all."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: found byte 0x{data[error.start]:02x}; {form}") from None
    value = json_value(text, form, first=first)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: found {describe(value)}; {form}")
    return value


def json_value(text: str, form: str, *, first: bool = False) -> Any:
    """Parse one JSON value: no key twice, no NaN, no half surrogate pairs; raises ``ValueError``."""
    try:
        value = parse(text, _no_twins)
    except json.JSONDecodeError as error:
        found = f"{error.msg} in column {error.colno}"
        if first:
            found = f"found {describe(text.strip())}"
            if text.strip() in ("{", "["):
                found = f"the line ends behind {text.strip()!r}: one value over several lines"
        raise ValueError(f"not JSON: {found}; {form}") from None
    # A lone surrogate can be escaped in JSON but never written to a report.
    if "\\u" in text:
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError(
                "found half a surrogate pair (\\ud800 to \\udfff); allowed: Unicode text"
            ) from None
    return value


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {shown(twin)} stands twice; allowed: each key once")
    return value
