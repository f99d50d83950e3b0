"""Texts of bytes kept outside memory: what a plan must remember of questions, which are many."""

from __future__ import annotations

import sqlite3
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.prefix_tree import distinct_in_order
from pytest_kbrel.models.tokens import Ids

T = TypeVar("T")


class Aside:
    """Bytes, each once, in a temporary file of SQLite's that has no name and ends with this object.

    Raises :class:`KbrelError` where that file cannot be written, as on a full disk.
    """

    def __init__(self) -> None:
        # Any thread may end this object.
        self._file = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._file.execute("CREATE TABLE kept (bytes BLOB PRIMARY KEY) WITHOUT ROWID")
        weakref.finalize(self, self._file.close)

    def add(self, some: Iterable[bytes]) -> list[bool]:
        """Keep ``some``; tell of each, in order, whether it is new."""

        def write() -> list[bool]:
            # Ends the transaction, whatever comes.
            with self._file:
                self._file.execute("BEGIN")
                statement = "INSERT OR IGNORE INTO kept VALUES (?)"
                return [self._file.execute(statement, (one,)).rowcount > 0 for one in some]

        return _guarded(write)

    def in_order(self) -> Iterator[bytes]:
        """Yield all that is kept, sorted."""
        rows = _guarded(lambda: self._file.execute("SELECT bytes FROM kept ORDER BY bytes"))
        while (row := _guarded(rows.fetchone)) is not None:
            yield row[0]


class Tree:
    """The prefix tree of sequences of token ids, kept outside memory."""

    def __init__(self) -> None:
        self._kept = Aside()

    def add(self, sequences: Sequence[Ids]) -> None:
        """Put sequences into the tree."""
        # As bytes they sort as they do as numbers.
        self._kept.add(struct.pack(f">{len(ids)}I", *ids) for ids in sequences)

    def tokens(self) -> int:
        """Return how many nodes the tree has: the least that can be fed."""
        return distinct_in_order(struct.unpack(f">{len(text) // 4}I", text) for text in self._kept.in_order())


def _guarded(action: Callable[[], T]) -> T:
    try:
        return action()
    except sqlite3.Error as error:
        raise KbrelError(
            f"a plan needs room for temporary files, and one cannot be written: {error}; allowed: another "
            "folder for them (TMPDIR, or SQLITE_TMPDIR), or fewer slices at a time"
        ) from None
