"""Dumps of facts as rows that SQL can read, and the templates that say what is asked about them."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pytest_kbrel.bounds import CAP
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.files import relation_keys
from pytest_kbrel.facts.located import Node, read_document
from pytest_kbrel.records import AnswerType, record
from pytest_kbrel.untrusted import MIB, lines

if TYPE_CHECKING:
    import duckdb

DumpFormat = Literal["csv", "tsv", "jsonl", "parquet"]
SUFFIXES: Mapping[str, DumpFormat] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
}
_COMMAS = {"csv": ",", "tsv": "\t"}
# Why a row is no question; the first that holds counts. Rows with one of the last two still name an entity.
REASONS = (
    "",
    "subject empty or of several lines",
    "popularity absent, negative or no number",
    "year absent",
    "newer than the year cut",
    "type absent",
    "relation without a template",
    "object empty or of several lines",
)
NO_TEMPLATE, NO_OBJECT = 6, 7

# What Python calls space and line ends, for a fact's texts are of one line without space around.
_SPACE = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
_BREAKS = r"[\n\r\x0b\x0c\x1c-\x1e\x{85}\x{2028}\x{2029}]"


@record
class Columns:
    """Names of a dump's columns.

    Of triples, a row is a fact, and its relation and object have columns. In a table (``relation`` and
    ``object`` are ``None``) a row is an entity, and each relation has a column. Year and type are not used
    where they are empty; ``None`` stands for columns of these names, if there are any.
    """

    subject: str = "subject"
    relation: str | None = "relation"
    object: str | None = "object"
    popularity: str = "popularity"
    year: str | None = None
    type: str | None = None


@record
class Dump:
    """A file of facts. ``quotes``: fields of CSV and TSV may be in double quotes."""

    path: Path
    format: DumpFormat
    quotes: bool = True


def format_of(path: Path) -> DumpFormat:
    """Return a dump's format by its suffix, which ``.gz`` may follow."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    if suffixes and suffixes[-1] in SUFFIXES:
        return SUFFIXES[suffixes[-1]]
    raise SuiteError(
        f"its name tells no format; allowed: a name in {', '.join(SUFFIXES)}, or --format",
        path,
    )


def columns_of(connection: duckdb.DuckDBPyConnection, dump: Dump) -> dict[str, str]:
    """Return the dump's columns with their SQL types; raises ``SuiteError`` on two of one name."""
    if dump.format in ("csv", "tsv"):
        names = _header(dump)
        for name in names:
            if names.count(name) > 1:
                raise SuiteError(
                    f"column {name!r} stands twice; allowed: names that differ",
                    dump.path,
                    1,
                )
        return dict.fromkeys(names, "VARCHAR")
    described = connection.execute(
        f"DESCRIBE SELECT * FROM {_reader(dump, {})}"
    ).fetchall()
    return {str(name): str(kind) for name, kind, *_ in described}


def _header(dump: Dump) -> list[str]:
    # Left to itself, DuckDB guesses the columns from the first rows, and differently from version to version.
    opened: Any = gzip.open if dump.path.suffix.lower() == ".gz" else open
    quote = '"' if dump.quotes else "\x1f"
    try:
        with opened(dump.path, "rb") as stream:
            # A packed file may unpack to a line of any length.
            texts = (raw.decode("utf-8-sig", "replace") for raw in lines(stream, MIB))
            rows = csv.reader(texts, delimiter=_COMMAS[dump.format], quotechar=quote)
            names = next(rows, [])
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise SuiteError(
            f"the line of column names cannot be read: {error}", dump.path, 1
        ) from None
    if not names:
        raise SuiteError(
            "no line of column names; allowed: a first line with the name of each column",
            dump.path,
            1,
        )
    return [name.strip() or f"column {number}" for number, name in enumerate(names, 1)]


def open_rows(
    connection: duckdb.DuckDBPyConnection,
    dump: Dump,
    columns: Columns,
    templates: Sequence[Template],
    until: int,
) -> Columns:
    """Make the relation ``rows``: number of the template, scope, subject, object, popularity, reason.

    A scope is what entities are bucketed within: their type, or the template's domain where the dump has no
    types. ``reason`` is an index of :data:`REASONS`. Returns the columns as they were used. Raises
    ``SuiteError`` on a column that is not there.
    """
    types = columns_of(connection, dump)
    columns = dataclasses.replace(
        columns,
        year="year" * ("year" in types) if columns.year is None else columns.year,
        type="type" * ("type" in types) if columns.type is None else columns.type,
    )
    sources = [] if columns.relation else [template.source for template in templates]
    wanted = [
        (name, f"--{option}")
        for option, name in dataclasses.asdict(columns).items()
        if name
    ]
    wanted += [(name, "a template's 'from'") for name in sources]
    for name, option in wanted:
        if name not in types:
            fault = f"no column {name!r} ({option}); allowed: {', '.join(types)}{nearest(name, types)}"
            raise SuiteError(fault, dump.path)
        if types[name].endswith("]") or types[name].startswith(
            ("STRUCT", "MAP", "UNION")
        ):
            raise SuiteError(
                f"column {name!r} ({option}) holds {types[name]}; allowed: one value a row "
                "(of several answers each has a row of its own)",
                dump.path,
            )
    names = list(dict.fromkeys(name for name, _ in wanted))
    connection.execute(
        "CREATE TABLE templates (number SMALLINT, relation TEXT, source TEXT, domain TEXT, question TEXT)"
    )
    connection.executemany(
        "INSERT INTO templates VALUES (?, ?, ?, ?, ?)",
        [
            (number, of.relation, of.source, of.domain, of.question)
            for number, of in enumerate(templates)
        ],
    )
    # Text is parsed once, on the way into a table; columns of Parquet are as quickly read again.
    kind = "VIEW" if dump.format == "parquet" else "TABLE"
    connection.execute(
        f"CREATE {kind} rows AS {_rows(_reader(dump, types, names), columns, sources, until)}"
    )
    return columns


def _reader(dump: Dump, types: Mapping[str, str], wanted: Sequence[str] = ()) -> str:
    if dump.format == "parquet":
        return f"read_parquet({_path(dump)})"
    texts = ", ".join(
        f"{_literal(name)}: 'VARCHAR'"
        for name in (wanted if dump.format == "jsonl" else types)
    )
    columns = f", columns={{{texts}}}" if texts else ""
    if dump.format == "jsonl":
        return f"read_json({_path(dump)}, format='newline_delimited'{columns})"
    quote = '"' if dump.quotes else ""
    return (
        f"read_csv({_path(dump)}, auto_detect=false, header=true, delim='{_COMMAS[dump.format]}', "
        f"quote='{quote}', escape='{quote}', nullstr=['', '\\N']{columns})"
    )


def _path(dump: Dump) -> str:
    # A path is a pattern to DuckDB; as sets of one, the characters of patterns stand for themselves.
    return _literal(re.sub(r"([*?\[])", r"[\1]", str(dump.path)))


def _rows(reader: str, columns: Columns, sources: Sequence[str], until: int) -> str:
    year, kind = columns.year, columns.type
    number = (
        f"regexp_extract(CAST({_column(year)} AS VARCHAR), '^\\s*(-?\\d{{1,4}})(?:$|\\D)', 1)"
        if year
        else ""
    )
    shared = [
        f"{_clean(_column(columns.subject))} AS subject",
        f"TRY_CAST({_column(columns.popularity)} AS DOUBLE) + 0.0 AS popularity",
        f"TRY_CAST({number} AS INTEGER) AS year" if year else "0 AS year",
        f"{_clean(_column(kind))} AS type" if kind else "'' AS type",
    ]
    if columns.relation and columns.object:
        raw = f"""SELECT {", ".join(shared)}, {_clean(_column(columns.object))} AS object, t.number, t.domain
            FROM {reader} AS dump LEFT JOIN templates AS t
            ON CAST({_column(columns.relation)} AS VARCHAR) = t.source"""
    else:
        cells = " ".join(
            f"WHEN {n} THEN {_clean(_column(name))}" for n, name in enumerate(sources)
        )
        raw = f"""SELECT {", ".join(shared)}, CASE t.number {cells} END AS object, t.number, t.domain
            FROM {reader} AS dump CROSS JOIN templates AS t"""
    scope = "type" if kind else "domain"
    return f"""
        SELECT number AS template, {scope} AS scope, subject, object, popularity, CAST(CASE
            WHEN subject IS NULL THEN 1
            WHEN popularity IS NULL OR NOT (popularity >= 0 AND popularity <= 1e300) THEN 2
            WHEN year IS NULL THEN 3
            WHEN year > {until} AND {bool(year)} THEN 4
            WHEN type IS NULL THEN 5
            WHEN number IS NULL THEN {NO_TEMPLATE}
            WHEN object IS NULL THEN {NO_OBJECT}
            ELSE 0 END AS TINYINT) AS reason
        FROM ({raw})"""


def _clean(column: str) -> str:
    """Return SQL for a column's text without space around it; NULL where it is blank or of several lines."""
    text = f"CAST({column} AS VARCHAR)"
    trimmed = f"trim({text}, {_literal(_SPACE)})"
    # Most texts are plain, and a plain one is told faster than it is trimmed.
    return (
        f"CASE WHEN regexp_full_match({text}, '[!-~]([ -~]*[!-~])?') THEN {text} "
        f"WHEN {trimmed} = '' OR regexp_matches({trimmed}, '{_BREAKS}') THEN NULL ELSE {trimmed} END"
    )


def _column(name: str) -> str:
    # The templates have columns as well, whose names the dump may have too.
    return 'dump."' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    # Table functions and views take no parameters.
    return "'" + text.replace("'", "''") + "'"


_KEYS = ("question", "label", "domain", "from", "cap", "answer_type")


@record
class Template:
    """One relation that is asked about.

    ``question`` has ``[X]`` for the subject, once. ``source`` is what the dump calls the relation: a value of
    its relation column, or the column of a table. ``cap`` is the most questions a bucket may have of it;
    ``None``: as for all.
    """

    relation: str
    question: str
    label: str
    domain: str
    source: str
    cap: int | None = None
    answer_type: Literal["", AnswerType] = ""


def read_templates(path: Path) -> tuple[Template, ...]:
    """Read a YAML mapping ``relation id -> {question, label, domain, from, cap, answer_type}``.

    Only ``question`` is needed: ``label`` and ``from`` are otherwise the id, ``domain`` is ``open``. Raises
    ``SuiteError`` with the line on the first mistake.
    """
    root = read_document(path)
    entries = root.mapping("a file of templates")
    if not entries:
        raise root.wrong("a file of templates", "a mapping with at least one relation")
    templates = [_template(name, entry) for name, entry in entries.items()]
    first: dict[str, str] = {}
    for template in templates:
        other = first.setdefault(template.source, template.relation)
        if other != template.relation:
            raise SuiteError(
                f"{other} and {template.relation} are both from {template.source!r}; "
                "allowed: one template for each relation of the dump",
                path,
                entries[template.relation].line,
            )
    return tuple(templates)


def _template(name: str, node: Node) -> Template:
    keys, about = relation_keys(name, node, f"template {name}", _KEYS, ("question",))
    question = keys["question"].text("question")
    if question.count("[X]") != 1:
        raise keys["question"].error(
            f"question must contain [X] exactly once, found {question.count('[X]')} times in {question!r}"
        )
    return Template(
        relation=name,
        question=question,
        source=keys["from"].text("from") if "from" in keys else name,
        cap=keys["cap"].integer(f"cap of {name}", CAP) if "cap" in keys else None,
        **about,
    )
