"""What is given to ``kbrel``."""

from __future__ import annotations

import json

from tests.hostile.row import Row

PREDICTION = {"id": "a", "question": "Who?", "answers": ["Ann"], "prediction": "Ann"}


def command(
    *typed: str, said: str, files: dict[str, str | bytes] | None = None, what: str = "", exit: int = 2
) -> Row:
    return Row(what or "kbrel " + " ".join(typed), files or {}, exit, said, args=typed, command=True)


def judged(what: str, text: str | bytes, said: str = "in.jsonl:1", exit: int = 2) -> Row:
    return command(
        "judge",
        "in.jsonl",
        "--output",
        "out.jsonl",
        said=said,
        files={"in.jsonl": text},
        what=f"judge: {what}",
        exit=exit,
    )


def row(**change: object) -> str:
    return json.dumps(PREDICTION | change) + "\n"


ROWS = [
    command("judge", "nowhere.jsonl", "--output", "out.jsonl", said="nowhere.jsonl"),
    command("judge", "suites", "--output", "out.jsonl", said="suites"),
    command("judge", "suites/facts.jsonl", "--output", "suites/facts.jsonl", said="suites/facts.jsonl"),
    judged("a line that is no JSON", "{"),
    judged("a line that is a list", "[]\n"),
    judged("a line of 100,000 levels", "[" * 100_000 + "\n"),
    judged("bytes that are no UTF-8", b'{"id": "\xff"}\n'),
    judged("no prediction", '{"id": "a", "question": "Who?", "answers": ["Ann"]}\n'),
    judged("a prediction that is a number", row(prediction=7), "1 wrong", 0),
    judged("answers that are a word", row(answers="Ann")),
    judged("answers that are empty", row(answers=[]), "1 wrong", 0),
    judged("a language that is a number", row(language=7)),
    judged("a prediction of a million words", row(prediction="Ann or " * 1_000_000), "", 0),
    judged("a prediction of a million brackets", row(prediction="(" * 1_000_000), "", 0),
    judged("half a surrogate pair", row(prediction="\ud800")),
    command("compare", "nowhere", "published/monitor", said="nowhere"),
    command("compare", "suites", said="suites"),
    command("compare", "a", said="a", files={"a/report.json": "["}, what="compare: a report that is no JSON"),
    command(
        "compare",
        "a",
        said="a",
        files={"a/report.json": "[" * 100_000},
        what="compare: a report of 100,000 levels",
    ),
    command("compare", "a", said="a", files={"a/report.json": "{}"}, what="compare: a report of nothing"),
    command("import", "fktcc", "x", "--output", "o.jsonl", said="fktcc"),
    command("import", "fktc", "nowhere.json", "--output", "o.jsonl", said="nowhere.json"),
    command("import", "csv", "suites/facts.jsonl", "--output", "o.jsonl", said="facts.jsonl"),
    command("schema", "nothing", said="nothing"),
    command("init", "suites/facts.jsonl", said="facts.jsonl"),
    command("cache", "info", "--kb-use-cache=nowhere", said="nowhere"),
    command("build", "head-to-tail", "nowhere", said="head-to-tail"),
    command("nosuch", said="nosuch"),
]
