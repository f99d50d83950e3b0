"""NQ-open: a question with its answers a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.facts.located.json import json_rows
from pytest_kbrel.facts.readers.base import Relations, Row, answers, clean, need, rows

FORM = 'an NQ-open file has one {"question": ..., "answer": [...]} a line'


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file; the first answer is the object, the others its aliases. Further keys are passed over."""
    relation = relations.meet("nq_open", "NQ-open", "open")

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        need(value, "question", "answer")
        question, right = clean("question", value["question"]), answers("answer", value["answer"])
        if not right:
            raise ValueError("'answer' must hold at least one answer, found none")
        return {
            "relation": relation,
            "subject": question,
            "object": right[0],
            "aliases": right[1:],
            "question": question,
        }

    return rows(path, json_rows(path, FORM), fact, dataset="nq-open")
