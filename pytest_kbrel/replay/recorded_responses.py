"""Recorded responses in place of a model: ``responses.jsonl`` of a run, or of its shards, by request.

Each process reads the files once, line by line, into an index of the lines' positions. The index is a
temporary SQLite file, so that its memory does not grow with the run.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.base import check_probabilities, check_size
from pytest_kbrel.records import GenerateRequest, Request, Response, ScoreRequest
from pytest_kbrel.replay.recorded_run import RecordedRun
from pytest_kbrel.reports import RESPONSES
from pytest_kbrel.reports.responses import from_line, numbered, parse_line, response_in
from pytest_kbrel.serialization import from_wire, values_of
from pytest_kbrel.untrusted import LINE, short

_KINDS: dict[str, type[Request]] = {"score": ScoreRequest, "generate": GenerateRequest}


class RecordedResponses:
    """Responses of a recorded run by request; its files, one a shard, are read at the first call."""

    def __init__(self, run: RecordedRun) -> None:
        self._paths = [source.folder / RESPONSES for source in run.sources]
        self._index: sqlite3.Connection | None = None
        self._broken = False

    def find(self, case: str, to: str, requests: Sequence[Request]) -> list[Response | None]:
        """Return the recorded response to each request, ``None`` where there is none.

        Responses of this case (its node id) come first, then those of any case to the same request. ``to``
        names the model as in :class:`pytest_kbrel.records.Ask`. Raises :class:`ResponseError` where the file
        is broken; only the first error explains why.
        """
        index = self._opened()
        with ExitStack() as stack:
            streams: dict[int, BinaryIO] = {}
            return [self._response(stack, streams, index, case, to, request) for request in requests]

    def requests(self, case: str, role: str) -> dict[str, Request]:
        """Return the requests of a case to the model under test in this role, by fact id.

        Raises :class:`ResponseError` as :meth:`find` does.
        """
        requests: dict[str, Request] = {}
        for file, path in enumerate(self._paths):
            requests |= self._requests_in(file, path, case, role)
        return requests

    def source_of(self, case: str, request: Request) -> int:
        """Return the number of the shard in which a case asked this request first; 0 where none did."""
        index = self._opened()
        for file, path in enumerate(self._paths):
            row = index.execute("SELECT at FROM places WHERE key = ?", (_start(file, case),)).fetchone()
            if row is None:
                continue
            with path.open("rb") as stream:
                stream.seek(row[0])
                if from_line(short(stream.readline(LINE + 1))).ask.request == request:
                    return file
        return 0

    def _requests_in(self, file: int, path: Path, case: str, role: str) -> dict[str, Request]:
        index = self._opened()
        row = index.execute("SELECT at FROM places WHERE key = ?", (_start(file, case),)).fetchone()
        requests: dict[str, Request] = {}
        if row is None:
            return requests
        with path.open("rb") as stream:
            stream.seek(row[0])
            # A case's lines stand together, and all were parsed for the index.
            for data in map(parse_line, stream):
                if data["case"] != case:
                    break
                if data["role"] == role and not data.get("to"):
                    request = data["request"]
                    try:
                        requests[data["fact"]] = from_wire(_KINDS[request["kind"]], request)
                    except ValueError as error:
                        raise ResponseError(f"{path}: a request is broken: {error}") from None
        return requests

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
            index.execute(
                "CREATE TABLE places (key BLOB PRIMARY KEY, file INTEGER, line INTEGER, at INTEGER) "
                "WITHOUT ROWID"
            )
            try:
                index.execute("BEGIN")
                for file, path in enumerate(self._paths):
                    # One statement takes all rows up to those with the other word.
                    for word, rows in itertools.groupby(_index_rows(file, path), key=lambda row: row[0]):
                        insert = f"INSERT OR {word} INTO places VALUES (?, ?, ?, ?)"
                        index.executemany(insert, (row for _, row in rows))
                index.execute("COMMIT")
            except BaseException:
                self._broken = True
                index.close()
                raise
            self._index = index
        return self._index

    def _response(
        self,
        stack: ExitStack,
        streams: dict[int, BinaryIO],
        index: sqlite3.Connection,
        case: str,
        to: str,
        request: Request,
    ) -> Response | None:
        kind = next(name for name, of in _KINDS.items() if isinstance(request, of))
        select = "SELECT file, line, at FROM places WHERE key = ?"
        rows = (index.execute(select, (key,)).fetchone() for key in _keys(case, to, kind, values_of(request)))
        if (row := next(filter(None, rows), None)) is None:
            return None
        file, line, at = row
        path = self._paths[file]
        try:
            if file not in streams:
                streams[file] = stack.enter_context(path.open("rb"))
            streams[file].seek(at)
            response = response_in(short(streams[file].readline(LINE + 1)))
            return check_size(request, check_probabilities(response))
        except OSError as error:
            raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ResponseError(_broken(path, line, error)) from None


def _index_rows(file: int, path: Path) -> Iterator[tuple[str, tuple[bytes, int, int, int]]]:
    """Yield rows of the index with REPLACE or IGNORE: of equal keys a usable response precedes a failure."""
    try:
        with path.open("rb") as stream:
            at, last = 0, None
            for number, line in numbered(stream, path):
                try:
                    data = parse_line(line)
                except ValueError as error:
                    raise ResponseError(_broken(path, number, error)) from None
                request = data["request"]
                # A field that a later version brings is absent in older records, which had its default.
                fields = dataclasses.fields(_KINDS[request["kind"]])
                values = [request.get(field.name, field.default) for field in fields]
                keys = _keys(data["case"], data.get("to", ""), request["kind"], values)
                if data["case"] != last:
                    last = data["case"]
                    yield "IGNORE", (_start(file, last), file, number, at)
                word = "REPLACE" if data["response"]["kind"] != "failed" else "IGNORE"
                for key in keys:
                    yield word, (key, file, number, at)
                at += len(line)
    except OSError as error:
        raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None


def _keys(case: str, to: str, kind: str, values: Iterable[object]) -> tuple[bytes, bytes]:
    """Return the keys of a request of this case, and of the same request of any case."""
    request = json.dumps([to, kind, *values], default=str).encode("ascii")
    return _key(case.encode("utf-8", "surrogatepass") + b"\0" + request), _key(request)


def _start(file: int, case: str) -> bytes:
    """Return the key of a case's first line in a file."""
    return _key(b"case\0%d\0" % file + case.encode("utf-8", "surrogatepass"))


def _key(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _broken(path: Path, number: int, error: Exception) -> str:
    return f"{path}:{number}: is no recorded response: {error}; allowed: the file as the run wrote it"
