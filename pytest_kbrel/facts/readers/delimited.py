"""Tables as text: CSV and TSV, row by row."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.untrusted import LINE, size


def table(path: Path, delimiter: str) -> Iterator[tuple[int, dict[str, str] | SuiteError]]:
    """Yield the rows of a table by column, each with the line on which it begins; empty cells are left out.

    The first yielded is the header: every column with its own name. Cells may be quoted, quotes are doubled
    inside, and a quoted cell may go over several lines. A row that has not the header's number of cells is
    yielded as an error. Raises ``SuiteError`` where the file cannot be read or has no header.
    """
    try:
        with path.open("rb") as stream:
            yield from _rows(path, stream, delimiter)
    except OSError as error:
        raise SuiteError(f"cannot be read: {error.strerror}", path) from None


def _rows(path: Path, stream: BinaryIO, delimiter: str) -> Iterator[tuple[int, dict[str, str] | SuiteError]]:
    lines = _Lines(stream)
    # Lists of aliases outgrow the 128 KiB that a cell may have by default; the whole row is bounded.
    csv.field_size_limit(max(csv.field_size_limit(), LINE))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    columns: list[str] | None = None
    while True:
        line = lines.number + 1
        lines.row = 0
        try:
            cells = next(reader)
        except StopIteration:
            break
        except UnicodeDecodeError as error:
            # The row's other lines have been read by then; this one is to be mended.
            yield (
                lines.number,
                SuiteError(f"not UTF-8: found byte 0x{error.object[error.start]:02x}", path, lines.number),
            )
            continue
        except _NulError:
            problem = "found a NUL byte; allowed: text without one"
            yield lines.number, SuiteError(problem, path, lines.number)
            continue
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
        except csv.Error as error:
            yield line, SuiteError(f"not a row of the table: {error}", path, line)
            continue
        if not cells:
            continue
        if columns is None:
            columns = _columns(path, line, cells)
            yield line, dict(zip(columns, columns, strict=True))
        elif len(cells) != len(columns):
            found = f"found {len(cells)} cells, the header has {len(columns)}: {', '.join(columns)}"
            yield line, SuiteError(found, path, line)
        else:
            yield line, {name: cell for name, cell in zip(columns, cells, strict=True) if cell.strip()}
    if columns is None:
        raise SuiteError("the file is empty; a table with a header is needed", path, 1)


def _columns(path: Path, line: int, cells: list[str]) -> list[str]:
    columns = [cell.strip() for cell in cells]
    for name in columns:
        if not name or columns.count(name) > 1:
            found = f"column {name!r} stands twice" if name else "a column has no name"
            raise SuiteError(f"{found}; allowed: a header with each column once", path, line)
    return columns


class _NulError(Exception):
    """A line with a NUL byte."""


class _Lines:
    """The decoded lines of a file and the number of the last one; goes on behind a line that is not UTF-8.

    ``row`` is how many bytes of the row that is being read have been read; a caller begins it with 0.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.number = 0
        self.row = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        raw = self.stream.readline(LINE + 1)
        if not raw:
            raise StopIteration
        self.number += 1
        self.row += len(raw)
        if self.row > LINE:
            raise ValueError(f"found a row of more than {size(LINE)}; allowed: at most {size(LINE)} a row")
        if b"\0" in raw:
            raise _NulError
        return raw.decode("utf-8-sig" if self.number == 1 else "utf-8")
