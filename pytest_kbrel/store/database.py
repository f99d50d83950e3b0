"""SQLite files of ours, which threads and processes share, and lock files, which SQLite locks on every system."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pytest_kbrel.errors import StoreError

# Marks a file as ours, in SQLite's own header ("kbrl").
_APPLICATION = 0x6B62726C


def connect(path: Path | str, patience: float) -> sqlite3.Connection:
    """Open a file; whoever waits for another process does so for ``patience`` seconds."""
    # The garbage collector may close a file in whichever thread it runs.
    return sqlite3.connect(
        path, timeout=patience, isolation_level=None, check_same_thread=False
    )


class Database:
    """A SQLite file of ours, opened at its first use and made where it is not there.

    With the place ``""`` it is a temporary file of this object's own. All methods raise :class:`StoreError`:
    ``trouble`` says in it what cannot be done, ``way_out`` what to do.
    """

    # What a subclass states of its file.
    version = 1
    tables: ClassVar[tuple[str, ...]]
    synchronous = "OFF"
    way_out = ""

    def __init__(self, place: Path | str, trouble: str, patience: float) -> None:
        self._place, self._trouble, self._patience = place, trouble, patience
        self._file: sqlite3.Connection | None = None
        self._lock = threading.RLock()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Hand out the open file, to one thread at a time."""
        with self._lock:
            try:
                if self._file is None:
                    self._file = self._opened()
            except (sqlite3.Error, OSError, UnicodeError) as error:
                raise self.error(f"{self._trouble}: {error}") from None
            try:
                yield self._file
            except (sqlite3.Error, UnicodeError) as error:
                raise self.error(f"{self._trouble}: {error}") from None

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Hand out the open file for a transaction, which is written whole or not at all."""
        with self.reading() as file:
            file.execute("BEGIN IMMEDIATE")
            with file:
                yield file

    def rows(self, text: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement with its values; return its rows."""
        with self.reading() as file:
            return file.execute(text, values).fetchall()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def error(self, what: str) -> StoreError:
        """Return the error that says ``what`` is wrong, and the way out."""
        return StoreError("; ".join(filter(None, (what, self.way_out))))

    def _opened(self) -> sqlite3.Connection:
        file = connect(self._place, self._patience)
        try:
            file.execute(f"PRAGMA synchronous = {self.synchronous}")
            file.execute("BEGIN IMMEDIATE")
            with file:
                self._prepare(file)
        except BaseException:
            file.close()
            raise
        return file

    def _prepare(self, file: sqlite3.Connection) -> None:
        """Make the tables of a new file, and refuse one of another program or version."""
        ((application,), (version,), (tables,)) = (
            file.execute(text).fetchone()
            for text in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if not tables and not application:
            file.execute(f"PRAGMA application_id = {_APPLICATION}")
            file.execute(f"PRAGMA user_version = {self.version}")
            for table in self.tables:
                file.execute(table)
        elif application != _APPLICATION:
            raise self.error(f"{self._place}: is the database of another program")
        elif version != self.version:
            newer = "update pytest-kbrel, or " if version > self.version else ""
            raise StoreError(
                f"{self._place}: found schema version {version}, this pytest-kbrel knows {self.version}; "
                f"{newer}{self.way_out}"
            )


class Lock:
    """Lock file that one process at a time can hold; the kernel frees it when its holder dies.

    The file is empty. SQLite locks it, since SQLite can do so on every system.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: sqlite3.Connection | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock within ``patience`` seconds; return False if another process holds it.

        Raises :class:`StoreError` if the file cannot be made or locked at all.
        """
        try:
            self._file = connect(self.path, patience)
            self._file.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            self.free()
            if "locked" in str(error):
                return False
            raise StoreError(
                f"{self.path}: cannot be locked: {error}; give another folder with --kb-use-cache"
            ) from None
        return True

    def free(self) -> None:
        """Release the lock if it is held. Its file stays: processes that wait for it have it open."""
        if self._file is not None:
            self._file.close()
        self._file = None


def is_held(path: Path, patience: float = 1.0) -> bool:
    """Return True if a living process holds the lock at ``path``.

    The lock is tried for ``patience`` seconds, since other processes may be trying it as well.
    """
    lock = Lock(path)
    if not path.exists():
        return False
    try:
        return not lock.take(patience)
    finally:
        lock.free()


# File systems that another machine may write at the same time, as Linux names them.
_NETWORK = re.compile(
    "nfs|cifs|smb|afs|ceph|lustre|gpfs|beegfs|gluster|orangefs|panfs|wekafs|"
    r"fuse\.(sshfs|gluster|ceph|rclone|s3fs|gcsfuse|juicefs)"
)
_MOUNTS = Path("/proc/self/mounts")


def network_of(folder: Path, mounts: str | None = None) -> str:
    """Return the name of a folder's file system if that is a network's, else ``""``.

    The folder need not exist. Linux says so in ``/proc/self/mounts`` (``mounts`` are its lines), Windows in
    the path of a share. Other systems do not say, and nothing is refused there.
    """
    path, kind = folder.resolve(), ""
    if path.drive.startswith("\\\\"):
        return "Windows share"
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return ""
    depth = -1
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = Path(re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), fields[1]))
        # Of two mounts at one path the later one is seen.
        if path.is_relative_to(mount) and len(mount.parts) >= depth:
            depth, kind = len(mount.parts), fields[2]
    return kind if _NETWORK.match(kind) else ""
