"""Plain CSV and JSON lines: an id and one or more scores a row, and a task where there are several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign.lines import rows_of
from pytest_kbrel.foreign.scored import ONE_TASK, Answer, Wanted, number
from pytest_kbrel.records import NOT_KNOWN

IDS = ("id", "sample_id", "doc_id", "question_id", "fact_id")
SCORES = (
    *("score", "correct", "is_correct", "passed"),
    *("acc", "accuracy", "exact_match", "em", "f1"),
)
_EXPECTED = ("expected", "target")


def read_plain(path: Path, wanted: Wanted) -> Iterator[Answer]:
    """Yield the rows of ``.csv``, ``.tsv`` or ``.jsonl``.

    Raises ``KbrelError`` where ids or scores are not recognised.
    """
    # Rows of another task may have other scores.
    metrics: dict[str, dict[str, None]] = {}
    for where, row in rows_of(path):
        columns = ", ".join(row)
        if not (id_ := _text(row, (wanted.id,) if wanted.id else IDS)):
            allowed = wanted.id or ", ".join(IDS)
            raise KbrelError(
                f"{where}: found no id ({allowed}) among {columns}; allowed: --id KEY"
            )
        task = _text(row, ("task", "case")) or ONE_TASK
        of_task = metrics.setdefault(task, {})
        of_task |= {name: None for name in wanted.metrics or SCORES if name in row}
        if not of_task and not wanted.metrics:
            raise KbrelError(
                f"{where}: found no score ({', '.join(SCORES)}) among {columns}; allowed: --metric KEY"
            )
        scores = {name: number(row.get(name)) for name in of_task}
        for name, score in scores.items():
            given = str(row.get(name) or "")
            if score is None and given.lower() not in ("", "nan"):
                raise KbrelError(
                    f"{where}: {name} is {given[:60]!r}; allowed: a number, true or false"
                )
        is_empty = any(key in row for key in _EXPECTED)
        yield Answer(
            where=where,
            task=task,
            id=id_,
            scores=scores,
            fields=(row,),
            asked=_text(row, ("prompt_hash", "prompt_digest")),
            question=_text(row, ("question", "prompt")),
            expected=_text(row, _EXPECTED) or ("" if is_empty else NOT_KNOWN),
            answer=_text(row, ("answer", "output")),
        )


def _text(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return the first of the keys that a row has a value of, as text."""
    return next((str(row[key]) for key in keys if row.get(key) is not None), "")
