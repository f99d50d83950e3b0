"""Rows, relations and ids, which all readers share; tables and large JSON documents, piece by piece.

Of neither all values are in memory.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.facts.files import LISTS, as_fact
from pytest_kbrel.facts.located import (
    describe,
    json_value,
    located,
    open_file,
    read_text,
    require_keys,
    unknown,
)
from pytest_kbrel.records import Fact, Relation, record
from pytest_kbrel.untrusted import DEEPEST, LINE, MIB, lines, size

S = TypeVar("S")
_SPACED_MARK = re.compile(r" +([.,;:!?])")
_DOUBLE_DOT = re.compile(r"(?<!\.)\.\.$")


@record
class Row:
    """One row of a source: a fact, or the error that it is none; ``line`` is where it begins.

    ``given``: the fact's id is the source's own, so that two facts may not share it.
    """

    path: Path
    line: int
    fact: Fact | None = None
    error: SuiteError | None = None
    given: bool = False


class Relations(dict[str, Relation]):
    """The relations a source brings, by id; it fills up while the rows are read."""

    def add(
        self, name: str, label: str = "", domain: str = "general", **more: Any
    ) -> str:
        """Add a relation unless it is there, and return its id, which is made of ``name``."""
        key = relation_id(name)
        if key not in self:
            self[key] = Relation(
                id=key, label=label or name, domain=domain, frames=(), **more
            )
        return key


Reader = Callable[[Path, Relations], Iterator[Row]]


def checked_rows(
    path: Path,
    source: Iterable[tuple[int, S | SuiteError]],
    convert: Callable[[S], tuple[Fact, bool]],
) -> Iterator[Row]:
    """Make a row of each numbered piece of a source; ``convert`` gives the fact, and if its id is given.

    A ``ValueError`` of ``convert`` becomes the row's error.
    """
    for line, piece in source:
        try:
            if isinstance(piece, SuiteError):
                raise piece
            fact, given = convert(piece)
        except SuiteError as error:
            yield Row(path=path, line=line, error=error)
        except ValueError as error:
            yield Row(path=path, line=line, error=SuiteError(str(error), path, line))
        else:
            yield Row(path=path, line=line, fact=fact, given=given)


def rows(
    path: Path,
    source: Iterable[tuple[int, S | SuiteError]],
    convert: Callable[[S], Mapping[str, Any]],
    *,
    dataset: str = "",
) -> Iterator[Row]:
    """Make a row of each numbered piece of a source; ``convert`` gives keys of the facts format.

    Their values are cleaned. What is left out is filled in: ``id`` from the content, ``dataset``, and
    ``answer_type`` where the object looks like a number or a time.
    """

    def filled(piece: S) -> tuple[Fact, bool]:
        value = {
            key: _cell(key, item)
            for key, item in convert(piece).items()
            if item not in (None, "", [])
        }
        given = "id" in value
        value.setdefault("object", None)
        if not given:
            value["id"] = content_id(value)
        if dataset:
            value.setdefault("dataset", dataset)
        fact = as_fact(value)
        # Every number and time has a digit, but for a bare month.
        if not fact.answer_type and any(map(str.isdigit, fact.object or "")):
            looks = answer_type_of(fact, None)
            if looks != "other":
                fact = dataclasses.replace(fact, answer_type=looks)
        return fact, given

    return checked_rows(path, source, filled)


def _cell(key: str, value: Any) -> Any:
    if key in LISTS:
        return answers(key, value)
    if key in ("needs", "any_wording"):
        return value
    if key == "popularity":
        return popularity(key, value)
    if key == "answer_range":
        if isinstance(value, str):
            return json_value(value, f"{key!r} holds two numbers: [118, 122]")
        # DuckDB has a type of its own for numbers with a point.
        return [float(end) if isinstance(end, Decimal) else end for end in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return clean(key, value)


def answered(
    relation: str, question: Any, what: str, right: Sequence[Any] | str
) -> dict[str, Any]:
    """Return the keys of a question with answers, which stand under ``what``; it is its own subject."""
    asked = clean("question", question)
    keys = {"relation": relation, "subject": asked, "question": asked}
    return keys | with_answers(what, right)


def with_answers(what: str, value: Any) -> dict[str, Any]:
    """Return the first of the right answers as the object and the others as aliases; one is needed."""
    right = answers(what, value)
    if not right:
        raise ValueError(f"{what!r} must hold at least one answer, found none")
    return {"object": right[0], "aliases": right[1:]}


def content_id(value: Mapping[str, Any]) -> str:
    """Return ``relation:subject:object``, for a question its relation and a digest of it and its answers."""
    if "question" not in value:
        return f"{value.get('relation')}:{value.get('subject')}:{value.get('object')}"
    content = [value["question"], value.get("object"), value.get("aliases", [])]
    digest = hashlib.sha256(
        json.dumps(content, ensure_ascii=False).encode()
    ).hexdigest()
    return f"{value.get('relation')}:{digest[:16]}"


def clean(what: str, value: Any) -> str:
    """Return a text or number as text of one line with single spaces; raises ``ValueError``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise ValueError(f"{what!r} must be text or a number, found {describe(value)}")
    return text


def answers(what: str, value: Any) -> list[str]:
    """Return the right answers of a source: a text, a number, a list of them, or such a list as JSON text.

    Objects may stand for them: ``{value, aliases}`` of TriviaQA, ``{text}`` of SQuAD, ``{answer}`` of KILT,
    where a place alone is none. Blank ones and repetitions, case apart, are left out. Nothing gives an empty
    list.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json_list(what, value)
    texts: dict[str, str] = {}
    for text in _flat(what, value):
        texts.setdefault(text.casefold(), text)
    return list(texts.values())


# In the order in which they are most like what a person would answer.
_ANSWERS = (
    *("value", "text", "answer", "aliases", "humananswers"),
    *("normalizedvalue", "normalizedaliases", "provenance"),
)


def _flat(what: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        named = {key.replace("_", "").casefold(): item for key, item in value.items()}
        if named.keys().isdisjoint(_ANSWERS):
            clean(what, value)
        value = [named.get(key) for key in _ANSWERS[:-1]]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(what, item)
    # TriviaQA has a word for no answer.
    elif value not in (None, "<unk>") and str(value).strip():
        yield clean(what, value)


def json_list(what: str, text: str) -> Sequence[Any]:
    """Return the list that stands as JSON inside a text."""
    value = json_value(text, f'{what!r} holds a JSON list: ["a", "b"]')
    if not isinstance(value, list):
        raise ValueError(f"{what!r} must hold a JSON list, found {describe(value)}")
    return value


def popularity(what: str, value: Any) -> float | None:
    """Return a popularity; one that is absent, empty or negative is not known."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{what!r} must be a number, found {describe(value)}"
        ) from None
    return None if number < 0 else number


def relation_id(name: str) -> str:
    """Return a name as a relation's id or domain: ASCII letters, digits, ``_`` and ``.``."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_.]+", "_", plain).strip("_.")
    if not words:
        raise ValueError(
            f"a name needs ASCII letters or digits, found {describe(name)}"
        )
    return words


def statement(what: str, text: Any) -> str:
    """Return a declarative template with ``[X]`` and ``[Y]`` once each, spaces before marks and a double full
    stop at the end removed."""
    cleaned = _DOUBLE_DOT.sub(".", _SPACED_MARK.sub(r"\1", clean(what, text)))
    for placeholder in ("[X]", "[Y]"):
        if cleaned.count(placeholder) != 1:
            raise ValueError(
                f"{what!r} must contain {placeholder} exactly once, found {cleaned!r}"
            )
    return cleaned


def with_unique_ids(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows with an id nobody has; one that says what an earlier one said names it.

    Facts say the same when relation, subject, object and question are equal. A later one becomes
    ``id#2``, ``id#3``, ... A source's own id on two facts that differ is an error. All that is kept in memory
    of a source are digests of ids and contents, about 0.25 kB a fact.
    """
    first: dict[int, str] = {}
    # How often an id was wanted.
    taken: dict[int, int] = {}
    for row in rows:
        if (fact := row.fact) is None:
            yield row
            continue
        content = hash((fact.relation, fact.subject, fact.object, fact.question))
        earlier, free, wanted = first.get(content, ""), fact.id, hash(fact.id)
        if not earlier and row.given and wanted in taken:
            message = f"id {fact.id!r} stands twice, for facts that differ; allowed: an id for each fact"
            error = SuiteError(message, row.path, row.line)
            yield dataclasses.replace(row, fact=None, error=error)
            continue
        while hash(free) in taken:
            taken[wanted] += 1
            free = f"{fact.id}#{taken[wanted]}"
        taken[hash(free)] = 1
        first.setdefault(content, free)
        if earlier or free != fact.id:
            fact = dataclasses.replace(fact, id=free, duplicate_of=earlier)
            row = dataclasses.replace(row, fact=fact)
        yield row


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
                    raise ValueError(_too_long())
                try:
                    yield raw.decode("utf-8-sig")
                except UnicodeDecodeError as error:
                    byte = raw[error.start]
                    raise ValueError(
                        f"not UTF-8: found byte 0x{byte:02x}; allowed: UTF-8, which spreadsheets call CSV UTF-8"
                    ) from None

        # Lists of aliases outgrow the 128 KiB that a cell may have by default; the whole row is bounded.
        csv.field_size_limit(max(csv.field_size_limit(), LINE))
        reader = csv.reader(decoded(), delimiter=delimiter, strict=True)
        columns: list[str] = []
        while True:
            line, begun = reader.line_num + 1, 0
            try:
                with located(path, line):
                    cells = next(reader, None)
            except csv.Error as error:
                yield line, SuiteError(f"not a row of the table: {error}", path, line)
                continue
            if cells is None:
                break
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


def _too_long() -> str:
    most = size(LINE)
    return f"found a row of more than {most}; allowed: at most {most} a row"


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
                    raise SuiteError(_too_long(), path, number)
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
