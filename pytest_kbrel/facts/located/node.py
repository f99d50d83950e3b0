"""A document as a tree in which every key and every value knows its line, and the words for what is wrong."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_kbrel.bounds import Bounds, shown
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.records import record

Scalar = str | int | float | bool | datetime.date | None
_ANY = Bounds(-1e300, 1e300, whole=False)


@record
class Node:
    """One value of the tree: a scalar, a list or a mapping, with the line (from 1) on which it begins."""

    path: Path
    line: int
    value: Scalar | tuple[Node, ...] | dict[str, Entry]

    def error(self, message: str) -> SuiteError:
        """Return the error ``message`` at this place."""
        return SuiteError(message, self.path, self.line)

    def wrong(self, what: str, allowed: str, hint: str = "") -> SuiteError:
        """Return the error that ``what`` must be ``allowed`` and is not."""
        return self.error(f"{what} must be {allowed}, found {describe(self.value)}{hint}")

    def mapping(self, what: str) -> dict[str, Entry]:
        """Return the entries of a mapping."""
        if not isinstance(self.value, dict):
            raise self.wrong(what, "a mapping")
        return self.value

    def keys(self, what: str, allowed: Sequence[str], required: Sequence[str] = ()) -> dict[str, Entry]:
        """Return the entries of a mapping that may have the ``allowed`` keys and must have the required."""
        entries = self.mapping(what)
        for key, entry in entries.items():
            if key not in allowed:
                raise entry.error(unknown("key", key, allowed, where=what))
        for key in required:
            if key not in entries:
                found = ", ".join(entries) or "nothing"
                raise self.error(
                    f"{what} lacks the key {key!r}; found: {found}; needed: {', '.join(required)}"
                )
        return entries

    def items(self, what: str, of: str = "names") -> tuple[Node, ...]:
        """Return the items of a list that is not empty."""
        if not isinstance(self.value, tuple) or not self.value:
            raise self.wrong(what, f"a list of {of} with at least one item")
        return self.value

    def text(self, what: str) -> str:
        """Return a text of one line that is not blank."""
        allowed = "text of one line, not blank and without NUL"
        if not isinstance(self.value, str):
            scalar = isinstance(self.value, (bool, int, float, datetime.date))
            raise self.wrong(what, allowed, " (put it in quotes if text is meant)" if scalar else "")
        if not self.value.strip() or len(self.value.splitlines()) != 1 or "\0" in self.value:
            raise self.wrong(what, allowed)
        return self.value

    def number(self, what: str, allowed: str = "a number", bounds: Bounds = _ANY) -> float:
        """Return a finite number within ``bounds``; ``allowed`` words what may stand here."""
        if isinstance(self.value, (int, float)) and self.value in bounds:
            # Minus zero is zero, but would be printed with its sign.
            return self.value + 0
        raise self.wrong(what, allowed)

    def integer(self, what: str, bounds: Bounds) -> int:
        """Return a whole number within ``bounds``."""
        if isinstance(self.value, int) and self.value in bounds:
            return self.value
        raise self.wrong(what, str(bounds))

    def choice(self, what: str, options: Sequence[str]) -> str:
        """Return one of ``options``."""
        if self.value not in options:
            hint = nearest(self.value, options) if isinstance(self.value, str) else ""
            raise self.wrong(what, f"one of {', '.join(options)}", hint)
        return str(self.value)

    def date(self, what: str) -> datetime.date:
        """Return a calendar day, plain or as quoted ISO text."""
        value = self.value
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            try:
                return datetime.date.fromisoformat(value)
            except ValueError:
                pass
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value
        raise self.wrong(what, "a date such as 2026-11-01")


@record
class Entry:
    """A value of a mapping and the place of its key."""

    line: int
    node: Node

    def error(self, message: str) -> SuiteError:
        """Return the error ``message`` at the key."""
        return SuiteError(message, self.node.path, self.line)


def describe(value: object) -> str:
    """Say in a few words what was found."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, (tuple, list)):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    return shown(value) if isinstance(value, int) else str(value)


def unknown(kind: str, found: str, allowed: Iterable[str], *, where: str = "") -> str:
    """Word the error about a name that is not allowed: what was found, what may stand there, the nearest."""
    names = list(allowed)
    place = f" in {where}" if where else ""
    return f"unknown {kind} {shown(found)}{place}; allowed: {', '.join(names)}{nearest(found, names)}"
