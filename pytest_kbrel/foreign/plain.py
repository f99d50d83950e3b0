"""Plain CSV and JSON lines: their rows, each an id and one or more scores, and a task where there are several."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel import untrusted
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.scored import ONE_TASK, Answer, Wanted, number
from pytest_kbrel.records import NOT_KNOWN

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


IDS = ("id", "sample_id", "doc_id", "question_id", "fact_id")
SCORES = (
    *("score", "correct", "is_correct", "passed"),
    *("acc", "accuracy", "exact_match", "em", "f1"),
)
_EXPECTED = ("expected", "target")


def read_plain(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Yield the rows of ``.csv``, ``.tsv`` or ``.jsonl``.

    Raises ``KbrelError`` where ids or scores are not recognised.
    """
    # Rows of another task may have other scores.
    metrics: dict[str, dict[str, None]] = {}
    for where, row in rows_of(path):
        columns = ", ".join(row)
        if not (id_ := _text(row, (wanted.id,) if wanted.id else IDS)):
            allowed = wanted.id or ", ".join(IDS)
            raise KbrelError(
                f"{where}: found no id ({allowed}) among {columns}; allowed: --id KEY"
            )
        task = _text(row, ("task", "case")) or ONE_TASK
        of_task = metrics.setdefault(task, {})
        of_task |= {name: None for name in wanted.metrics or SCORES if name in row}
        if not of_task and not wanted.metrics:
            raise KbrelError(
                f"{where}: found no score ({', '.join(SCORES)}) among {columns}; allowed: --metric KEY"
            )
        scores = {name: number(row.get(name)) for name in of_task}
        for name, score in scores.items():
            given = str(row.get(name) or "")
            if score is None and given.lower() not in ("", "nan"):
                raise KbrelError(
                    f"{where}: {name} is {given[:60]!r}; allowed: a number, true or false"
                )
        is_empty = any(key in row for key in _EXPECTED)
        yield Answer(
            where=where,
            task=task,
            id=id_,
            scores=scores,
            fields=(row,),
            asked=_text(row, ("prompt_hash", "prompt_digest")),
            question=_text(row, ("question", "prompt")),
            expected=_text(row, _EXPECTED) or ("" if is_empty else NOT_KNOWN),
            answer=_text(row, ("answer", "output")),
        )


def _text(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first of the keys that a row has a value of, as text."""
    return next((str(row[key]) for key in keys if row.get(key) is not None), "")
