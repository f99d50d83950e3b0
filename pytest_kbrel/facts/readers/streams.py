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
_MARK = re.compile(r"[ \t\r\n]*+([\[\]{}:,]?)")
# Where values end, and no more: the texts are parsed by who reads them.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, strict=False)


def elements(path: Path, form: str) -> Iterator[tuple[int, str, str]]:
    """Yield the members of a document that is an array, or of all arrays in a document that is an object.

    Of each the line on which it begins, the key of the array, empty where that is the whole document, and its
    JSON text. Members of the object that are no arrays are passed over. Of the document the text is held, of
    its values one at a time. ``form`` words what the file should look like. Raises ``SuiteError`` with the
    line where the document is broken.
    """
    text, at, line = read_text(path, _LARGEST), 0, 1

    def error(fault: str) -> SuiteError:
        return SuiteError(f"not JSON: {fault}; {form}", path, line)

    def pass_to(end: int) -> str:
        nonlocal at, line
        passed, at = text[at:end], end
        line += passed.count("\n")
        return passed

    def take(marks: str = "") -> str:
        """Pass white space, and behind it one of the marks, which is returned; empty where none is there."""
        mark = _MARK.match(text, at)
        assert mark is not None
        taken = mark[1] if mark[1] and mark[1] in marks else ""
        pass_to(mark.start(1) + len(taken))
        return taken

    def value() -> str:
        try:
            end = _DECODER.raw_decode(text, at)[1]
        except json.JSONDecodeError as fault:
            raise error(fault.msg) from None
        except RecursionError:
            raise error(f"nested more than {DEEPEST} levels deep") from None
        if end - at > LINE:
            most = size(LINE)
            raise error(f"one value is longer than {most}; allowed: at most {most}")
        return pass_to(end)

    def places(closing: str) -> Iterator[None]:
        """Stop at each member of a list or object whose bracket has been taken."""
        mark = take(closing) or ","
        while mark == ",":
            take()
            yield
            mark = take("," + closing)
        if not mark:
            shown = repr(text[at]) if at < len(text) else "the end of the file"
            raise error(f"found {shown}; allowed: ',' or {closing!r}")

    def array(key: str) -> Iterator[tuple[int, str, str]]:
        for _ in places("]"):
            yield line, key, value()

    opening = take("[{")
    if opening == "[":
        yield from array("")
    elif opening:
        for _ in places("}"):
            if text[at : at + 1] != '"':
                raise error("a key in quotes is missing")
            key = value()[1:-1]
            if not take(":"):
                raise error(f"no ':' after the key {key!r}")
            if take("["):
                yield from array(key)
            else:
                value()
    else:
        raise error(f"found {text[at]!r}" if at < len(text) else "the file is empty")
    take()
    if at < len(text):
        raise error(f"found {text[at]!r} behind the end of the document")
