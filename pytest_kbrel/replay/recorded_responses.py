"""Recorded responses in place of a model: ``responses.jsonl`` of a run, or of its shards, by request.

Each process reads the files once, line by line, into an index of the lines' positions. The index is a
temporary SQLite file, so that its memory does not grow with the run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.base import check_probabilities, check_size
from pytest_kbrel.records import Request, Response
from pytest_kbrel.replay.recorded_run import RecordedRun
from pytest_kbrel.reports import RESPONSES
from pytest_kbrel.reports.responses import (
    REQUESTS,
    numbered,
    parse_line,
    response_in,
)
from pytest_kbrel.serialization import from_wire, values_of
from pytest_kbrel.untrusted import LINE, short
from pytest_kbrel.words import in_suite

_KINDS = {kind: name for name, kind in REQUESTS.items()}
# Of equal requests the line with the highest rank answers: the last usable response, else the first failure.
_TABLES = (
    "CREATE TABLE lines "
    "(key BLOB, case_number INTEGER, rank INTEGER, file INTEGER, line INTEGER, at INTEGER)",
    "CREATE TABLE starts (file INTEGER, case_number INTEGER, at INTEGER, PRIMARY KEY (file, case_number)) "
    "WITHOUT ROWID",
)
_INSERT = "INSERT INTO lines VALUES (?, ?, ?, ?, ?, ?)"
# Made when all lines are there: to sort them once takes less time than to find each one's place.
_INDEX = "CREATE INDEX by_request ON lines (key, case_number, rank)"
_OF_CASE = "SELECT file, line, at FROM lines WHERE key = ? AND case_number = ? ORDER BY rank DESC LIMIT 1"
_OF_ANY = "SELECT file, line, at FROM lines WHERE key = ? ORDER BY rank DESC LIMIT 1"
_encoded = json.JSONEncoder(default=str).encode


class RecordedResponses:
    """Responses of a recorded run by request; its files, one a shard, are read at the first call."""

    def __init__(self, run: RecordedRun) -> None:
        self._sources = run.sources
        self._paths = [source.folder / RESPONSES for source in run.sources]
        self._index: sqlite3.Connection | None = None
        self._case_numbers: dict[str, int] = {}
        self._broken = False

    def find(
        self, case: str, to: str, requests: Sequence[Request]
    ) -> list[Response | None]:
        """Return the recorded response to each request, ``None`` where there is none.

        Responses of this case (its node id) come first, then those of any case to the same request. ``to``
        names the model as in :class:`pytest_kbrel.records.Ask`. Raises :class:`ResponseError` where the file
        is broken; only the first error explains why.
        """
        index = self._opened()
        with ExitStack() as stack:

            @functools.cache
            def opened(file: int) -> BinaryIO:
                return stack.enter_context(self._paths[file].open("rb"))

            return [
                self._response(opened, index, case, to, request) for request in requests
            ]

    def requests(self, case: str, role: str) -> dict[str, Request]:
        """Return the requests of a case to the model under test in this role, by fact id.

        Raises :class:`ResponseError` as :meth:`find` does.
        """
        return {
            data["fact"]: self._request(file, data)
            for file in range(len(self._paths))
            for data in self._lines(file, case)
            if data["role"] == role and not data.get("to")
        }

    def source_of(self, case: str, request: Request) -> int:
        """Return the number of the shard in which a case asked this request first; 0 where none did."""
        for file in range(len(self._paths)):
            first = next(self._lines(file, case), None)
            if first is not None and self._request(file, first) == request:
                return file
        return 0

    def _lines(self, file: int, case: str) -> Iterator[Mapping[str, Any]]:
        """Yield the lines of a case in a file, where they stand together; all were parsed for the index."""
        select = "SELECT at FROM starts WHERE file = ? AND case_number = ?"
        index = self._opened()
        row = index.execute(select, (file, self._case_numbers.get(case))).fetchone()
        if row is not None:
            with self._paths[file].open("rb") as stream:
                stream.seek(row[0])
                for data in map(parse_line, stream):
                    if data["case"] != case:
                        return
                    yield data

    def _request(self, file: int, data: Mapping[str, Any]) -> Request:
        request = data["request"]
        try:
            return from_wire(REQUESTS[request["kind"]], request)
        except ValueError as error:
            raise ResponseError(
                f"{self._paths[file]}: a request is broken: {error}"
            ) from None

    def close(self) -> None:
        """Free the index."""
        if self._index is not None:
            self._index.close()

    def _opened(self) -> sqlite3.Connection:
        if self._broken:
            names = ", ".join(map(str, self._paths))
            raise ResponseError(f"{names} cannot be read; the first failure says why")
        if self._index is None:
            # No name: a temporary file that SQLite removes itself.
            index = sqlite3.connect("", isolation_level=None)
            for table in _TABLES:
                index.execute(table)
            try:
                index.execute("BEGIN")
                for file, source in enumerate(self._sources):
                    starts: dict[int, int] = {}
                    rows = _rows(file, source, self._case_numbers, starts)
                    index.executemany(_INSERT, rows)
                    index.executemany(
                        "INSERT INTO starts VALUES (?, ?, ?)",
                        ((file, number, at) for number, at in starts.items()),
                    )
                index.execute(_INDEX)
                index.execute("COMMIT")
            except BaseException:
                self._broken = True
                index.close()
                raise
            self._index = index
        return self._index

    def _response(
        self,
        opened: Callable[[int], BinaryIO],
        index: sqlite3.Connection,
        case: str,
        to: str,
        request: Request,
    ) -> Response | None:
        key = _key(to, _KINDS[type(request)], values_of(request))
        row = index.execute(_OF_CASE, (key, self._case_numbers.get(case))).fetchone()
        row = row or index.execute(_OF_ANY, (key,)).fetchone()
        if row is None:
            return None
        file, line, at = row
        path = self._paths[file]
        try:
            stream = opened(file)
            stream.seek(at)
            response = response_in(short(stream.readline(LINE + 1)))
            return check_size(request, check_probabilities(response))
        except OSError as error:
            raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ResponseError(_broken(path, line, error)) from None


def _rows(
    file: int,
    source: RecordedRun,
    case_numbers: dict[str, int],
    starts: dict[int, int],
) -> Iterator[tuple[bytes, int, int, int, int, int]]:
    """Yield a row of the index for each line; where the lines of a case begin goes to ``starts``.

    A line of a suite is a ``ResponseError`` where the report lacks its case, or the shard its fact.
    """
    path = source.folder / RESPONSES
    try:
        with path.open("rb") as stream:
            at = 0
            for number, line in numbered(stream, path):
                try:
                    data = parse_line(line)
                except ValueError as error:
                    raise ResponseError(_broken(path, number, error)) from None
                name, fact = data["case"], data["fact"]
                # A test in Python may ask whatever it likes.
                if in_suite(name) and (lacking := _foreign(source, name, fact)):
                    raise ResponseError(
                        f"{path}:{number}: is a response of fact {fact} of {name}, which {lacking}; "
                        "allowed: the files as the run wrote them"
                    )
                case = case_numbers.setdefault(name, len(case_numbers))
                starts.setdefault(case, at)
                usable = data["response"]["kind"] != "failed"
                # Later files have the higher numbers.
                rank = (file << 40) + number
                yield (
                    _key_of_line(data),
                    case,
                    rank if usable else -rank,
                    file,
                    number,
                    at,
                )
                at += len(line)
    except OSError as error:
        raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None


def _foreign(source: RecordedRun, case: str, fact: str) -> str:
    """Return why a line of this fact is no part of a recorded run; empty where it is."""
    if case not in source.cases:
        return "the report does not have"
    shard = source.shard.shard if source.shard else None
    if shard and not shard.has(case if shard.by == "case" else fact):
        return f"another shard than {shard} asks"
    return ""


def _key_of_line(data: Mapping[str, Any]) -> bytes:
    request = data["request"]
    # A field that a later version brings is absent in older records, which had its default.
    values = [
        request.get(name, default) for name, default in _defaults(request["kind"])
    ]
    return _key(data.get("to", ""), request["kind"], values)


@functools.cache
def _defaults(kind: str) -> list[tuple[str, Any]]:
    return [(field.name, field.default) for field in dataclasses.fields(REQUESTS[kind])]


def _key(to: str, kind: str, values: Iterable[object]) -> bytes:
    """Return the key of a request: equal requests to one model have one key, whichever case asks."""
    return hashlib.blake2b(
        _encoded([to, kind, *values]).encode("ascii"), digest_size=16
    ).digest()


def _broken(path: Path, number: int, error: Exception) -> str:
    return f"{path}:{number}: is no recorded response: {error}; allowed: the file as the run wrote it"
