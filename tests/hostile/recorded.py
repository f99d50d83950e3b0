"""Recorded runs that are broken or were changed by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.hostile.row import USAGE, Row

ARGS = ("suites", "--kb-from-run=recorded", "--kb-output-path=again")


def broken(
    what: str,
    change: Callable[[Path], None],
    printed: str = "recorded",
    exit: int = USAGE,
) -> Row:
    return Row(what, {"recorded": change}, exit, printed, ARGS)


def written(name: str, content: str | bytes) -> Callable[[Path], None]:
    return lambda path: (
        (path / name).write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        and None
    )


def of_report(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        data = json.loads((path / "report.json").read_text())
        change(data)
        (path / "report.json").write_text(json.dumps(data))

    return edit


def of_line(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """Change the first line that is an answer."""

    def edit(path: Path) -> None:
        lines = (path / "responses.jsonl").read_text().splitlines()
        data = json.loads(lines[0])
        change(data)
        (path / "responses.jsonl").write_text(
            "\n".join([json.dumps(data), *lines[1:]]) + "\n"
        )

    return edit


def first_line(text: str | bytes) -> Callable[[Path], None]:
    def edit(path: Path) -> None:
        _, _, rest = (path / "responses.jsonl").read_bytes().partition(b"\n")
        (path / "responses.jsonl").write_bytes(
            (text if isinstance(text, bytes) else text.encode()) + b"\n" + rest
        )

    return edit


def cut(path: Path) -> None:
    file = path / "responses.jsonl"
    file.write_bytes(file.read_bytes()[:-30])


ROWS = [
    broken(
        "a run without its answers", lambda path: (path / "responses.jsonl").unlink()
    ),
    broken("a report of 100,000 levels", written("report.json", "[" * 100_000)),
    broken(
        "a report of a later version",
        of_report(lambda result: result.update(schema_version=99)),
    ),
    broken("answers that are cut off", cut, "responses.jsonl"),
    broken("an answer of 100,000 levels", first_line("[" * 100_000), "responses.jsonl"),
    broken(
        "an answer of 40 million characters",
        first_line(json.dumps({"text": "x" * 40_000_000})),
        "responses.jsonl",
        USAGE,
    ),
    broken(
        "an answer under another case",
        of_line(lambda result: result.update(case="other")),
        "is not the file that",
    ),
    broken(
        "an answer to another question",
        of_line(lambda result: result["request"].update(prompt="Who?")),
        "",
        USAGE,
    ),
]
