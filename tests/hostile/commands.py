"""What is given to ``kbrel``."""

from __future__ import annotations

import json

from tests.hostile.row import Row

PREDICTION = {"id": "a", "question": "Who?", "answers": ["Ann"], "prediction": "Ann"}


def command(
    *typed: str,
    printed: str,
    files: dict[str, str | bytes] | None = None,
    what: str = "",
    exit: int = 2,
) -> Row:
    return Row(
        what or "kbrel " + " ".join(typed),
        files or {},
        exit,
        printed,
        args=typed,
        command=True,
    )


def judged(
    what: str, text: str | bytes, printed: str = "in.jsonl:1", exit: int = 2
) -> Row:
    return command(
        "judge",
        "in.jsonl",
        "--output",
        "out.jsonl",
        printed=printed,
        files={"in.jsonl": text},
        what=f"judge: {what}",
        exit=exit,
    )


def row(**change: object) -> str:
    return json.dumps(PREDICTION | change) + "\n"


ROWS = [
    command("nosuch", printed="nosuch"),
    command("judge", "suites", "--output", "out.jsonl", printed="suites"),
    command("labels", "suites", "--output", "out.jsonl", printed="suites"),
    command("import", "fktcc", "x", "--output", "o.jsonl", printed="fktcc"),
    command("export", "suites", "--format=eee", "--output=a", printed="suites"),
    command("compare", "nowhere", "published/monitor", printed="nowhere"),
    judged("a line of 100,000 levels", "[" * 100_000 + "\n"),
    judged(
        "a prediction of a million words", row(prediction="Ann or " * 1_000_000), "", 0
    ),
    judged(
        "a prediction of a million brackets", row(prediction="(" * 1_000_000), "", 0
    ),
    judged("half a surrogate pair", row(prediction="\ud800")),
    command(
        "compare",
        "a",
        printed="a",
        files={"a/report.json": "[" * 100_000},
        what="compare: a report of 100,000 levels",
    ),
    *(
        command(
            "compare",
            "a",
            "a",
            printed="a",
            files={"a": content},
            what=f"compare: {what}",
        )
        for what, content in (
            ("a file of no known tool", "x"),
            ("a file of zeros", b"\0" * 1000),
        )
    ),
    *(
        command(
            "compare",
            name,
            name,
            *more,
            printed=printed,
            files={name: text},
            what=f"compare: {what}",
        )
        for what, name, text, printed, *more in (
            ("rows that are no objects", "a.jsonl", "[1]\n", "a.jsonl:1"),
            ("JSON of 100,000 levels", "a.jsonl", "[" * 100_000, "a.jsonl:1"),
            ("rows without id", "a.jsonl", '{"score": 1}\n', "a.jsonl:1: found no id"),
            ("rows without score", "a.csv", "id,year\n1,2\n", "--metric KEY"),
            ("a score that is a word", "a.csv", "id,score\n1,high\n", "a.csv:2"),
            ("bytes that are no text", "a.csv", b"id,score\n\xff,1\n", "a.csv"),
            ("a zip that is no log of Inspect", "a.eval", b"PK\x03\x04", "a.eval"),
            (
                "a threshold that is a word",
                "a.csv",
                "id,score\n1,1\n",
                "--max-drop: found 'low'",
                "--max-drop=low",
            ),
        )
    ),
]
