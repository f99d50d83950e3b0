"""Strict readers of YAML and JSON whose values know their lines, so that every error names one."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pytest_kbrel.bounds import Bounds, shown
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import DOCUMENT, MIB, lines, no_twins, parse, read_bytes

Item = TypeVar("Item")
Option = TypeVar("Option", bound=str)
Scalar = str | int | float | bool | datetime.date | None
_ANY = Bounds(-1e300, 1e300, whole=False)


@record
class Node:
    """One value of the tree: a scalar, a list or a mapping.

    ``line`` (from 1) is where it begins; of a value in a mapping, where its key stands.
    """

    path: Path
    line: int
    value: Scalar | tuple[Node, ...] | dict[str, Node]

    def error(self, message: str) -> SuiteError:
        """Return the error ``message`` at the line of this value."""
        return SuiteError(message, self.path, self.line)

    def wrong(self, what: str, allowed: str, hint: str = "") -> SuiteError:
        """Return the error that ``what`` must be ``allowed`` and is not."""
        return self.error(
            f"{what} must be {allowed}, found {describe(self.value)}{hint}"
        )

    def mapping(self, what: str) -> dict[str, Node]:
        """Return the values of a mapping by their keys."""
        if not isinstance(self.value, dict):
            raise self.wrong(what, "a mapping")
        return self.value

    def keys(
        self, what: str, allowed: Sequence[str], required: Sequence[str] = ()
    ) -> dict[str, Node]:
        """Return the values of a mapping that may have the ``allowed`` keys and must have the required."""
        entries = self.mapping(what)
        for key, node in entries.items():
            if key not in allowed:
                raise node.error(unknown("key", key, allowed, where=what))
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
        value = self.value
        if (
            isinstance(value, str)
            and value.strip()
            and len(value.splitlines()) == 1
            and "\0" not in value
        ):
            return value
        scalar = isinstance(value, (bool, int, float, datetime.date))
        hint = " (put it in quotes if text is meant)" if scalar else ""
        allowed = "text of one line, not blank and without NUL"
        raise self.wrong(what, allowed, hint)

    def number(
        self, what: str, allowed: str = "a number", bounds: Bounds = _ANY
    ) -> float:
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

    def choice(self, what: str, options: Sequence[Option]) -> Option:
        """Return one of ``options``."""
        for option in options:
            if option == self.value:
                return option
        hint = nearest(self.value, options) if isinstance(self.value, str) else ""
        raise self.wrong(what, f"one of {', '.join(options)}", hint)

    def date(self, what: str) -> datetime.date:
        """Return a calendar day, plain or as quoted ISO text."""
        day = iso_day(self.value)
        if day is None:
            raise self.wrong(what, "a date such as 2026-11-01")
        return day


def iso_day(value: object) -> datetime.date | None:
    """Return the day that a value is, or that a text such as 2026-11-01 names; else ``None``."""
    text = str(value)
    try:
        day = datetime.date.fromisoformat(text)
    except ValueError:
        return None
    # Other forms of ISO 8601 are read as well.
    return day if day.isoformat() == text else None


def describe(value: object) -> str:
    """Return a value of a file in the few words that error messages have for it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, (tuple, list, dict)):
        kind = "mapping" if isinstance(value, dict) else "list"
        return f"a {kind}" if value else f"an empty {kind}"
    return shown(value) if isinstance(value, int) else str(value)


def unknown(kind: str, word: str, allowed: Iterable[str], *, where: str = "") -> str:
    """Return the message on a name that is not allowed: the name, the allowed ones, the nearest of them."""
    names = list(allowed)
    inside = f" in {where}" if where else ""
    return f"unknown {kind} {shown(word)}{inside}; allowed: {', '.join(names)}{nearest(word, names)}"


_DEEPEST = 50
_TOO_DEEP = f"nested more than {_DEEPEST} levels deep; a suite needs 7"
_LARGEST = 16 * MIB
_MOST_VALUES = 300_000
_TOO_MANY = (
    f"found more than {_MOST_VALUES:,} values; allowed: at most {_MOST_VALUES:,} values"
)
# YAML 1.1 reads 1e-3 as text; everybody who writes it means a number.
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
# YAML 1.1 reads 1:30 as 90 and 010 as 8, and takes long for thousands of digits.
_MISREAD = re.compile(r".*:.*|[-+]?0[0-7_]+|.{61,}")
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
    hint = nearest_file(path) if isinstance(error, FileNotFoundError) else ""
    return SuiteError(f"cannot be read: {error.strerror}{hint}", path)


def nearest_file(path: Path) -> str:
    """Return the hint to the file beside one that is not there whose name is most like it."""
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    return nearest(path.name, sorted(file.name for file in beside))


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
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = values = 0
    event: Any
    try:
        # The composer in C would end the process where a file is nested too deep.
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            values += isinstance(event, yaml.NodeEvent)
            if depth > _DEEPEST or values > _MOST_VALUES:
                fault = _TOO_DEEP if depth > _DEEPEST else _TOO_MANY
                raise SuiteError(fault, path, event.start_mark.line + 1)
        return _tree(path, loader(text))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SuiteError(f"not valid YAML: {error.reason}", path, line) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        told = ": ".join(filter(None, (error.context, error.problem)))
        fault = f"not valid YAML: {told}"
        if "nesting depth" in fault:
            # The parser's own limit, in newer versions, is met before ours by what it reads ahead.
            fault = _TOO_DEEP
        elif any(map(_INDENTED_BY_TAB.match, text.split("\n")[line - 1 : line])):
            fault = "not valid YAML: found a tab before the text; allowed: spaces"
        raise SuiteError(fault, path, line) from None


def _tree(path: Path, loader: Any) -> Node:
    """Turn the nodes of YAML's composer into our own; an alias is the node it repeats, and no copy."""
    nodes: dict[int, Node | None] = {}

    def error(message: str, of: Any) -> SuiteError:
        return SuiteError(message, path, of.start_mark.line + 1)

    def node(of: Any) -> Node:
        if id(of) not in nodes:
            nodes[id(of)] = None
            value: Scalar | tuple[Node, ...] | dict[str, Node]
            if of.id == "scalar":
                value = scalar(of)
            elif of.id == "sequence":
                value = tuple(map(node, of.value))
            else:
                value = entries(of)
            line = of.start_mark.line + 1
            nodes[id(of)] = Node(path=path, line=line, value=value)
        done = nodes[id(of)]
        if done is None:
            raise error("an alias refers to a value that it is part of", of)
        return done

    def entries(of: Any) -> dict[str, Node]:
        named: dict[str, Node] = {}
        merged: list[Node] = []
        for key, inner in of.value:
            name, value = node(key).value, node(inner)
            if name == "<<":
                merged += value.value if isinstance(value.value, tuple) else [value]
            elif not isinstance(name, str):
                hint = "put it in quotes if text is meant; a decimal number has a point: 0.4"
                message = f"a key must be text, found {describe(name)} ({hint})"
                raise error(message, key)
            elif name in named:
                first = f"the first is on line {named[name].line}"
                raise error(f"key {shown(name)} stands twice; {first}", key)
            else:
                line = key.start_mark.line + 1
                named[name] = dataclasses.replace(value, line=line)
        for base in merged:
            named = {**named, **base.mapping("what << merges"), **named}
        return named

    def scalar(of: Any) -> Scalar:
        text, kind = of.value, of.tag.rpartition(":")[2]
        if kind in ("str", "merge"):
            is_number = not of.style and _EXPONENT.fullmatch(text)
            return float(text) if is_number else text
        if kind in ("int", "float") and _MISREAD.fullmatch(text):
            raise error(
                f"not a plain number: found {shown(text)}; allowed: a decimal number of up to 60 characters, "
                "or quotes if text is meant",
                of,
            )
        try:
            value = loader.construct_object(of)
        except (ValueError, OverflowError, LookupError, AttributeError):
            # PyYAML takes for granted that a tag in the file suits the text behind it.
            raise error(f"not a value: {shown(text)} is no {kind}", of) from None
        if not isinstance(value, (str, int, float, bool, datetime.date, type(None))):
            raise error(f"a value of the kind {of.tag} is not allowed", of)
        return value

    if (root := loader.get_single_node()) is None:
        raise SuiteError("the file is empty; a mapping is needed", path, 1)
    return node(root)


def json_rows(
    path: Path, form: str
) -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
    """Yield the objects of a JSON Lines file one by one with their line numbers; blank lines are skipped.

    A line that is no JSON object is yielded as the error it is, so that a caller may go on behind it.
    ``form`` words what the file should look like. Raises ``SuiteError`` where the file cannot be read.
    """
    line = 0
    with open_file(path) as stream:
        try:
            for line, raw in enumerate(lines(stream), 1):
                data = raw.removeprefix(b"\xef\xbb\xbf") if line == 1 else raw
                if data.strip():
                    yield line, json_object(data, form, path, line)
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
        with located(path, line):
            item = convert(row)
        yield line, item


@contextmanager
def located(path: Path, line: int | None = None) -> Iterator[None]:
    """Make a ``ValueError`` of the block a ``SuiteError`` at this line."""
    try:
        yield
    except ValueError as error:
        raise SuiteError(str(error), path, line) from None


def json_object(
    data: bytes | str, form: str, path: Path, line: int
) -> dict[str, Any] | SuiteError:
    """Parse one JSON object, or return the error that it is none."""
    try:
        value = json_value(data, form)
    except ValueError as error:
        return SuiteError(str(error), path, line)
    if isinstance(value, dict):
        return value
    return SuiteError(f"not a JSON object: found {describe(value)}; {form}", path, line)


def json_value(data: bytes | str, form: str) -> Any:
    """Parse one JSON value: no key twice, no NaN, no half surrogate pairs; raises ``ValueError``."""
    try:
        text = data if isinstance(data, str) else data.decode("utf-8")
        value = parse(text, no_twins)
        # A lone surrogate can be escaped in JSON but never written to a report.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        fault = f"not UTF-8: found byte 0x{error.object[error.start]:02x}"
    except UnicodeEncodeError:
        fault = (
            "found half a surrogate pair (\\ud800 to \\udfff); allowed: Unicode text"
        )
    except json.JSONDecodeError as error:
        text = describe(error.doc.strip())
        fault = f"not JSON: {error.msg} in column {error.colno}, found {text}"
    else:
        return value
    raise ValueError(f"{fault}; {form}")
