"""Rows of JSON lines and of CSV files, each with its line number."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel import untrusted
from pytest_kbrel.errors import KbrelError

_DELIMITERS = ",\t;"
_GZIP = b"\x1f\x8b"


def json_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ``FILE:LINE`` and the object of each line that is not empty.

    NaN and infinity are read, since other tools write them. Raises ``KbrelError`` on what is no object.
    """
    where = str(path)
    try:
        with path.open("rb") as stream:
            for at, line in enumerate(untrusted.lines(stream), start=1):
                where = f"{path}:{at}"
                if not line.strip():
                    continue
                if line.startswith(_GZIP):
                    raise ValueError("is packed with gzip; allowed: the file unpacked")
                try:
                    row = untrusted.parse(line, untrusted.no_twins, nan=True)
                except json.JSONDecodeError as error:
                    end = (
                        ""
                        if line.endswith(b"\n")
                        else ", and no line ends there: the file may be cut short"
                    )
                    raise ValueError(
                        f"is no JSON at character {error.pos + 1}: {error.msg}{end}"
                    ) from None
                if not isinstance(row, dict):
                    raise ValueError(
                        f"found {type(row).__name__}; allowed: an object a line"
                    )
                yield where, row
    except (ValueError, RecursionError) as error:
        raise KbrelError(f"{where}: {error}") from None


def csv_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield ``FILE:LINE`` and the cells of each row by the header; separated by commas, tabs or semicolons.

    Raises ``KbrelError`` on a row with another number of cells than the header.
    """
    where = str(path)

    def text(stream: BinaryIO) -> Iterator[str]:
        nonlocal where
        for at, line in enumerate(untrusted.lines(stream), start=1):
            where = f"{path}:{at}"
            yield line.decode("utf-8-sig" if at == 1 else "utf-8")

    try:
        with path.open("rb") as stream:
            lines = text(stream)
            header = next(lines, "")
            delimiter = max(_DELIMITERS, key=header.count)
            reader = csv.reader(
                itertools.chain([header], lines), delimiter=delimiter, strict=True
            )
            names = next(reader, [])
            if twice := {name for name in names if names.count(name) > 1}:
                raise KbrelError(
                    f"{where}: found the column {sorted(twice)[0]!r} twice; allowed: once"
                )
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise KbrelError(
                        f"{where}: found {len(cells)} cells; allowed: {len(names)}, as in the header"
                    )
                yield where, dict(zip(names, cells, strict=True))
    except (ValueError, csv.Error) as error:
        raise KbrelError(f"{where}: cannot be read as CSV: {error}") from None


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
    return document if isinstance(document, dict) else {}
