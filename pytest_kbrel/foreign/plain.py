"""Plain CSV and JSON lines: an id and one or more scores a row, and a task where there are several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.lines import csv_rows, json_rows
from pytest_kbrel.foreign.scored import (
    NO_ANSWER,
    ONE_TASK,
    Answer,
    ScoredRun,
    Wanted,
    number,
    scored_run,
)

IDS = ("id", "sample_id", "doc_id", "question_id", "fact_id")
SCORES = (
    "score",
    "correct",
    "is_correct",
    "passed",
    "acc",
    "accuracy",
    "exact_match",
    "em",
    "f1",
)
_TASKS = ("task", "case")
_HASHES = ("prompt_hash", "prompt_digest")
_TEXTS = {
    "question": ("question", "prompt"),
    "expected": ("expected", "target"),
    "answer": ("answer", "output"),
}


def read_plain(path: Path, wanted: Wanted) -> ScoredRun:
    """Read ``.csv``, ``.tsv`` or ``.jsonl``; raises ``KbrelError`` where ids or scores are not recognised."""
    rows = json_rows(path) if path.suffix == ".jsonl" else csv_rows(path)
    return scored_run(
        path, path.suffix.removeprefix("."), _answers(rows, path, wanted), wanted
    )


def _answers(
    rows: Iterator[tuple[str, Mapping[str, Any]]], path: Path, wanted: Wanted
) -> Iterator[Answer]:
    # Rows of another task may have other scores.
    metrics: dict[str, dict[str, None]] = {}
    for where, row in rows:
        key = wanted.id or next((name for name in IDS if name in row), "")
        if row.get(key) in (None, ""):
            columns = ", ".join(row)
            raise KbrelError(
                f"{where}: found no id ({wanted.id or ', '.join(IDS)}) among {columns}; allowed: --id KEY"
            )
        task = _text(row, _TASKS) or ONE_TASK
        of_task = metrics.setdefault(task, {})
        of_task |= dict.fromkeys(
            name for name in wanted.metrics or SCORES if name in row
        )
        if not of_task and not wanted.metrics:
            raise KbrelError(
                f"{where}: found no score ({', '.join(SCORES)}) among {', '.join(row)}; allowed: --metric KEY"
            )
        scores = {}
        for name in of_task:
            value = row.get(name)
            scores[name] = number(value)
            if (
                scores[name] is None
                and value not in (None, "")
                and str(value).lower() != "nan"
            ):
                raise KbrelError(
                    f"{where}: {name} is {str(value)[:60]!r}; allowed: a number, true or false"
                )
        texts = {name: _text(row, keys) for name, keys in _TEXTS.items()}
        if not texts["expected"] and any(key in row for key in _TEXTS["expected"]):
            texts["expected"] = NO_ANSWER
        yield Answer(
            where=where,
            task=task,
            id=str(row[key]),
            scores=scores,
            higher={},
            model="",
            fields=(row,),
            asked=_text(row, _HASHES),
            question=texts["question"],
            expected=texts["expected"],
            answer=texts["answer"],
        )


def _text(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return next((str(row[key]) for key in keys if row.get(key) is not None), "")
