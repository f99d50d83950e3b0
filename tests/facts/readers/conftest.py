from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kbrel.facts.readers import Relations, Row, format_of, read
from pytest_kbrel.records import Fact, Relation


class Found:
    """What a reader made of some files."""

    def __init__(self, rows: list[Row], relations: Relations) -> None:
        self.rows = rows
        self.relations = relations

    @property
    def facts(self) -> list[Fact]:
        return [row.fact for row in self.rows if row.fact is not None]

    @property
    def errors(self) -> list[str]:
        return [str(row.error) for row in self.rows if row.error is not None]

    @property
    def lines(self) -> list[int]:
        return [row.line for row in self.rows]

    @property
    def relation(self) -> Relation:
        (only,) = self.relations.values()
        return only


Read = Callable[..., Found]


def found_in(form: str, *paths: Path) -> Found:
    relations = Relations()
    return Found(list(read(format_of(form), paths, relations)), relations)


@pytest.fixture
def read_text(tmp_path: Path) -> Read:
    """Write a file and read it in a format; more files can be put beside it first."""

    def result(form: str, name: str, data: str | bytes) -> Found:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return found_in(form, path)

    return result


def lines(*values: Any) -> str:
    """Return JSON Lines; texts stand as they are."""
    return "".join(
        (v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)) + "\n"
        for v in values
    )
