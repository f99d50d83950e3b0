"""Tables and large JSON documents, piece by piece: of neither all values are in memory."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.located import (
    located,
    open_file,
    read_text,
    require_keys,
    unknown,
)
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import DEEPEST, LINE, MIB, lines, size


def delimiter_of(path: Path) -> str:
    """Return what parts the columns of a table in its first line: a comma, a semicolon or a tab.

    Spreadsheets write semicolons where the comma is the decimal point.
    """
    with open_file(path) as stream:
        head = stream.readline(MIB).decode("utf-8", "replace")
    return max(",;\t", key=head.count)


def table(
    path: Path, delimiter: str
) -> Iterator[tuple[int, dict[str, str] | SuiteError]]:
    """Yield the rows of a table by column, each with the line on which it begins; empty cells are left out.

    The first yielded is the header: every column with its own name. Cells may be quoted, quotes are doubled
    inside, and a quoted cell may go over several lines. Rows of blank cells are left out. A row that has not
    the header's number of cells is yielded as an error. Raises ``SuiteError`` where the file cannot be read
    or has no header.
    """
    with open_file(path) as stream:
        begun = 0

        def decoded() -> Iterator[str]:
            nonlocal begun
            for raw in lines(stream):
                begun += len(raw)
                if begun > LINE:
                    most = size(LINE)
                    raise ValueError(
                        f"found a row of more than {most}; allowed: at most {most} a row"
                    )
                yield raw.decode("utf-8-sig")

        # Lists of aliases outgrow the 128 KiB that a cell may have by default; the whole row is bounded.
        csv.field_size_limit(max(csv.field_size_limit(), LINE))
        reader = csv.reader(decoded(), delimiter=delimiter, strict=True)
        columns: list[str] = []
        while True:
            line, begun = reader.line_num + 1, 0
            try:
                cells = next(reader, None)
                if cells is None:
                    break
            except UnicodeDecodeError as error:
                byte = error.object[error.start]
                fault = f"not UTF-8: found byte 0x{byte:02x}; allowed: UTF-8, which spreadsheets call CSV UTF-8"
                raise SuiteError(fault, path, line) from None
            except csv.Error as error:
                yield line, SuiteError(f"not a row of the table: {error}", path, line)
                continue
            except ValueError as error:
                raise SuiteError(str(error), path, line) from None
            if not any(map(str.strip, cells)):
                continue
            if not columns:
                columns = [cell.strip() for cell in cells]
                if "" in columns or len({*columns}) < len(columns):
                    named = ", ".join(map(repr, columns))
                    fault = (
                        f"found the columns {named}; allowed: each column once, by name"
                    )
                    raise SuiteError(fault, path, line)
            if len(cells) == len(columns):
                pairs = zip(columns, cells, strict=True)
                yield line, {name: cell for name, cell in pairs if cell.strip()}
            else:
                fault = f"found {len(cells)} cells, the header has {len(columns)}: {', '.join(columns)}"
                yield line, SuiteError(fault, path, line)
    if not columns:
        raise SuiteError("the file is empty; a table with a header is needed", path, 1)


def check_header(
    path: Path,
    source: Iterator[tuple[int, Any]],
    maker: str,
    needed: Sequence[str],
    known: Sequence[str] = (),
) -> None:
    """Take the header from a table; raises ``SuiteError`` where it lacks columns, or has others than ``known``."""
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    with located(path, line or None):
        for name in header:
            if known and name not in known:
                raise ValueError(unknown("column", name, known))
        try:
            require_keys(header, *needed)
        except ValueError as error:
            raise ValueError(f"not {maker}'s header: {error}") from None


# What DuckDB may take to read Parquet.
_MEMORY = "1GB"


def parquet(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the header of a Parquet file as :func:`table` does, then the rows with their numbers.

    Raises ``MissingExtraError`` without DuckDB.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "data", "reading Parquet") from None
    try:
        with duckdb.connect(config={"memory_limit": _MEMORY}) as connection:
            result = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            columns = [column[0] for column in result.description or ()]
            yield 0, dict(zip(columns, columns, strict=True))
            # One at a time: what is small in the file may be large in memory.
            for number, cells in enumerate(iter(result.fetchone, None), 1):
                if sum(len(cell) for cell in cells if isinstance(cell, str)) > LINE:
                    most = size(LINE)
                    fault = f"found a row of more than {most}; allowed: at most {most} a row"
                    raise SuiteError(fault, path, number)
                yield number, dict(zip(columns, cells, strict=True))
    except duckdb.Error as error:
        raise SuiteError(
            f"cannot be read as Parquet: {str(error).splitlines()[0]}", path
        ) from None


# A document of more is read as JSON Lines, which may be of any size.
_LARGEST = 512 * MIB
_SPACE = re.compile(r"[ \t\r\n]*+")
# Where values end, and no more: the texts are parsed by who reads them.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


@record
class Element:
    """One member of an array: its JSON text, the line on which it begins, and the key of the array.

    ``key`` is empty where the array is the whole document.
    """

    key: str
    line: int
    text: str


def elements(path: Path, form: str) -> Iterator[Element]:
    """Yield the members of a document that is an array, or of all arrays in a document that is an object.

    Members of the object that are no arrays are passed over. Of the document the text is held, of its values
    one at a time. ``form`` words what the file should look like. Raises ``SuiteError`` with the line where
    the document is broken.
    """
    scanner = _Scanner(path, form)
    opening = scanner.next_mark()
    if opening == "[":
        yield from scanner.array("")
    elif opening == "{":
        yield from scanner.members()
    else:
        raise scanner.error(f"found {opening!r}" if opening else "the file is empty")
    if rest := scanner.peek():
        raise scanner.error(f"found {rest!r} behind the end of the document")


class _Scanner:
    """A place in the text of a document, which moves on."""

    def __init__(self, path: Path, form: str) -> None:
        self.path, self.form = path, form
        self.text = read_text(path, _LARGEST)
        self.offset, self.line = 0, 1

    def error(self, fault: str) -> SuiteError:
        return SuiteError(f"not JSON: {fault}; {self.form}", self.path, self.line)

    def pass_to(self, offset: int) -> str:
        """Move on to an offset and return what lies between, counting its lines."""
        passed = self.text[self.offset : offset]
        self.line += passed.count("\n")
        self.offset = offset
        return passed

    def peek(self) -> str:
        """Return the next character that is no space without taking it, ``""`` at the end."""
        blank = _SPACE.match(self.text, self.offset)
        assert blank is not None
        self.pass_to(blank.end())
        return self.text[self.offset : self.offset + 1]

    def next_mark(self) -> str:
        char = self.peek()
        self.pass_to(self.offset + len(char))
        return char

    def places(self, closing: str) -> Iterator[None]:
        """Stop at each member of a list or object whose bracket has been taken."""
        if self.peek() == closing:
            self.next_mark()
            return
        mark = ","
        while mark == ",":
            yield
            mark = self.next_mark()
        if mark != closing:
            shown = repr(mark) if mark else "the end of the file"
            raise self.error(f"found {shown}; allowed: ',' or {closing!r}")

    def array(self, key: str) -> Iterator[Element]:
        """Yield the members of an array whose bracket has been taken."""
        for _ in self.places("]"):
            self.peek()
            line = self.line
            yield Element(key=key, line=line, text=self.value())

    def members(self) -> Iterator[Element]:
        """Yield the members of all arrays of an object whose brace has been taken."""
        for _ in self.places("}"):
            if self.peek() != '"':
                raise self.error("a key in quotes is missing")
            key = self.value()[1:-1]
            if self.next_mark() != ":":
                raise self.error(f"no ':' after the key {key!r}")
            if self.peek() == "[":
                self.next_mark()
                yield from self.array(key)
            else:
                self.value()

    def value(self) -> str:
        """Take one value and return its text."""
        self.peek()
        try:
            end = _DECODER.raw_decode(self.text, self.offset)[1]
        except json.JSONDecodeError as error:
            raise self.error(error.msg) from None
        except RecursionError:
            raise self.error(f"nested more than {DEEPEST} levels deep") from None
        if end - self.offset > LINE:
            most = size(LINE)
            raise self.error(
                f"one value is longer than {most}; allowed: at most {most}"
            )
        return self.pass_to(end)
