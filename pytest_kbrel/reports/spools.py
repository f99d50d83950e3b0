"""Spools: the responses that each worker keeps while a session runs, and their joining into one file."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.outputs import naming, new_file
from pytest_kbrel.records import Exchange
from pytest_kbrel.reports.responses import asked_in, numbered, to_line


def append_exchanges(path: Path, exchanges: Iterable[Exchange]) -> None:
    """Append exchanges, in order, to a worker's own spool file, which begins in an empty folder.

    The file is closed between calls: no killed worker holds any back.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path), path.open("ab") as stream:
        stream.writelines(map(to_line, exchanges))


def join_spools(
    spools: Sequence[Path], output: Path, order: Sequence[str]
) -> tuple[list[Path], Counter[str]]:
    """Merge workers' spools into one file: cases as in ``order``, each case's exchanges as they were made.

    Cases that ``order`` lacks follow by name. An exchange recorded twice, because its case ran again, is kept
    once, with the later response. A missing spool is that of a worker that had nothing to do. A torn last
    line is left out and reported; a line broken elsewhere is a ``ResponseError``. Where which line stands
    is written down in a temporary file: memory does not grow with the spools.

    Returns the spools whose last line a killed worker left unfinished, and how many lines there were of each
    case, repeated ones too, but not those that say what the model it is compared with answered.
    """
    present = [spool for spool in spools if spool.exists()]
    torn: list[Path] = []
    counts: Counter[str] = Counter()
    # No name: a temporary file that SQLite removes itself.
    with (
        closing(sqlite3.connect("", isolation_level=None)) as index,
        ExitStack() as stack,
    ):
        try:
            cases = _indexed(index, present, torn, counts)
            streams = [stack.enter_context(spool.open("rb")) for spool in present]
            rank = {case: at for at, case in enumerate(order)}
            with new_file(output, force=True) as joined:
                for case in sorted(
                    cases, key=lambda name: (rank.get(name, len(rank)), name)
                ):
                    for spool, at in index.execute(
                        "SELECT spool, at FROM places WHERE number = ? ORDER BY made",
                        (cases[case],),
                    ):
                        streams[spool].seek(at)
                        joined.buffer.write(streams[spool].readline())
        except sqlite3.Error as error:
            raise ResponseError(
                f"{output}: the spools cannot be joined: {error}"
            ) from None
    return torn, counts


def _indexed(
    index: sqlite3.Connection,
    spools: Sequence[Path],
    torn: list[Path],
    counts: Counter[str],
) -> dict[str, int]:
    """Index the last line of each exchange in SQLite; return the number of each case.

    Torn spools go to ``torn``, how many lines there are of each case to ``counts``.
    """
    cases: dict[str, int] = {}

    def places() -> Iterator[tuple[int, bytes, int, int]]:
        for number, spool in enumerate(spools):
            with spool.open("rb") as stream:
                at = 0
                for line_number, line in numbered(stream, spool):
                    if not line.endswith(b"\n"):
                        torn.append(spool)
                        break
                    try:
                        case, key, of_baseline = asked_in(line)
                    except ValueError as error:
                        raise ResponseError(
                            f"{spool}:{line_number}: is no recorded response: {error}"
                        ) from None
                    counts[case] += not of_baseline
                    yield cases.setdefault(case, len(cases)), key, number, at
                    at += len(line)

    index.execute(
        "CREATE TABLE places (made INTEGER PRIMARY KEY, number INTEGER, key BLOB, spool INTEGER, at INTEGER, "
        "UNIQUE (number, key))"
    )
    index.execute("BEGIN")
    index.executemany(
        "INSERT INTO places (number, key, spool, at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (number, key) DO UPDATE SET spool = excluded.spool, at = excluded.at",
        places(),
    )
    index.execute("COMMIT")
    return cases
