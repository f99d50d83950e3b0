"""Facts files that are broken, absurd or written to do harm, in every format."""

from __future__ import annotations

import os
from pathlib import Path

from pytest_kbrel.facts.readers.edits import EDITS
from tests.hostile.row import ASKING, FACTS, SUITE, Row, facts

HUGE = "9" * 5000
# What is broken in any format: nothing there, another format, a table of contents only.
FORMATS = {
    "fktc": "f.json",
    "head-to-tail": "f.json",
    "popqa": "f.tsv",
    "pararel": "f",
    "lama": "f.jsonl",
    "nq-open": "f.jsonl",
    "triviaqa": "f.json",
    "simpleqa": "f.csv",
    "qa": "f.jsonl",
    "questions": "f.csv",
    **dict.fromkeys(EDITS, "f.json"),
    "jsonl": "f.jsonl",
    "csv": "f.csv",
    "parquet": "f.parquet",
}


def first(what: str, printed: str, exit: int = 2, **change: object) -> Row:
    return Row(what, {FACTS: facts(change)}, exit, printed)


def line(
    what: str, text: str | bytes, printed: str = "facts.jsonl:13", exit: int = 2
) -> Row:
    content = facts().encode() + (text.encode() if isinstance(text, str) else text)
    return Row(what, {FACTS: content}, exit, printed)


def table(what: str, text: str | bytes, printed: str, exit: int = 2) -> Row:
    header = "relation,subject,object,popularity\n"
    content = header.encode() + (text.encode() if isinstance(text, str) else text)
    return Row(
        what,
        {SUITE: ASKING.replace("facts.jsonl", "f.csv"), "suites/f.csv": content},
        exit,
        printed,
    )


def of_format(name: str, what: str, content: str | bytes) -> Row:
    suite = ASKING.replace("facts.jsonl", f"{FORMATS[name]}\nformat: {name}")
    return Row(
        f"{name}: {what}",
        {SUITE: suite, f"suites/{FORMATS[name]}": content},
        2,
        f"suites/{FORMATS[name]}",
    )


def fifo(path: Path) -> None:
    os.mkfifo(path)


CAPITALS = "".join(f"P36,Country {n},City {n},{n}\n" for n in range(30))
ROWS = [
    line(
        "a key that stands twice",
        '{"relation": "P36", "subject": "Peru", "subject": "Chile", "object": "Lima"}\n',
    ),
    line(
        "a NUL that is written out",
        '{"relation": "P36", "subject": "Pe\\u0000ru", "object": "Lima"}\n',
    ),
    line(
        "half a surrogate pair",
        '{"relation": "P36", "subject": "\\ud800", "object": "Lima"}\n',
    ),
    line(
        "100,000 levels of lists",
        '{"relation": "P36", "subject": ' + "[" * 100_000 + "\n",
    ),
    line(
        "a popularity of 5,000 digits",
        '{"relation": "P36", "subject": "Peru", "object": "Lima", "popularity": '
        + HUGE
        + "}\n",
    ),
    line(
        "a line of 20 million characters",
        '{"relation": "P36", "subject": "'
        + "x" * 20_000_000
        + '", "object": "Lima"}\n',
    ),
    line(
        "a fact that stands twice",
        '{"relation": "P36", "subject": "Norway", "object": "Oslo", "popularity": 8}\n',
        "facts.jsonl",
    ),
    first(
        "an object of an emoji",
        "1 passed",
        0,
        aliases=["\N{EARTH GLOBE ASIA-AUSTRALIA}"],
    ),
    first("an id with a path", "1 passed", 0, id="../../x"),
    first(
        "a subject of markup", "1 passed", 0, subject="<script>alert(1)</script> China"
    ),
    first(
        "a subject that moves the cursor", "1 passed", 0, subject="China \x1b[2J\x1b[H"
    ),
    first("a subject that turns the text round", "1 passed", 0, subject="China \u202e"),
    first(
        "a subject of a million characters",
        "1 passed",
        0,
        subject="China" + "x" * 1_000_000,
    ),
    first("a subject with braces", "1 passed", 0, subject="{subject.__class__} China"),
    first("a subject with the mark of a frame", "", 0, subject="[X] China"),
    table("a NUL byte in a table", CAPITALS + "P36,Pe\0ru,Lima,3\n", "f.csv:32"),
    table(
        "a field of 20 million characters",
        CAPITALS + f"P36,{'x' * 20_000_000},Lima,3\n",
        "f.csv:32",
    ),
    Row(
        "a table whose column stands twice",
        {
            SUITE: ASKING.replace("facts.jsonl", "f.csv"),
            "suites/f.csv": "relation,subject,subject,object\nP36,a,b,c\n",
        },
        2,
        "f.csv:1",
    ),
    Row(
        "facts that are a pipe nobody writes to",
        {SUITE: ASKING.replace("facts.jsonl", "p.jsonl"), "suites/p.jsonl": fifo},
        2,
        "p.jsonl",
    ),
    Row(
        "a table that is a pipe nobody writes to",
        {SUITE: ASKING.replace("facts.jsonl", "p.csv"), "suites/p.csv": fifo},
        2,
        "p.csv",
    ),
    *(
        of_format(name, "bytes of nothing known", bytes(range(256)) * 40)
        for name in FORMATS
    ),
    Row(
        "a relation that calls Python",
        {
            "suites/relations.yaml": "P36: !!python/object/apply:os.system ['touch canary']\n"
        },
        2,
        "relations.yaml",
    ),
]
