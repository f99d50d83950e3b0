"""Rows of JSON lines and of CSV files, each with its line number."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel import untrusted
from pytest_kbrel.errors import KbrelError

TABLES = (".csv", ".tsv")
_DELIMITERS = ",\t;"
_GZIP = b"\x1f\x8b"
Rows = Iterator[tuple[str, Mapping[str, Any]]]


def rows_of(path: Path) -> Rows:
    """Yield ``FILE:LINE`` and the row: an object a line, or of a table its cells by the header.

    NaN and infinity are read, since other tools write them. Raises ``KbrelError`` on what is no object, and
    on a row with another number of cells than the header.
    """
    at = 0

    def lines() -> Iterator[bytes]:
        nonlocal at
        with path.open("rb") as stream:
            for at, line in enumerate(untrusted.lines(stream), start=1):  # noqa: B007
                yield line

    read = _cells if path.suffix in TABLES else _objects
    try:
        for row in read(lines()):
            yield f"{path}:{at}", row
    except csv.Error as error:
        raise KbrelError(f"{path}:{at}: cannot be read as CSV: {error}") from None
    except (ValueError, RecursionError) as error:
        raise KbrelError(f"{path}:{at}: {error}") from None


def _objects(lines: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
    for line in filter(bytes.strip, lines):
        if line.startswith(_GZIP):
            raise ValueError("is packed with gzip; allowed: the file unpacked")
        try:
            row = untrusted.parse(line, untrusted.no_twins, nan=True)
        except json.JSONDecodeError as error:
            cut = ", and no line ends there: the file may be cut short"
            end = "" if line.endswith(b"\n") else cut
            raise ValueError(
                f"is no JSON at character {error.pos + 1}: {error.msg}{end}"
            ) from None
        if not isinstance(row, dict):
            raise ValueError(f"found {type(row).__name__}; allowed: an object a line")
        yield row


def _cells(lines: Iterator[bytes]) -> Iterator[Mapping[str, Any]]:
    header = next(lines, b"").decode("utf-8-sig")
    text = itertools.chain([header], (line.decode("utf-8") for line in lines))
    reader = csv.DictReader(
        text, delimiter=max(_DELIMITERS, key=header.count), strict=True
    )
    names = reader.fieldnames or []
    if twice := sorted(name for name in set(names) if names.count(name) > 1):
        raise ValueError(f"found the column {twice[0]!r} twice; allowed: once")
    for row in reader:
        # What is too much stands below None, and what lacks is None.
        if None in row or None in row.values():
            raise ValueError(f"found more or fewer cells; allowed: {len(names)} a row")
        yield row


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a file, empty where there is no file or something else in it."""
    if not path.is_file():
        return {}
    try:
        document = untrusted.parse(
            untrusted.read_bytes(path), untrusted.no_twins, nan=True
        )
    except ValueError as error:
        raise KbrelError(f"{path}: {error}") from None
    return as_object(document)


def as_object(value: object) -> dict[str, Any]:
    """Return the object, empty where the value is something else."""
    return value if isinstance(value, dict) else {}
