"""Facts files that are broken, absurd or written to do harm, in every format."""

from __future__ import annotations

import json
import os
from pathlib import Path

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
    Row("no fact", {FACTS: ""}, 2, "facts.jsonl"),
    Row("blank lines only", {FACTS: "\n\n  \n"}, 2, "facts.jsonl"),
    line("a line that is no JSON", "{"),
    line("a line that is a list", "[1]\n"),
    line("a line that is a word", '"Paris"\n'),
    line("a line that is null", "null\n"),
    line("a line without an object", '{"relation": "P36", "subject": "Peru"}\n'),
    line("a line without a subject", '{"relation": "P36", "object": "Lima"}\n'),
    line("a line without a relation", '{"subject": "Peru", "object": "Lima"}\n'),
    line(
        "a key that nobody knows",
        '{"relation": "P36", "subject": "Peru", "object": "Lima", "alias": []}\n',
    ),
    line(
        "a key that stands twice",
        '{"relation": "P36", "subject": "Peru", "subject": "Chile", "object": "Lima"}\n',
    ),
    line(
        "bytes that are no UTF-8",
        b'{"relation": "P36", "subject": "\xff", "object": "Lima"}\n',
    ),
    line("a NUL byte", '{"relation": "P36", "subject": "Pe\0ru", "object": "Lima"}\n'),
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
        "a popularity that is no number",
        '{"relation": "P36", "subject": "Peru", "object": "Lima", "popularity": NaN}\n',
    ),
    line(
        "a popularity without end",
        '{"relation": "P36", "subject": "Peru", "object": "Lima", "popularity": 1e999}\n',
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
    first("a popularity below 0", "facts.jsonl:1", popularity=-1),
    first("a popularity in words", "facts.jsonl:1", popularity="many"),
    first("a popularity that is true", "facts.jsonl:1", popularity=True),
    first("a subject that is a number", "facts.jsonl:1", subject=7),
    first("a subject that is empty", "facts.jsonl:1", subject=""),
    first("a subject of white space", "facts.jsonl:1", subject=" \t "),
    first("an object that is null", "facts.jsonl:1", object=None),
    first("an object of white space", "facts.jsonl:1", object=" "),
    first("an object that is a list", "facts.jsonl:1", object=["Beijing"]),
    first(
        "an object of an emoji",
        "1 passed",
        0,
        aliases=["\N{EARTH GLOBE ASIA-AUSTRALIA}"],
    ),
    first("aliases that are a word", "facts.jsonl:1", aliases="Peking"),
    first("aliases that hold a number", "facts.jsonl:1", aliases=[7]),
    first("a relation that is not known", "P9999", relation="P9999"),
    first("an id with a path", "1 passed", 0, id="../../x"),
    first("an id with a line break", "facts.jsonl:1", id="a\nb"),
    first("an id that is a number", "facts.jsonl:1", id=5),
    first(
        "a subject of markup", "1 passed", 0, subject="<script>alert(1)</script> China"
    ),
    first("a subject with a line break", "facts.jsonl:1", subject="Chi\nna"),
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
    table("a table of nothing", "", "f.csv"),
    table("a field too many", CAPITALS + "P36,Peru,Lima,3,4\n", "f.csv:32"),
    table("a field too few", CAPITALS + "P36,Peru\n", "f.csv:32"),
    table(
        "a quotation mark that does not end",
        CAPITALS + 'P36,"Peru,Lima,3\n',
        "f.csv:32",
    ),
    table("a NUL byte in a table", CAPITALS + "P36,Pe\0ru,Lima,3\n", "f.csv:32"),
    table(
        "bytes in a table that are no UTF-8",
        CAPITALS.encode() + b"P36,Pe\xffru,Lima,3\n",
        "f.csv:32",
    ),
    table(
        "a field of 20 million characters",
        CAPITALS + f"P36,{'x' * 20_000_000},Lima,3\n",
        "f.csv:32",
    ),
    table(
        "a popularity in a table that is no number",
        CAPITALS + "P36,Peru,Lima,nan\n",
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
    *(of_format(name, "an empty file", "") for name in FORMATS),
    *(
        of_format(name, "bytes of nothing known", bytes(range(256)) * 40)
        for name in FORMATS
    ),
    *(of_format(name, "a JSON number", "17\n") for name in FORMATS),
    *(
        of_format(name, "100,000 levels of lists", "[" * 100_000 + "\n")
        for name in FORMATS
    ),
    *(of_format(name, "a list of null", json.dumps([None]) + "\n") for name in FORMATS),
    Row(
        "relations that are a list",
        {"suites/relations.yaml": "[P36]\n"},
        2,
        "relations.yaml",
    ),
    Row(
        "relations that are no YAML",
        {"suites/relations.yaml": "{\n"},
        2,
        "relations.yaml",
    ),
    Row(
        "a frame without its subject",
        {"suites/relations.yaml": "P36: {label: capital, frames: [What is it?]}\n"},
        2,
        "relations.yaml",
    ),
    Row(
        "a frame that is a number",
        {"suites/relations.yaml": "P36: {label: capital, frames: [7]}\n"},
        2,
        "relations.yaml",
    ),
    Row(
        "a relation without frames",
        {"suites/relations.yaml": "P36: {label: capital}\n"},
        2,
        "P36",
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
