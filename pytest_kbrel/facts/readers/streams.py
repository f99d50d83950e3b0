"""Tables and large JSON documents, piece by piece: the whole is never in memory."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import open_file
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import DEEPEST, LINE, size


def table(
    path: Path, delimiter: str
) -> Iterator[tuple[int, dict[str, str] | SuiteError]]:
    """Yield the rows of a table by column, each with the line on which it begins; empty cells are left out.

    The first yielded is the header: every column with its own name. Cells may be quoted, quotes are doubled
    inside, and a quoted cell may go over several lines. A row that has not the header's number of cells is
    yielded as an error. Raises ``SuiteError`` where the file cannot be read or has no header.
    """
    with open_file(path) as stream:
        yield from _rows(path, stream, delimiter)


def _rows(
    path: Path, stream: BinaryIO, delimiter: str
) -> Iterator[tuple[int, dict[str, str] | SuiteError]]:
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
                SuiteError(
                    f"not UTF-8: found byte 0x{error.object[error.start]:02x}",
                    path,
                    lines.number,
                ),
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
            fault = f"found {len(cells)} cells, the header has {len(columns)}: {', '.join(columns)}"
            yield line, SuiteError(fault, path, line)
        else:
            yield (
                line,
                {
                    name: cell
                    for name, cell in zip(columns, cells, strict=True)
                    if cell.strip()
                },
            )
    if columns is None:
        raise SuiteError("the file is empty; a table with a header is needed", path, 1)


def _columns(path: Path, line: int, cells: list[str]) -> list[str]:
    columns = [cell.strip() for cell in cells]
    for name in columns:
        if not name or columns.count(name) > 1:
            fault = f"column {name!r} stands twice" if name else "a column has no name"
            raise SuiteError(
                f"{fault}; allowed: a header with each column once", path, line
            )
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
            raise ValueError(
                f"found a row of more than {size(LINE)}; allowed: at most {size(LINE)} a row"
            )
        if b"\0" in raw:
            raise _NulError
        return raw.decode("utf-8-sig" if self.number == 1 else "utf-8")


_CHUNK = 1 << 20
_SPACE = re.compile(r"[ \t\r\n]*+")
# A lone quote opens a string whose end has not been read yet.
_MARK = re.compile(r'"(?:[^"\\]++|\\.)*+"|["\[\]{}]', re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR_END = re.compile(r"[,\]}\s]")


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

    Members of the object that are no arrays are passed over. Memory is that of the largest member. ``form``
    words what the file should look like. Raises ``SuiteError`` with the line where the document is broken.
    """
    with open_file(path) as stream:
        scanner = _Scanner(path, stream, form)
        opening = scanner.next_mark()
        if opening == "[":
            yield from scanner.array("")
        elif opening == "{":
            yield from scanner.members()
        else:
            raise scanner.error(
                f"found {opening!r}" if opening else "the file is empty"
            )
        if rest := scanner.peek():
            raise scanner.error(f"found {rest!r} behind the end of the document")


class _Scanner:
    """A window of text that moves over the file."""

    def __init__(self, path: Path, stream: BinaryIO, form: str) -> None:
        self.path = path
        self.stream = stream
        self.form = form
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.text = ""
        self.offset = 0
        self.line = 1
        self.decoded_lines = 1
        self.chunk = _CHUNK

    def error(self, fault: str) -> SuiteError:
        return SuiteError(f"not JSON: {fault}; {self.form}", self.path, self.line)

    def more(self) -> bool:
        """Read on and forget what lies behind; return False at the end of the file."""
        if len(self.text) - self.offset > LINE:
            raise self.error(
                f"one value is longer than {size(LINE)}; allowed: at most {size(LINE)}"
            )
        data = self.stream.read(self.chunk)
        try:
            read = self.decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            line = self.decoded_lines + error.object[: error.start].count(b"\n")
            fault = f"not UTF-8: found byte 0x{error.object[error.start]:02x}"
            raise SuiteError(f"{fault}; {self.form}", self.path, line) from None
        self.decoded_lines += read.count("\n")
        self.text = self.text[self.offset :] + read
        self.offset = 0
        return bool(data)

    def pass_to(self, offset: int) -> str:
        """Move on to an offset of the window and return what lies between, counting its lines."""
        passed = self.text[self.offset : offset]
        self.line += passed.count("\n")
        self.offset = offset
        return passed

    def peek(self) -> str:
        """Return the next character that is no space without taking it, ``""`` at the end."""
        while True:
            blank = _SPACE.match(self.text, self.offset)
            assert blank is not None
            self.pass_to(blank.end())
            if self.offset < len(self.text):
                return self.text[self.offset]
            if not self.more():
                return ""

    def next_mark(self) -> str:
        char = self.peek()
        if char:
            self.pass_to(self.offset + 1)
        return char

    def array(self, key: str) -> Iterator[Element]:
        """Yield the members of an array whose bracket has been taken."""
        if self.peek() == "]":
            self.next_mark()
            return
        while True:
            self.peek()
            line = self.line
            yield Element(key=key, line=line, text=self.value())
            mark = self.next_mark()
            if mark == "]":
                return
            if mark != ",":
                raise self.error(
                    f"found {mark!r} after a member of a list"
                    if mark
                    else "the list has no end"
                )

    def members(self) -> Iterator[Element]:
        """Yield the members of all arrays of an object whose brace has been taken."""
        if self.peek() == "}":
            self.next_mark()
            return
        while True:
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
            mark = self.next_mark()
            if mark == "}":
                return
            if mark != ",":
                raise self.error(
                    f"found {mark!r} after {key!r}"
                    if mark
                    else "the document has no end"
                )

    def value(self) -> str:
        """Take one value and return its text: brackets and quotes are balanced, all else is unchecked."""
        begin = self.peek()
        if begin == '"':
            return self.pass_to(self.end_of_string())
        if begin in ("{", "["):
            return self.pass_to(self.end_of_brackets())
        ahead = self.offset
        while not (end := _SCALAR_END.search(self.text, ahead)):
            ahead = len(self.text) - self.offset
            if not self.more():
                break
        text = self.text[self.offset : end.start() if end else len(self.text)]
        if not text:
            raise self.error("a value is missing")
        return self.pass_to(self.offset + len(text))

    def end_of_string(self) -> int:
        while not (match := _STRING.match(self.text, self.offset)):
            self.widen("a text in quotes has no end")
        self.chunk = _CHUNK
        return match.end()

    def end_of_brackets(self) -> int:
        depth, offset = 0, self.offset
        while True:
            match = _MARK.search(self.text, offset)
            if match is None or match[0] == '"':
                reached = (
                    len(self.text) if match is None else match.start()
                ) - self.offset
                self.widen("a bracket is never closed")
                offset = self.offset + reached
                continue
            offset = match.end()
            mark = match[0]
            if mark in "[{":
                depth += 1
                if depth > DEEPEST:
                    raise self.error(
                        f"nested more than {DEEPEST} levels deep; allowed: at most {DEEPEST}"
                    )
            elif mark in "]}":
                depth -= 1
                if not depth:
                    self.chunk = _CHUNK
                    return offset

    def widen(self, problem: str) -> None:
        # Twice as much each time, or a long text would be looked through again and again.
        self.chunk = max(_CHUNK, 2 * (len(self.text) - self.offset))
        if not self.more():
            raise self.error(problem)
