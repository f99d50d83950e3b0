"""YAML to a tree of nodes that know their lines."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import Entry, Node, Scalar, describe
from pytest_kbrel.untrusted import DOCUMENT, MIB, read_bytes

# YAML 1.1 reads 1e-3 as text; everybody who writes it means a number.
_EXPONENT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
_DEEPEST = 50
_LARGEST = 16 * MIB
_MOST_VALUES = 300_000
_MOST_MERGED = 100_000
# What YAML 1.1 reads in other ways than who wrote it and than YAML 1.2: 1:30 as 90, 010 as 8.
_SIXTIES, _OCTAL = re.compile(r"[-+0-9_.]+:[0-9_.:]+"), re.compile(r"[-+]?0[0-7_]+")
_LONGEST_NUMBER = 60


def read_text(path: Path, most: int = DOCUMENT) -> str:
    """Read a UTF-8 file of at most ``most`` bytes, with or without byte order mark."""
    try:
        data = read_bytes(path, most)
    except OSError as error:
        raise SuiteError(f"cannot be read: {error.strerror}", path) from None
    except ValueError as error:
        raise SuiteError(str(error), path) from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SuiteError(f"not UTF-8: found byte 0x{data[error.start]:02x}", path, line) from None


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
        line = mark.line + 1 if mark else text.count("\n", 0, getattr(error, "position", 0)) + 1
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        context = getattr(error, "context", None)
        said = f"{context}: {problem}" if context else problem
        raise SuiteError(f"not valid YAML: {said}", path, line) from None


def _check_shape(events: Iterable[Any], path: Path) -> None:
    # The C composer recurses without a limit and takes the process down with it.
    depth = values = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        values += not name.endswith("EndEvent")
        if values > _MOST_VALUES:
            line = event.start_mark.line + 1
            raise SuiteError(
                f"found more than {_MOST_VALUES:,} values; allowed: at most {_MOST_VALUES:,}", path, line
            )
        if depth > _DEEPEST:
            line = event.start_mark.line + 1
            raise SuiteError(f"nested more than {_DEEPEST} levels deep; a suite needs 7", path, line)


class _Tree:
    """Turns composed YAML nodes into ``Node``, each once, however often an alias repeats it."""

    def __init__(self, path: Path, constructor: Any) -> None:
        self.path = path
        self.constructor = constructor
        self.done: dict[int, Node] = {}
        self.open: list[int] = []
        self.merged = 0

    def node(self, raw: Any) -> Node:
        line = raw.start_mark.line + 1
        if id(raw) in self.open:
            raise SuiteError("an alias refers to the value it stands in", self.path, line)
        if id(raw) not in self.done:
            self.open.append(id(raw))
            self.done[id(raw)] = Node(path=self.path, line=line, value=self.value(raw, line))
            self.open.pop()
        return self.done[id(raw)]

    def value(self, raw: Any, line: int) -> Scalar | tuple[Node, ...] | dict[str, Entry]:
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
            raise SuiteError(f"not a value: {shown(raw.value)} ({error})", self.path, line) from None
        except (LookupError, AttributeError):
            # PyYAML takes for granted that a tag in the file suits the text behind it.
            kind = raw.tag.rpartition(":")[2]
            raise SuiteError(f"not a value: {shown(raw.value)} is no {kind}", self.path, line) from None
        if not isinstance(value, (str, int, float, bool, datetime.date, type(None))):
            raise SuiteError(f"a value of the kind {raw.tag} is not allowed", self.path, line)
        return value

    def check_number(self, text: str, line: int) -> None:
        problem = ""
        if len(text) > _LONGEST_NUMBER:
            problem = f"it has {len(text):,} characters, allowed: at most {_LONGEST_NUMBER}"
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
                raise SuiteError(f"a key must be text, found {describe(name)}{hint}", self.path, line)
            if name in entries:
                first = entries[name].line
                raise SuiteError(
                    f"key {shown(name)} stands twice; the first is on line {first}", self.path, line
                )
            entries[name] = Entry(line=line, node=self.node(child))
        self.merged += sum(map(len, merged))
        if self.merged > _MOST_MERGED:
            # Each << makes copies: of a small file they could fill all memory.
            problem = f"<< merges more than {_MOST_MERGED:,} keys; allowed: at most {_MOST_MERGED:,}"
            raise SuiteError(problem, self.path, raw.start_mark.line + 1)
        for base in merged:
            for name, entry in base.items():
                entries.setdefault(name, entry)
        return entries
