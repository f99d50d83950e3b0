"""The project's own facts as JSON Lines, CSV and Parquet: the same keys, as keys or as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.facts.files import (
    FORM,
    KEYS,
    LISTS,
    REQUIRED,
    as_fact,
    read_relations,
)
from pytest_kbrel.facts.located import json_rows
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    check_header,
    checked_rows,
    clean,
    delimiter_of,
    json_list,
    parquet,
    rows,
    table,
)
from pytest_kbrel.records import Fact


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
    return _table(path, relations, table(path, delimiter_of(path)))


def read_parquet(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table whose columns are the facts format's keys; the line of an error is the row's number.

    Raises ``MissingExtraError`` without DuckDB.
    """
    return _table(path, relations, parquet(path))


def _table(
    path: Path, relations: Relations, source: Iterator[tuple[int, Any]]
) -> Iterator[Row]:
    check_header(path, source, "a facts table", REQUIRED, KEYS)
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
