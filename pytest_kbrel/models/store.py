"""Answers kept from run to run, so that the same question is not put to the same model twice.

One SQLite file, ``answers.sqlite``, in a folder that may be shared: several processes read and write it at
once, and an answer that was put there stays there, whatever happens to the process.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.records import Fingerprint, Generated, GenerateRequest, Request, Scored
from pytest_kbrel.wire import from_wire, to_wire

FILE = "answers.sqlite"
SCHEMA_VERSION = 1
# Marks the file as ours, in SQLite's own header ("kbrl").
_APPLICATION = 0x6B62726C
# Seconds that a writer waits for the others.
_PATIENCE = 60.0
_AT_ONCE = 500

Sound = Scored | Generated
T = TypeVar("T")


class Store:
    """The answers of all models in one folder; the folder is made at the first opening.

    Raises :class:`StoreError`, naming the file and the way out, where it is unreadable, of another program or
    of a newer version, or may not be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._guarded(lambda: folder.mkdir(parents=True, exist_ok=True))
        self._connection = self._guarded(self._open)

    def get(self, keys: Sequence[str]) -> dict[str, Sound]:
        """Return the answers that are there, by key."""

        def read() -> list[tuple[str, str]]:
            found: list[tuple[str, str]] = []
            for start in range(0, len(keys), _AT_ONCE):
                some = list(keys[start : start + _AT_ONCE])
                places = ",".join("?" * len(some))
                found += self._connection.execute(
                    f"SELECT key, response FROM answers WHERE key IN ({places})", some
                ).fetchall()
            return found

        return {key: self._read(key, text) for key, text in self._guarded(read)}

    def put(self, answers: Iterable[tuple[str, Sound]]) -> None:
        """Keep answers, all of them or none; what another process has put there first stays."""
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        rows = [(key, json.dumps(_tagged(answer), allow_nan=False), now) for key, answer in answers]

        def write() -> None:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", rows)

        if rows:
            self._guarded(write)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            # A commit is then safe from the end of the process, and cheap enough to have one for each answer.
            _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            self._prepare(connection)
            connection.execute("COMMIT")
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables and not application:
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(
                "CREATE TABLE answers (key TEXT PRIMARY KEY, response TEXT NOT NULL, created TEXT NOT NULL) "
                "WITHOUT ROWID"
            )
        elif application != _APPLICATION:
            raise StoreError(f"{self.path}: is the database of another program; {self._way_out()}")
        elif version != SCHEMA_VERSION:
            raise StoreError(
                f"{self.path}: found schema version {version}, this pytest-kbrel knows {SCHEMA_VERSION}; "
                f"update pytest-kbrel, or {self._way_out()}"
            )

    def _read(self, key: str, text: str) -> Sound:
        try:
            data = json.loads(text)
            return from_wire(Scored, data) if data["kind"] == "scored" else from_wire(Generated, data)
        except (ValueError, TypeError, KeyError) as error:
            raise StoreError(
                f"{self.path}: the answer {key[:12]} is broken: {error!r}; {self._way_out()}"
            ) from None

    def _guarded(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"{self.path}: kept answers cannot be read or written: {error}; {self._way_out()}"
            ) from None

    def _way_out(self) -> str:
        return (
            f"delete {self.path} (its answers are then asked for anew), or give another folder with "
            "--kb-use-cache"
        )


def key_of(model: Fingerprint, request: Request) -> str:
    """Return the key of an answer: one digest of who answers and of what was asked, how.

    A checkpoint is known by its contents, however it is called and wherever it lies or runs; a model behind a
    server by its name and the server's address, for nothing else is known of it.
    """
    kind = "generate" if isinstance(request, GenerateRequest) else "score"
    asked = {"model": identity(model), "kind": kind, "request": to_wire(request)}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def identity(model: Fingerprint) -> dict[str, object]:
    """Return what makes two models one as far as their answers go."""
    found: dict[str, object] = {
        "backend": model.backend,
        "weights": model.weights_digest,
        "tokenizer": model.tokenizer_digest,
        "dtype": model.dtype,
        "derived": model.derived,
        "chat_template": model.chat_template,
        "adds_bos": model.adds_bos,
    }
    if not model.weights_digest:
        found |= {"name": model.architecture, "server": model.device}
    return found


def _tagged(answer: Sound) -> dict[str, object]:
    return {"kind": "scored" if isinstance(answer, Scored) else "generated", **to_wire(answer)}


def _patiently(action: Callable[[], T]) -> T:
    # SQLite's own waiting does not cover the change of the journal's mode.
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return action()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)
