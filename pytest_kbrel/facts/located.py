"""Strict readers of YAML and JSON whose values know their lines, so that every error names one."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pytest_kbrel.bounds import Bounds, meant_number, shown
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import DOCUMENT, MIB, lines, parse, read_bytes

Item = TypeVar("Item")
Option = TypeVar("Option", bound=str)
Scalar = str | int | float | bool | datetime.date | None
_ANY = Bounds(-1e300, 1e300, whole=False)


@record
class Node:
    """One value of the tree: a scalar, a list or a mapping, with the line (from 1) on which it begins."""

    path: Path
    line: int
    value: Scalar | tuple[Node, ...] | dict[str, Entry]

    def error(self, message: str) -> SuiteError:
        """Return the error ``message`` at the line of this value."""
        return SuiteError(message, self.path, self.line)

    def wrong(self, what: str, allowed: str, hint: str = "") -> SuiteError:
        """Return the error that ``what`` must be ``allowed`` and is not."""
        return self.error(
            f"{what} must be {allowed}, found {describe(self.value)}{hint}"
        )

    def mapping(self, what: str) -> dict[str, Entry]:
        """Return the entries of a mapping."""
        if not isinstance(self.value, dict):
            raise self.wrong(what, "a mapping")
        return self.value

    def keys(
        self, what: str, allowed: Sequence[str], required: Sequence[str] = ()
    ) -> dict[str, Entry]:
        """Return the entries of a mapping that may have the ``allowed`` keys and must have the required."""
        entries = self.mapping(what)
        for key, entry in entries.items():
            if key not in allowed:
                raise entry.error(unknown("key", key, allowed, where=what))
        for key in required:
            if key not in entries:
                present = ", ".join(entries) or "nothing"
                raise self.error(
                    f"{what} lacks the key {key!r}; found: {present}; needed: {', '.join(required)}"
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
            raise self.wrong(
                what, allowed, " (put it in quotes if text is meant)" if scalar else ""
            )
        if (
            not self.value.strip()
            or len(self.value.splitlines()) != 1
            or "\0" in self.value
        ):
            raise self.wrong(what, allowed)
        return self.value

    def number(
        self, what: str, allowed: str = "a number", bounds: Bounds = _ANY
    ) -> float:
        """Return a finite number within ``bounds``; ``allowed`` words what may stand here."""
        if isinstance(self.value, (int, float)) and self.value in bounds:
            # Minus zero is zero, but would be printed with its sign.
            return self.value + 0
        raise self.wrong(what, allowed, meant_number(self.value, bounds))

    def integer(self, what: str, bounds: Bounds) -> int:
        """Return a whole number within ``bounds``."""
        if isinstance(self.value, int) and self.value in bounds:
            return self.value
        raise self.wrong(what, str(bounds), meant_number(self.value, bounds))

    def choice(self, what: str, options: Sequence[Option]) -> Option:
        """Return one of ``options``."""
        for option in options:
            if option == self.value:
                return option
        hint = nearest(self.value, options) if isinstance(self.value, str) else ""
        raise self.wrong(what, f"one of {', '.join(options)}", hint)

    def date(self, what: str) -> datetime.date:
        """Return a calendar day, plain or as quoted ISO text."""
        value = self.value
        if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
            try:
                return datetime.date.fromisoformat(value)
            except ValueError:
                pass
        if isinstance(value, datetime.date) and not isinstance(
            value, datetime.datetime
        ):
            return value
        raise self.wrong(what, "a date such as 2026-11-01")


@record
class Entry:
    """A value of a mapping, and the line of its key."""

    line: int
    node: Node

    def error(self, message: str) -> SuiteError:
        """Return the error ``message`` at the key."""
        return SuiteError(message, self.node.path, self.line)


def describe(value: object) -> str:
    """Return a value of a file in the few words that error messages have for it."""
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


def unknown(kind: str, word: str, allowed: Iterable[str], *, where: str = "") -> str:
    """Return the message on a name that is not allowed: the name, the allowed ones, the nearest of them."""
    names = list(allowed)
    inside = f" in {where}" if where else ""
    return f"unknown {kind} {shown(word)}{inside}; allowed: {', '.join(names)}{nearest(word, names)}"


# YAML 1.1 reads 1e-3 as text; everybody who writes it means a number.
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
_DEEPEST = 50
_TOO_DEEP = f"nested more than {_DEEPEST} levels deep; a suite needs 7"
_LARGEST = 16 * MIB
_MOST_VALUES = 300_000
# What YAML 1.1 reads in other ways than who wrote it and than YAML 1.2: 1:30 as 90, 010 as 8.
_SIXTIES, _OCTAL = re.compile(r"[-+0-9_.]+:[0-9_.:]+"), re.compile(r"[-+]?0[0-7_]+")
_LONGEST_NUMBER = 60
_INDENTED_BY_TAB = re.compile(r" *\t")


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file as bytes; an ``OSError`` in the block becomes a ``SuiteError``."""
    try:
        with path.open("rb") as stream:
            yield stream
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> SuiteError:
    """Return the error of a file that cannot be opened; of one that is not there, with the nearest name."""
    beside = (
        path.parent.iterdir()
        if isinstance(error, FileNotFoundError) and path.parent.is_dir()
        else ()
    )
    hint = nearest(path.name, sorted(file.name for file in beside))
    return SuiteError(f"cannot be read: {error.strerror}{hint}", path)


def require_keys(value: Mapping[str, Any], *keys: str) -> None:
    """Raise ``ValueError`` on the first of ``keys`` that a row lacks."""
    for key in keys:
        if key not in value:
            present = ", ".join(value) or "nothing"
            raise ValueError(
                f"the key {key!r} is missing; found: {present}; needed: {', '.join(keys)}"
            )


def read_text(path: Path, most: int = DOCUMENT) -> str:
    """Read a UTF-8 file of at most ``most`` bytes, with or without byte order mark."""
    try:
        data = read_bytes(path, most)
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise SuiteError(str(error), path) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError(
            f"not UTF-8: found byte 0x{data[error.start]:02x}", path, line
        ) from None


def read_document(path: Path) -> Node:
    """Read a YAML file of one document into a tree."""
    import yaml

    text = read_text(path, _LARGEST)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_shape(yaml.parse(text, Loader=loader), path)
        root = yaml.compose(text, Loader=loader)
        if root is None:
            raise SuiteError("the file is empty; a mapping is needed", path, 1)
        return _Tree(path, yaml.SafeLoader("")).node(root)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = (
            mark.line + 1
            if mark
            else text.count("\n", 0, getattr(error, "position", 0)) + 1
        )
        problem = (
            getattr(error, "problem", None)
            or getattr(error, "reason", None)
            or str(error)
        )
        if "nesting depth" in problem:
            # The parser's own limit, in newer versions, is met before ours by what it reads ahead.
            raise SuiteError(_TOO_DEEP, path, line) from None
        context = getattr(error, "context", None)
        fault = f"{context}: {problem}" if context else problem
        if _INDENTED_BY_TAB.match(text.split("\n")[min(line - 1, text.count("\n"))]):
            fault = "found a tab before the text; allowed: spaces, by which YAML is indented"
        raise SuiteError(f"not valid YAML: {fault}", path, line) from None


def _check_shape(events: Iterable[Any], path: Path) -> None:
    # The C composer recurses without a limit and takes the process down with it.
    depth = values = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        values += not name.endswith("EndEvent")
        fault = ""
        if values > _MOST_VALUES:
            fault = f"found more than {_MOST_VALUES:,} values; allowed: at most {_MOST_VALUES:,}"
        elif depth > _DEEPEST:
            fault = _TOO_DEEP
        if fault:
            raise SuiteError(fault, path, event.start_mark.line + 1)


class _Tree:
    """Turns composed YAML nodes into ``Node``, each once, however often an alias repeats it."""

    def __init__(self, path: Path, constructor: Any) -> None:
        self.path = path
        self.constructor = constructor
        self.done: dict[int, Node] = {}
        self.open: list[int] = []

    def node(self, raw: Any) -> Node:
        line = raw.start_mark.line + 1
        if id(raw) in self.open:
            raise SuiteError(
                "an alias refers to the value it stands in", self.path, line
            )
        if id(raw) not in self.done:
            self.open.append(id(raw))
            self.done[id(raw)] = Node(
                path=self.path, line=line, value=self.value(raw, line)
            )
            self.open.pop()
        return self.done[id(raw)]

    def value(
        self, raw: Any, line: int
    ) -> Scalar | tuple[Node, ...] | dict[str, Entry]:
        if raw.id == "mapping":
            return self.entries(raw)
        if raw.id == "sequence":
            return tuple(self.node(item) for item in raw.value)
        if raw.tag == "tag:yaml.org,2002:str":
            number = raw.style in (None, "") and _EXPONENT.fullmatch(raw.value)
            return float(raw.value) if number else str(raw.value)
        if raw.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            self.check_number(raw.value, line)
        try:
            value: Scalar = self.constructor.construct_object(raw)
        except (ValueError, OverflowError) as error:
            raise SuiteError(
                f"not a value: {shown(raw.value)} ({error})", self.path, line
            ) from None
        except (LookupError, AttributeError):
            # PyYAML takes for granted that a tag in the file suits the text behind it.
            kind = raw.tag.rpartition(":")[2]
            raise SuiteError(
                f"not a value: {shown(raw.value)} is no {kind}", self.path, line
            ) from None
        if not isinstance(value, (str, int, float, bool, datetime.date, type(None))):
            raise SuiteError(
                f"a value of the kind {raw.tag} is not allowed", self.path, line
            )
        return value

    def check_number(self, text: str, line: int) -> None:
        problem = ""
        if len(text) > _LONGEST_NUMBER:
            problem = (
                f"it has {len(text):,} characters, allowed: at most {_LONGEST_NUMBER}"
            )
        elif _SIXTIES.fullmatch(text):
            problem = "YAML reads it as a number to base 60"
        elif _OCTAL.fullmatch(text):
            problem = "YAML reads it as a number to base 8"
        if problem:
            raise SuiteError(
                f"not a plain number: found {shown(text)}: {problem}; allowed: a decimal number, or quotes "
                "if text is meant",
                self.path,
                line,
            )

    def entries(self, raw: Any) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        merged: list[dict[str, Entry]] = []
        for key, child in raw.value:
            line = key.start_mark.line + 1
            if key.tag == "tag:yaml.org,2002:merge":
                bases = child.value if child.id == "sequence" else [child]
                merged += [self.node(base).mapping("what << merges") for base in bases]
                continue
            name = self.node(key).value
            if not isinstance(name, str):
                hint = " (put it in quotes if text is meant)"
                if isinstance(name, (int, float)) and not isinstance(name, bool):
                    hint = " (put it in quotes if text is meant; a decimal number has a point: 0.4)"
                raise SuiteError(
                    f"a key must be text, found {describe(name)}{hint}", self.path, line
                )
            if name in entries:
                first = entries[name].line
                raise SuiteError(
                    f"key {shown(name)} stands twice; the first is on line {first}",
                    self.path,
                    line,
                )
            entries[name] = Entry(line=line, node=self.node(child))
        for base in merged:
            for name, entry in base.items():
                entries.setdefault(name, entry)
        return entries


def json_rows(
    path: Path, form: str
) -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
    """Yield the objects of a JSON Lines file one by one with their line numbers; blank lines are skipped.

    A line that is no JSON object is yielded as the error it is, so that a caller may go on behind it.
    ``form`` words what the file should look like. Raises ``SuiteError`` where the file cannot be read.
    """
    first, line = True, 0
    with open_file(path) as stream:
        try:
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


def json_records(
    path: Path, form: str, convert: Callable[[dict[str, Any]], Item]
) -> Iterator[tuple[int, Item]]:
    """Yield what ``convert`` makes of each object of a JSON Lines file, with its line number.

    Raises ``SuiteError`` on the first line that is no object, or for which ``convert`` raises ``ValueError``.
    """
    for line, row in json_rows(path, form):
        if isinstance(row, SuiteError):
            raise row
        try:
            item = convert(row)
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
        yield line, item


def json_object(data: bytes, form: str, *, first: bool = False) -> dict[str, Any]:
    """Parse one JSON object; raises ``ValueError``. The ``first`` is shown when it is no JSON at all."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not UTF-8: found byte 0x{data[error.start]:02x}; {form}"
        ) from None
    value = json_value(text, form, first=first)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object: found {describe(value)}; {form}")
    return value


def json_value(text: str, form: str, *, first: bool = False) -> Any:
    """Parse one JSON value: no key twice, no NaN, no half surrogate pairs; raises ``ValueError``."""
    try:
        value = parse(text, _no_twins)
    except json.JSONDecodeError as error:
        fault = f"{error.msg} in column {error.colno}"
        if first:
            fault = f"found {describe(text.strip())}"
            if text.strip() in ("{", "["):
                fault = f"the line ends behind {text.strip()!r}: one value over several lines"
        raise ValueError(f"not JSON: {fault}; {form}") from None
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
