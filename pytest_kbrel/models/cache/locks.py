"""Locks on files that end with the process that holds them, however that ends."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_kbrel.errors import StoreError


class Lock:
    """A lock that one process at a time can hold. The kernel frees it when its holder dies.

    The file is empty; SQLite is asked to lock it, since that can do so on every system.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection: sqlite3.Connection | None = None

    def take(self, patience: float = 0.0) -> bool:
        """Take the lock within ``patience`` seconds; tell whether that was possible.

        Raises :class:`StoreError` where the file cannot be made or locked at all.
        """
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(self.path, timeout=patience, isolation_level=None)
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            if "locked" in str(error):
                return False
            raise StoreError(
                f"{self.path}: cannot be locked: {error}; give another folder with --kb-use-cache"
            ) from None
        self._connection = connection
        return True

    def free(self) -> None:
        """Let the lock go, if it is held. Its file stays: whoever waits for it has it open."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None


def is_held(path: Path, patience: float = 1.0) -> bool:
    """Tell whether a living process holds the lock at ``path``.

    Others may be asking the same just now, so that it is tried for ``patience`` seconds.
    """
    lock = Lock(path)
    if not path.exists():
        return False
    try:
        return not lock.take(patience)
    finally:
        lock.free()
