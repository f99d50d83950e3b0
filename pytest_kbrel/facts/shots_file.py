"""A file of the user's own examples: one JSON object a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.jsonl import check_date
from pytest_kbrel.facts.located.json import json_rows
from pytest_kbrel.facts.located.node import describe, unknown
from pytest_kbrel.records import Shot

_KEYS = ("question", "answer", "subject", "valid_until")
_FORMAT = (
    'allowed, one a line: {"question": "Who wrote Emma?", "answer": "Jane Austen"}, '
    'with "answer": null for "unsure"'
)


def read_shots(path: Path) -> tuple[Shot, ...]:
    """Read ``{question, answer, subject, valid_until}`` a line; ``answer`` null means that there is none.

    The last two may be absent; ``valid_until`` is for examples without an answer. Raises ``SuiteError`` with
    the line of the first mistake, a question that stands twice included.
    """
    shots: dict[str, tuple[int, Shot]] = {}
    for line, row in json_rows(path, _FORMAT):
        if isinstance(row, SuiteError):
            raise row
        shot = _shot(row, path, line)
        if shot.question in shots:
            first = shots[shot.question][0]
            message = f"question {shot.question!r} stands twice; the first is on line {first}"
            raise SuiteError(f"{message}; allowed: each question once", path, line)
        shots[shot.question] = line, shot
    if not shots:
        raise SuiteError(f"no examples found; {_FORMAT}", path, 1)
    return tuple(shot for _, shot in shots.values())


def _shot(value: dict[str, Any], path: Path, line: int) -> Shot:
    for key in value:
        if key not in _KEYS:
            raise SuiteError(unknown("key", key, _KEYS, where="an example"), path, line)
    for key in ("question", "answer"):
        if key not in value:
            found = ", ".join(value) or "nothing"
            raise SuiteError(f"the key {key!r} is missing; found: {found}; needed: {_FORMAT}", path, line)
    for key, item in value.items():
        if key == "answer" and item is None:
            continue
        if not isinstance(item, str) or not item.strip() or len(item.splitlines()) != 1:
            allowed = "text of one line, not blank" + (", or null" if key == "answer" else "")
            raise SuiteError(f"{key!r} must be {allowed}, found {describe(item)}", path, line)
    if "valid_until" in value:
        try:
            check_date(value["valid_until"])
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
        if value["answer"] is not None:
            message = "'valid_until' is for examples without an answer; allowed beside it: \"answer\": null"
            raise SuiteError(message, path, line)
    return Shot(
        question=value["question"],
        answer=value["answer"],
        subject=value.get("subject", ""),
        valid_until=value.get("valid_until", ""),
    )
