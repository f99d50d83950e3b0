"""Kept answers that are broken, foreign or out of reach."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

from tests.hostile.row import PASSED, Row

ANSWERS = ".kbrel-cache/answers.sqlite"


def damaged_store(
    what: str, change: Callable[[Path], None], printed: str = "", exit: int = PASSED
) -> Row:
    """Return a row about the folder of kept answers, as an earlier run of the same model left it."""
    return Row(what, {".kbrel-cache": change}, exit, printed)


def written(content: bytes) -> Callable[[Path], None]:
    return lambda path: (path / "answers.sqlite").write_bytes(content) and None


def sql(*statements: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        connection = sqlite3.connect(path / "answers.sqlite")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()

    return change


def cut(path: Path) -> None:
    file = path / "answers.sqlite"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def flipped(path: Path) -> None:
    file = path / "answers.sqlite"
    content = bytearray(file.read_bytes())
    for offset in range(2048, len(content), 97):
        content[offset] ^= 0xFF
    file.write_bytes(bytes(content))


def misnamed(path: Path) -> None:
    """Break the statement of a table whose name is no text: SQLite says both."""
    file = path / "answers.sqlite"
    content = file.read_bytes().replace(b"tableanswers", b"table\xd3nswers")
    file.write_bytes(content.replace(b"CREATE TABLE answers", b"CREATE TABLX answers"))


def fifo(path: Path) -> None:
    (path / "answers.sqlite").unlink()
    os.mkfifo(path / "answers.sqlite")


ROWS = [
    damaged_store("a store that is empty", written(b"")),
    damaged_store(
        "a store that is text", written(b"no answers here\n" * 99), "answers.sqlite"
    ),
    damaged_store("a store that is cut off", cut),
    damaged_store("a store with flipped bytes", flipped),
    damaged_store("a store of a table without a name", misnamed, "answers.sqlite"),
    damaged_store(
        "a store of a later version", sql("pragma user_version = 99"), "answers.sqlite"
    ),
    damaged_store(
        "a store of another program", sql("pragma application_id = 7"), "answers.sqlite"
    ),
    damaged_store("a store that is a pipe nobody writes to", fifo),
    Row(
        "a file where the folder belongs",
        {".kbrel-cache": "text"},
        PASSED,
        ".kbrel-cache",
    ),
]
