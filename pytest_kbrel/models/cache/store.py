"""Answers kept from run to run, so that the same question is not put to the same model twice.

One SQLite file, ``answers.sqlite``, in a folder that may be shared: several processes of one machine read and
write it at once, and an answer that was put there stays there, whatever happens to the process.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.keys import digest_of
from pytest_kbrel.models.cache.location import make_folder, network_of
from pytest_kbrel.models.cache.machine_lease import Owner
from pytest_kbrel.records import Fingerprint, Generated, Scored
from pytest_kbrel.serialization import encoder, fields_of, from_wire, to_wire
from pytest_kbrel.untrusted import LINE, parse

FILE = "answers.sqlite"
SCHEMA_VERSION = 4
# Marks the file as ours, in SQLite's own header ("kbrl").
_APPLICATION = 0x6B62726C
# Seconds that a writer waits for the others.
PATIENCE = 60.0
_AT_ONCE = 500
# Not WITHOUT ROWID: answers are longer than what that is made for, and writing took twice the time.
_TABLES = (
    "CREATE TABLE models (id INTEGER PRIMARY KEY, digest TEXT UNIQUE NOT NULL, described TEXT NOT NULL)",
    "CREATE TABLE answers (key BLOB PRIMARY KEY, model INTEGER NOT NULL, created INTEGER NOT NULL, "
    "response TEXT NOT NULL, checksum BLOB NOT NULL, request TEXT, "
    "used INTEGER NOT NULL DEFAULT 0)",
)
# What came with versions 3 and 4: answers for an unfinished run only (journal.py), with what was asked, and
# whether the run that goes on has used them.
_JOURNALS = (
    "CREATE TABLE journals (digest TEXT PRIMARY KEY, run TEXT NOT NULL, who TEXT NOT NULL, "
    "entry TEXT NOT NULL, served TEXT NOT NULL, started INTEGER NOT NULL, checked INTEGER NOT NULL, "
    "failed INTEGER NOT NULL, note TEXT NOT NULL)"
)
_FROM_3 = (
    "ALTER TABLE answers ADD COLUMN used INTEGER NOT NULL DEFAULT 0",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_FROM_OLDER = {2: ("ALTER TABLE answers ADD COLUMN request TEXT", _JOURNALS, *_FROM_3), 3: _FROM_3}

Sound = Scored | Generated
_written = encoder(separators=(",", ":"))
T = TypeVar("T")


class Store:
    """The answers of all models in one folder; the folder is made at the first opening.

    ``patience`` is how many seconds a writer waits for another one.

    Raises :class:`StoreError`, naming the file and the way out, where it is unreadable, of another program or
    version, on a network folder or used by another machine, or may not be written.
    """

    def __init__(self, folder: Path, *, patience: float = PATIENCE) -> None:
        self.path = folder / FILE
        self._patience = patience
        if kind := network_of(folder):
            raise StoreError(
                f"{self.path}: is on a network folder ({kind}), where a file that several machines write is "
                "not safe; give a folder on a local disk with --kb-use-cache"
            )
        self._guarded(lambda: make_folder(folder))
        self._owner = Owner(folder)
        self._guarded(self._owner.hold)
        self._connection = self._guarded(self._open)
        self._opened = self._guarded(self._file)

    def get(self, keys: Sequence[str]) -> dict[str, Sound]:
        """Return the answers that are there, by key (hex). One that is not as it was put is an error."""

        def read() -> list[tuple[bytes, str, bytes]]:
            self._hold()
            found: list[tuple[bytes, str, bytes]] = []
            for start in range(0, len(keys), _AT_ONCE):
                some = [bytes.fromhex(key) for key in keys[start : start + _AT_ONCE]]
                places = ",".join("?" * len(some))
                found += self._connection.execute(
                    f"SELECT key, response, checksum FROM answers WHERE key IN ({places})", some
                ).fetchall()
            return found

        return {key.hex(): self.sound(key, text, kept) for key, text, kept in self._guarded(read)}

    def put(
        self,
        answers: Iterable[tuple[str, Sound]],
        model: Fingerprint,
        *,
        digest: str = "",
        requests: Mapping[str, str] | None = None,
    ) -> None:
        """Keep answers of a model, all of them or none; what another process has put there first stays.

        The model is known by its ``digest``, its own unless another is given. ``requests`` are what was
        asked, by key, where that is to be kept as well; such answers are used by who keeps them.
        """
        now = int(time.time())
        rows = []
        for hexed, answer in answers:
            key, text = bytes.fromhex(hexed), _text(answer)
            asked = (requests or {}).get(hexed)
            rows.append((key, now, text, _checksum(key, text), asked, asked is not None))
        named = (digest or _named(model)[0], _named(model)[1])

        def write() -> None:
            self._hold()
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                # Each time: another process may have taken the model away.
                self._connection.execute(
                    "INSERT OR IGNORE INTO models (digest, described) VALUES (?, ?)", named
                )
                (number,) = self._connection.execute(
                    "SELECT id FROM models WHERE digest = ?", named[:1]
                ).fetchone()
                self._connection.executemany(
                    f"INSERT OR IGNORE INTO answers VALUES (?, {int(number)}, ?, ?, ?, ?, ?)", rows
                )

        if rows:
            self._guarded(write)

    def query(self, *statements: tuple[str, Sequence[object]]) -> list[tuple[object, ...]]:
        """Run statements in one transaction; return the rows of the last."""

        def run() -> list[tuple[object, ...]]:
            self._hold()
            rows: list[tuple[object, ...]] = []
            with self._connection:
                self._connection.execute("BEGIN")
                for text, values in statements:
                    rows = self._connection.execute(text, values).fetchall()
            return rows

        return self._guarded(run)

    def shrink(self) -> None:
        """Give the room of what was deleted back to the disk."""

        def run() -> None:
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        self._guarded(run)

    def sound(self, key: bytes, text: str, checksum: bytes) -> Sound:
        """Read a row's answer; raises :class:`StoreError` where it is not what was put under this key."""
        try:
            if _checksum(key, text) != checksum:
                raise ValueError("its checksum is wrong")
            data = parse(text)
            return from_wire(Scored, data) if data["kind"] == "scored" else from_wire(Generated, data)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise StoreError(
                f"{self.path}: the answer {key.hex()[:12]} is broken: {error}; {self._way_out()}"
            ) from None

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _hold(self) -> None:
        # What is written to a deleted file is lost, and nothing else would say so.
        if self._owner.hold() and self._file() != self._opened:
            raise StoreError(
                f"{self.path}: was deleted or replaced while it was in use; the next run makes a new one"
            )

    def _file(self) -> tuple[int, int]:
        if not self.path.exists():
            return 0, 0
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        # Whoever shares the file could have written more into it than any answer has.
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LINE)
        try:
            # A commit is then safe from the end of the process, and cheap enough to have one for each answer.
            (mode,) = self._patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
            if mode != "wal":
                raise StoreError(
                    f"{self.path}: processes cannot share a file there (journal mode {mode}); give a folder "
                    "on a local disk with --kb-use-cache"
                )
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
            for table in (*_TABLES, _JOURNALS):
                connection.execute(table)
        elif application != _APPLICATION:
            raise StoreError(f"{self.path}: is the database of another program; {self._way_out()}")
        elif version in _FROM_OLDER:
            for change in _FROM_OLDER[version]:
                connection.execute(change)
        elif version != SCHEMA_VERSION:
            newer = "update pytest-kbrel, or " if version > SCHEMA_VERSION else ""
            raise StoreError(
                f"{self.path}: found schema version {version}, this pytest-kbrel knows {SCHEMA_VERSION}; "
                f"{newer}{self._way_out()}"
            )

    def _guarded(self, action: Callable[[], T]) -> T:
        try:
            return action()
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise StoreError(
                f"{self.path}: kept answers cannot be read or written: {error}; {self._way_out()}"
            ) from None

    def _patiently(self, action: Callable[[], T]) -> T:
        # SQLite's own waiting does not cover the change of the journal's mode.
        end = time.monotonic() + self._patience
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def _way_out(self) -> str:
        return (
            f"delete {self.path} (its answers are then asked for anew), or give another folder with "
            "--kb-use-cache"
        )


@functools.lru_cache
def _named(model: Fingerprint) -> tuple[str, str]:
    """Return a model's digest, and what is said of it where its answers are kept."""
    return digest_of(model), json.dumps(to_wire(model))


def _text(answer: Sound) -> str:
    return _written({"kind": "scored" if isinstance(answer, Scored) else "generated", **fields_of(answer)})


def _checksum(key: bytes, text: str) -> bytes:
    return hashlib.blake2b(key + text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
