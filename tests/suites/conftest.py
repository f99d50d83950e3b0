from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

RELATIONS = """\
P36:
  label: capital
  domain: geography
  frames: ["What is the capital of [X]?", "Name the capital city of [X]."]
  statements: ["The capital of [X] is [Y]."]
P50:
  label: author
  domain: culture
  frames: ["Who wrote [X]?"]
P99:
  label: nothing known
  domain: void
  frames: ["What is [X]?"]
"""
CAPITALS = [
    "Lima",
    "Oslo",
    "Rome",
    "Paris",
    "Quito",
    "Cairo",
    "Tokyo",
    "Accra",
    "Dakar",
    "Minsk",
]
AUTHORS = ["Homer", "Dante", "Goethe", "Austen", "Tolstoy", "Joyce"]


def world_facts() -> list[dict[str, Any]]:
    places = [
        {
            "id": f"c{n}",
            "relation": "P36",
            "subject": f"Land {n}",
            "object": city,
            "popularity": 10 * (n + 1),
        }
        for n, city in enumerate(CAPITALS)
    ]
    books = [
        {
            "id": f"b{n}",
            "relation": "P50",
            "subject": f"Book {n}",
            "object": name,
            "popularity": n + 1,
        }
        for n, name in enumerate(AUTHORS)
    ]
    return places + books


@pytest.fixture
def suite_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a suite file beside a small world; facts and relations can be replaced."""

    def write(
        text: str, facts: list[dict[str, Any]] | None = None, relations: str = RELATIONS
    ) -> Path:
        lines = [
            json.dumps(fact) for fact in (world_facts() if facts is None else facts)
        ]
        (tmp_path / "facts.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        (tmp_path / "relations.yaml").write_text(relations, "utf-8")
        path = tmp_path / "t.kb.yaml"
        path.write_text(text, "utf-8")
        return path

    return write
