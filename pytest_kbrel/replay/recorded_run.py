"""Recorded run in place of models: its settings, the fingerprints of its models, and its responses.

Each process reads ``responses.jsonl`` once, line by line, into an index of the lines' positions. The index is
a temporary SQLite file, so that its memory does not grow with the run.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.errors import KbrelError, ResponseError, nearest
from pytest_kbrel.models.base import check_probabilities, check_size
from pytest_kbrel.records import (
    Fingerprint,
    GenerateRequest,
    JudgeError,
    Request,
    Response,
    ScoreRequest,
    Shard,
    ShardedRun,
)
from pytest_kbrel.reports import REPORT, RESPONSES, earlier_note
from pytest_kbrel.reports.phrases import INTERRUPTED, STOPPED
from pytest_kbrel.reports.responses import from_line, numbered, parse_line, response_in
from pytest_kbrel.serialization import from_wire, values_of
from pytest_kbrel.untrusted import LINE, short

ALLOWED = f"the folder of a finished run, with {REPORT} and {RESPONSES}"
# Reports that are read once in a process, as many as a run may well have shards.
SHARDS_READ = 256
_KINDS: dict[str, type[Request]] = {"score": ScoreRequest, "generate": GenerateRequest}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """Contents of a recorded run's report, without its figures.

    ``settings`` are pairs of name and value, ``base`` is the baseline model, ``cases`` the node ids of the
    cases, ``prompts`` the rendered prompt that the report shows of each, ``looks`` how many it took at those
    that might have stopped early. ``notes`` are remarks on its models, ``judge_error`` is that of its judge.
    ``unended`` are the cases without a result, each with the reason. ``shard`` is its share of a run,
    ``stopped`` whether its session was stopped in or before one of its cases; ``parts`` are the shards that
    it is joined from.
    """

    folder: Path
    kbrel_version: str
    settings: tuple[tuple[str, str], ...]
    model: Fingerprint
    helpers: tuple[Fingerprint, ...]
    base: Fingerprint | None
    cases: frozenset[str]
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    looks: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    judge_error: JudgeError | None = None
    unended: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shard: ShardedRun | None = None
    stopped: bool = False
    parts: tuple[RecordedRun, ...] = ()

    @property
    def sources(self) -> tuple[RecordedRun, ...]:
        """The runs that were recorded: this one, or the shards it is joined from."""
        return self.parts or (self,)

    def setting(self, name: str) -> str:
        """Return a setting as text, empty where the report does not have it."""
        return dict(self.settings).get(name, "")

    def helper(self, spec: str) -> Fingerprint | None:
        """Return the fingerprint of the helper model that ``spec`` names, ``None`` where there was none."""
        return next((helper for helper in self.helpers if helper.spec == spec), None)


def read_run(folder: Path) -> RecordedRun:
    """Return the run recorded in ``folder``; its models get today's scoring version.

    Raises :class:`KbrelError` where the folder is no finished run's, or its responses are not whole.
    """
    try:
        stamp = (folder / REPORT).stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _read_run(folder, stamp)


def _run_named_like(folder: Path) -> str:
    """Return ``"; did you mean 'x'?"`` for a run beside ``folder`` with a similar name, or ``""``."""
    try:
        beside = sorted(path.parent.name for path in folder.parent.glob(f"*/{REPORT}"))
    except OSError:
        return ""
    return nearest(folder.name, beside)


@functools.lru_cache(maxsize=SHARDS_READ)
def _read_run(folder: Path, _: int) -> RecordedRun:
    from pytest_kbrel.reports.json_report import check_file, read_judge_error, read_report

    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "is not there"
        raise KbrelError(f"{folder}: {fault}; allowed: {ALLOWED}{_run_named_like(folder)}")
    if not (folder / REPORT).is_file():
        raise KbrelError(f"{folder}: has no {REPORT}; allowed: {ALLOWED}{earlier_note(folder / REPORT)}")
    report = read_report(folder)
    try:
        # Their responses are scored now.
        model, base = (
            None
            if wire is None
            else dataclasses.replace(from_wire(Fingerprint, wire), scoring_version=SCORING_VERSION)
            for wire in (report["model"], report.get("base"))
        )
        if model is None:
            raise KbrelError(f"{folder / REPORT}: no one model answered in this run; allowed: {ALLOWED}")
        unended = {
            str(case["id"]): " ".join(case.get("errors", ())) for case in filter(_is_unended, report["cases"])
        }
        run = RecordedRun(
            folder=folder,
            kbrel_version=str(report["kbrel_version"]),
            settings=tuple(sorted((str(name), str(value)) for name, value in report["settings"].items())),
            model=model,
            base=base,
            helpers=tuple(from_wire(Fingerprint, helper) for helper in report.get("helpers", ())),
            cases=frozenset(str(case["id"]) for case in report["cases"]),
            prompts={str(case["id"]): str(case.get("prompt", "")) for case in report["cases"]},
            looks={
                str(case["id"]): int(case["looks"]["taken"]) for case in report["cases"] if case.get("looks")
            },
            notes=tuple(str(report["environment"].get("model_notes", "")).splitlines()),
            judge_error=read_judge_error(report),
            shard=_shard(report.get("shard")),
            unended=unended,
            stopped=any(case.get("verdict") == "not run" for case in report["cases"])
            or (bool(unended) and not {STOPPED, INTERRUPTED}.isdisjoint(report["problems"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{folder / REPORT}: is no whole report: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None
    _check_end(folder / RESPONSES, may_be_empty=run.shard is not None)
    if not isinstance(files := report.get("files"), dict) or RESPONSES not in files:
        raise KbrelError(
            f"{folder / REPORT}: names no digest of {RESPONSES}, so that nothing shows that both are of "
            f"one run (an older version's report, or a changed one); allowed: {ALLOWED}, as this version "
            "records it"
        )
    check_file(report, folder / RESPONSES)
    return run


def _is_unended(case: Mapping[str, Any]) -> bool:
    """Return True if a case in a report was not run, or ended with an error in place of a result."""
    return case.get("verdict") == "not run" or (case.get("verdict") == "invalid" and not case.get("settings"))


def _shard(wire: Any) -> ShardedRun | None:
    """Return the shard that a report names; raises ``ValueError`` for one that is none."""
    if wire is None:
        return None
    shard = from_wire(Shard, {key: wire[key] for key in ("index", "count", "by")})
    if not 1 <= shard.index <= shard.count:
        raise ValueError(f"shard.index {shard.index} of {shard.count}")
    suites = tuple((str(path), str(digest)) for path, digest in wire["suites"].items())
    return ShardedRun(shard=shard, suites=suites, commit=str(wire["commit"]))


def _check_end(path: Path, *, may_be_empty: bool) -> None:
    try:
        with path.open("rb") as stream:
            if stream.seek(0, os.SEEK_END) == 0:
                # A shard may have no fact.
                if may_be_empty:
                    return
                raise KbrelError(f"{path}: is empty, nothing was recorded; allowed: {ALLOWED}")
            stream.seek(-1, os.SEEK_END)
            last = stream.read(1)
    except OSError as error:
        raise KbrelError(f"{path}: cannot be read: {error.strerror}; allowed: {ALLOWED}") from None
    if last != b"\n":
        raise KbrelError(f"{path}: the last line is torn, the file was cut short; allowed: a whole one")


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
