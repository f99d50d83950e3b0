"""The store of a run: exchanges with models, units of work, and counts of answers.

It is one SQLite file that all processes of the run share. ``responses.jsonl`` is its dump, and loading such
files makes the store of a recorded run. It ends with its run: what a killed run was answered stays in the
cache. A process that is killed leaves each of its transactions whole or not at all.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import ResponseError, StoreError
from pytest_kbrel.outputs import new_file
from pytest_kbrel.records import BASELINE, Exchange, Failed, Request, Response
from pytest_kbrel.store.database import Database, connect
from pytest_kbrel.store.lines import (
    asked_digest,
    from_line,
    key_of_line,
    numbered,
    parse_line,
    request_key,
    response_in,
    to_line,
)

FILE = "run.sqlite"
# The file beside it that each process with the store open holds, as others see: a run is dead when none does.
ALIVE = "alive"
# Seconds that a process waits for another one that writes: loading a large recorded run takes some.
_PATIENCE = 600.0
# Seconds between two writes of the counts of a process.
_INTERVAL = 0.5
# ``asked`` is a digest of everything but the response: an exchange that is asked again takes its row. ``source`` is
# the recorded run that a row was loaded from, and ``number`` its line there. ``times`` is how often this run
# recorded it, and ``place`` and ``made`` are its place among the exchanges of its case.
_TABLES = """
CREATE TABLE exchanges (id INTEGER PRIMARY KEY, asked BLOB UNIQUE, key BLOB, of_case TEXT,
    role TEXT, receiver TEXT, usable INTEGER, source INTEGER, number INTEGER, times INTEGER, place TEXT,
    made INTEGER, line BLOB);
CREATE INDEX by_key ON exchanges (key);
CREATE INDEX by_case ON exchanges (of_case, place, made);
CREATE TABLE units (of_case TEXT, first INTEGER, begun INTEGER, result TEXT,
    PRIMARY KEY (of_case, first));
CREATE TABLE models (name TEXT PRIMARY KEY, identity TEXT);
CREATE TABLE counts (worker TEXT PRIMARY KEY, current TEXT, asked INTEGER, answered TEXT)
"""
_INSERT = (
    "INSERT INTO exchanges (asked, key, of_case, role, receiver, usable, source, number, times, place, made, "
    "line) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (asked) DO UPDATE SET "
    "usable = excluded.usable, times = times + excluded.times, place = excluded.place, "
    "made = CASE WHEN times THEN made ELSE excluded.made END, line = excluded.line"
)
# Of a recorded run's equal exchanges the last usable one counts, or else the first.
_LOAD = f"{_INSERT} WHERE excluded.usable"
_LOADED = "SELECT 1 FROM exchanges WHERE source IS NOT NULL LIMIT 1"
# Responses of the same case come first. A request that failed in this run gets another try.
_FIND = (
    "SELECT line, source, number FROM exchanges WHERE key = ? AND (usable OR source IS NOT NULL) "
    "ORDER BY of_case = ? DESC, usable DESC, usable * id DESC, id LIMIT 1"
)


@dataclass(slots=True)
class AnswerCounts:
    """Numbers of answered requests of one process, by case, and of those that a model was ``asked`` now.

    ``current`` is the case that asks. ``publish`` gets the counts at most every half second.
    """

    current: str = ""
    asked: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    publish: Callable[[AnswerCounts], None] = lambda _: None
    _due: float = 0.0
    _cases: Iterable[str] = ()

    def begin(self, cases: Sequence[str]) -> None:
        """Note which cases ask from now on, one for each request."""
        self._cases, case = iter(cases), next(iter(cases), self.current)
        if case != self.current:
            # A case of few questions must not hide the next one, which may take long.
            self.current, self._due = case, 0.0
        self._publish()

    def add(self, count: int, asked: bool) -> None:
        """Add answers, of the first cases that ask first; ``asked`` if the model gave them now, not the cache."""
        for case in itertools.islice(self._cases, count):
            self.answered[case] += 1
            self.current = case
        self.asked += count * asked
        self._publish()

    def _publish(self) -> None:
        if (now := time.monotonic()) >= self._due:
            self._due = now + _INTERVAL
            self.publish(self)


class RunStore(Database):
    """Store of a run in the file at ``path``, made at first use; without a path one of this object's own.

    Any thread may use it. All methods raise :class:`StoreError` where the file cannot be read or written.
    """

    tables = tuple(_TABLES.split(";"))

    def __init__(self, path: Path | None = None) -> None:
        where = "" if path is None else f"{path.parent}: "
        super().__init__(path or "", f"{where}responses cannot be kept", _PATIENCE)
        self.path = path
        self._alive: sqlite3.Connection | None = None
        # Of two processes that ask one case in turn, the later one has the higher numbers.
        self._clock = itertools.count(time.time_ns())
        self._sources: Sequence[Path] = ()

    def open(self) -> None:
        """Make the file, and show other runs that this one is active."""
        with contextlib.suppress(StoreError), self.reading():
            pass

    def add(
        self,
        exchanges: Iterable[Exchange],
        places: Iterable[str] = itertools.repeat(""),
    ) -> None:
        """Store exchanges, in order; those of a case are dumped in the order of their places."""
        rows = []
        for exchange, place in zip(exchanges, places, strict=False):
            ask, line = exchange.ask, to_line(exchange)
            usable = not isinstance(exchange.response, Failed)
            keys = asked_digest(line), request_key(ask.to, ask.request)
            order = place, next(self._clock)
            whose = exchange.case, ask.role, ask.to
            rows.append((*keys, *whose, usable, None, 0, 1, *order, line))
        with self.writing() as file:
            file.executemany(_INSERT, rows)

    def find(
        self, cases: Sequence[str], to: str, requests: Sequence[Request]
    ) -> list[Response | None]:
        """Return the stored response to each request to a model, ``None`` where there is none.

        Those of its own one of ``cases`` (a node id) come first, then those of any. ``to`` is as in
        :class:`pytest_kbrel.records.Ask`. Raises :class:`ResponseError` where a recorded one is broken.
        """
        with self.reading() as file:
            rows = [
                file.execute(_FIND, (request_key(to, request), case)).fetchone()
                for case, request in zip(cases, requests, strict=True)
            ]
        return [row and self._parsed(response_in, *row) for row in rows]

    def load(
        self, sources: Sequence[Path], check: Callable[[int, str, str], str]
    ) -> None:
        """Load the files of a recorded run, once for all processes.

        ``check`` returns why a line of this source, case and fact is none of the run's, empty where it is.
        Raises :class:`ResponseError` for such lines, and for files that cannot be read.
        """
        self._sources = sources
        with self.writing() as file:
            if not file.execute(_LOADED).fetchall():
                for number, path in enumerate(sources):
                    file.executemany(_LOAD, _rows(number, path, check))

    def recorded(self, case: str, role: str) -> dict[str, Request]:
        """Return the recorded requests of a case to the model under test in this role, by fact id."""
        rows = self.rows(
            "SELECT line, source, number FROM exchanges WHERE of_case = ? AND role = ? AND receiver = '' "
            "AND source IS NOT NULL",
            case,
            role,
        )
        asked = [self._parsed(from_line, *row).ask for row in rows]
        return {ask.fact_id: ask.request for ask in asked}

    def source_of(self, case: str, to: str, request: Request, fact: str = "") -> int:
        """Return the number of the recorded run in which a case asked this first; 0 where none did.

        Where several facts have the same question, that of ``fact`` counts.
        """
        rows = self.rows(
            "SELECT source, line FROM exchanges WHERE key = ? AND of_case = ? AND source IS NOT NULL "
            "ORDER BY id",
            request_key(to, request),
            case,
        )
        sources = [source for source, line in rows if parse_line(line)["fact"] == fact]
        return int((sources or [source for source, _ in rows] or [0])[0])

    def dump(self, output: Path, order: Sequence[str]) -> Counter[str]:
        """Write the exchanges of this run to a file: cases as in ``order``, others behind them by name.

        Return how many of each case were recorded, repeated ones too, but not those of a baseline model.
        """
        counts = Counter[str]()
        with self.reading() as file:
            counts.update(
                dict(
                    file.execute(
                        "SELECT of_case, sum(times * (receiver != ?)) FROM exchanges WHERE times "
                        "GROUP BY of_case",
                        (BASELINE,),
                    ).fetchall()
                )
            )
            rank = {case: at for at, case in enumerate(order)}
            with new_file(output, force=True) as stream:
                for case in sorted(
                    counts, key=lambda name: (rank.get(name, len(rank)), name)
                ):
                    rows = file.execute(
                        "SELECT line FROM exchanges WHERE of_case = ? AND times ORDER BY place, made",
                        (case,),
                    )
                    stream.buffer.writelines(line for (line,) in rows)
        return counts

    def first_model(self, name: str, identity: str) -> str:
        """Return the identity of the model of this name that a process of the run opened first."""
        with self.writing() as file:
            file.execute("INSERT OR IGNORE INTO models VALUES (?, ?)", (name, identity))
            ((first,),) = file.execute(
                "SELECT identity FROM models WHERE name = ?", (name,)
            ).fetchall()
        return str(first)

    def begin(self, case: str, first: int) -> int:
        """Note that a process begins the unit of a case with this first fact; return how many did before."""
        unit = case, first
        with self.writing() as file:
            file.execute("INSERT OR IGNORE INTO units VALUES (?, ?, 0, NULL)", unit)
            of_unit = "WHERE of_case = ? AND first = ?"
            ((begun,),) = file.execute(
                f"SELECT begun FROM units {of_unit}", unit
            ).fetchall()
            file.execute(f"UPDATE units SET begun = begun + 1 {of_unit}", unit)
        return int(begun)

    def give_up(self, case: str, first: int) -> None:
        """Note that a process could not ask a unit that it began, and lives."""
        self.rows(
            "UPDATE units SET begun = begun - 1 WHERE of_case = ? AND first = ?",
            case,
            first,
        )

    def finish(self, case: str, first: int, result: str) -> None:
        """Store the result of a unit, and with it make known that it was asked."""
        self.rows(
            "UPDATE units SET result = ? WHERE of_case = ? AND first = ?",
            result,
            case,
            first,
        )

    def asked_units(self, case: str) -> set[int]:
        """Return the first facts of the units of a case that were asked."""
        rows = self.rows(
            "SELECT first FROM units WHERE of_case = ? AND result IS NOT NULL", case
        )
        return {first for (first,) in rows}

    def results(self, case: str) -> list[str]:
        """Return the results of the units of a case that were asked, in the order of its facts."""
        rows = self.rows(
            "SELECT result FROM units WHERE of_case = ? AND result IS NOT NULL ORDER BY first",
            case,
        )
        return [result for (result,) in rows]

    def count(self, worker: str, counts: AnswerCounts) -> None:
        """Store the counts of a process."""
        self.rows(
            "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?)",
            worker,
            counts.current,
            counts.asked,
            json.dumps(counts.answered),
        )

    def end_counting(self, worker: str) -> None:
        """Note that a process asks nothing any more."""
        if self.is_there:
            self.rows("UPDATE counts SET current = '' WHERE worker = ?", worker)

    def counts(self) -> list[AnswerCounts]:
        """Return the counts of all processes."""
        if not self.is_there:
            return []
        return [
            AnswerCounts(
                current=current, asked=asked, answered=Counter(json.loads(answered))
            )
            for current, asked, answered in self.rows(
                "SELECT current, asked, answered FROM counts"
            )
        ]

    @property
    def is_there(self) -> bool:
        """True if a process has made the file."""
        return self.path is not None and self.path.exists()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            super().close()
            if self._alive is not None:
                self._alive.close()
            self._alive = None

    def _parsed(
        self,
        parse: Callable[[bytes], Any],
        line: bytes,
        source: int | None,
        number: int,
    ) -> Any:
        try:
            return parse(line)
        except ValueError as error:
            path = self.path if source is None else self._sources[source]
            raise _broken(f"{path}:{number}", error) from None

    def _opened(self) -> sqlite3.Connection:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._alive = connect(self.path.with_name(ALIVE), _PATIENCE)
            # Read, and never written: many processes can hold it.
            self._alive.execute("BEGIN")
            self._alive.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return super()._opened()


def _rows(
    source: int, path: Path, check: Callable[[int, str, str], str]
) -> Iterator[tuple[object, ...]]:
    try:
        with path.open("rb") as stream:
            for number, line in numbered(stream, path):
                try:
                    data = parse_line(line)
                except ValueError as error:
                    raise _broken(f"{path}:{number}", error) from None
                case, fact, to = data["case"], data["fact"], data.get("to", "")
                if lacking := check(source, case, fact):
                    raise ResponseError(
                        f"{path}:{number}: is a response of fact {fact} of {case}, which {lacking}; "
                        "allowed: the files as the run wrote them"
                    )
                usable = data["response"]["kind"] != "failed"
                asked, key = asked_digest(line), key_of_line(data)
                yield (
                    asked,
                    key,
                    case,
                    data["role"],
                    to,
                    usable,
                    source,
                    number,
                    0,
                    "",
                    number,
                    line,
                )
    except OSError as error:
        raise ResponseError(f"{path}: cannot be read: {error.strerror}") from None


def _broken(place: str, error: Exception) -> ResponseError:
    return ResponseError(
        f"{place}: is no recorded response: {error}; allowed: the file as the run wrote it"
    )
