"""The project's own facts as JSON Lines, CSV and Parquet: the same keys, as keys or as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import MissingExtraError, SuiteError
from pytest_kbrel.facts.files import (
    FORM,
    KEYS,
    LISTS,
    REQUIRED,
    as_fact,
    read_relations,
)
from pytest_kbrel.facts.located import json_rows, unknown
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    checked_rows,
    clean,
    json_list,
    rows,
)
from pytest_kbrel.facts.readers.streams import table
from pytest_kbrel.records import Fact
from pytest_kbrel.untrusted import LINE, size

# What DuckDB may take to read Parquet.
_MEMORY = "1GB"
# It hands out so many rows at a time, and they may have so many bytes.
_AT_ONCE, _ROWS = 2048, 4 * LINE


def read_jsonl(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the facts format itself, as strictly as a suite does, but for ids that stand twice."""
    has_relations = _read_relations(path, relations)

    def strict(value: dict[str, Any]) -> tuple[Fact, bool]:
        if value.keys().isdisjoint(REQUIRED):
            raise ValueError(f"no fact: found {', '.join(value) or 'nothing'}; {FORM}")
        fact = as_fact(value)
        if not has_relations:
            relations.add(fact.relation)
        return fact, "id" in value

    return checked_rows(path, json_rows(path, FORM), strict)


def read_csv(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table with a header of the facts format's keys; lists stand as JSON in their cells."""
    source = table(path, ",")
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    return _table(path, relations, source, tuple(header), line)


def read_parquet(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table whose columns are the facts format's keys; the line of an error is the row's number.

    Raises ``MissingExtraError`` without DuckDB.
    """
    try:
        import duckdb
    except ImportError:
        raise MissingExtraError("duckdb", "data", "reading Parquet") from None
    try:
        with duckdb.connect(config={"memory_limit": _MEMORY}) as connection:
            _check_size(path, connection)
            result = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
            columns = tuple(column[0] for column in result.description or ())
            yield from _table(path, relations, _batches(result, columns), columns, None)
    except duckdb.Error as error:
        raise SuiteError(
            f"cannot be read as Parquet: {str(error).splitlines()[0]}", path
        ) from None


def _check_size(path: Path, connection: Any) -> None:
    """Refuse what is small in the file and large in memory: a page may say once what all rows have."""
    kinds = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]
    ).fetchall()
    lengths = [
        f"coalesce(strlen({cell if kind == 'VARCHAR' else f'CAST({cell} AS VARCHAR)'}), 0)"
        for cell, kind in (
            ('"' + name.replace('"', '""') + '"', kind) for name, kind, *_ in kinds
        )
    ]
    large = connection.execute(
        f"SELECT min(n) FROM (SELECT file_row_number AS n, {' + '.join(lengths)} AS length "
        f"FROM read_parquet(?, file_row_number = true)) GROUP BY n // {_AT_ONCE} "
        f"HAVING sum(length) > {_ROWS} ORDER BY 1 LIMIT 1",
        [str(path)],
    ).fetchone()
    if large is not None:
        fault = f"found more than {size(_ROWS)} in {_AT_ONCE:,} rows; allowed: at most {size(_ROWS)}"
        raise SuiteError(fault, path, large[0] + 1)


def _batches(
    result: Any, columns: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while batch := result.fetchmany(_AT_ONCE):
        for cells in batch:
            number += 1
            yield number, dict(zip(columns, cells, strict=True))


def _table(
    path: Path,
    relations: Relations,
    source: Iterator[tuple[int, Any]],
    columns: tuple[str, ...],
    line: int | None,
) -> Iterator[Row]:
    for name in columns:
        if name not in KEYS:
            hint = "; columns are separated by commas" if len(columns) == 1 else ""
            raise SuiteError(unknown("column", name, KEYS) + hint, path, line)
    for name in REQUIRED:
        if name not in columns:
            fault = f"no column {name!r}; found: {', '.join(columns)}"
            raise SuiteError(f"{fault}; needed: {', '.join(REQUIRED)}", path, line)
    has_relations = _read_relations(path, relations)

    def fact(value: Mapping[str, Any]) -> Mapping[str, Any]:
        texts = [key for key in LISTS if isinstance(value.get(key) or None, str)]
        if not has_relations and value.get("relation"):
            relations.add(clean("relation", value["relation"]))
        return {**value, **{key: json_list(key, value[key]) for key in texts}}

    return rows(path, source, fact)


def _read_relations(path: Path, relations: Relations) -> bool:
    """Add the relations of the file beside the facts; return False where there is none."""
    file = path.parent / "relations.yaml"
    if not file.is_file():
        return False
    for relation in read_relations(file):
        relations.setdefault(relation.id, relation)
    return True
