"""Suite files that are broken, absurd or written to do harm."""

from __future__ import annotations

import os
from pathlib import Path

from tests.hostile.row import ASKING, PASSED, SUITE, Row

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
RELIABILITY = """\
suite: mini
facts: facts.jsonl
reliability:
  slices: [known-zero-shot]
  choices: 3
  distractors: 6
  gates: {cr: {min: 0.0}}
"""
MONITOR = "suite: mini\nfacts: facts.jsonl\nmonitor:\n  negatives: 2\n  gates: {accuracy_base: {min: 0.3}}\n"
HUGE = "9" * 5000


def suite(what: str, text: str | bytes, printed: str, exit: int = 2) -> Row:
    return Row(what, {SUITE: text}, exit, printed)


def changed(
    what: str, old: str, new: str, printed: str, base: str = ASKING, exit: int = 2
) -> Row:
    assert old in base
    return Row(what, {SUITE: base.replace(old, new)}, exit, printed)


def fifo(path: Path) -> None:
    os.mkfifo(path)


ROWS = [
    suite("a suite in UTF-16", ASKING.encode("utf-16"), "mini.kb.yaml:1: not UTF-8"),
    suite("a NUL byte", ASKING + "# \0\n", "mini.kb.yaml"),
    suite("100,000 levels of lists", ASKING + "x: " + "[" * 100_000, "mini.kb.yaml"),
    suite("ten levels of nine aliases each", BOMB + ASKING, "mini.kb.yaml"),
    suite("an alias of itself", ASKING + "waivers: &a [*a]\n", "mini.kb.yaml:7"),
    suite(
        "a tag that calls Python",
        "!!python/object/apply:os.system ['touch canary']\n",
        "mini.kb.yaml:1",
    ),
    suite(
        "a tag in a value",
        ASKING.replace("mini", "!!python/name:os.system mini"),
        "mini.kb.yaml:1",
    ),
    suite("a merge key", ASKING + "<<: {seed: 3}\n", "1 passed", PASSED),
    changed(
        "a name with a path",
        "suite: mini",
        "suite: ../../mini",
        "1 passed",
        exit=PASSED,
    ),
    changed(
        "a name of markup",
        "suite: mini",
        "suite: <script>alert(1)</script>",
        "1 passed",
        exit=PASSED,
    ),
    changed(
        "facts that are an endless device", "facts.jsonl", "/dev/zero", "/dev/zero"
    ),
    changed(
        "a language that is not known",
        "facts.jsonl",
        "facts.jsonl\nlanguage: xx-nowhere",
        "no rules for the language 'xx'",
        exit=PASSED,
    ),
    changed(
        "a seed of 5,000 digits",
        "facts.jsonl",
        f"facts.jsonl\nseed: {HUGE}",
        "mini.kb.yaml:3",
    ),
    changed(
        "tokens without end",
        "  gates:",
        "  max_new_tokens: 1000000000\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "a prompt with a field of Python",
        "prompt: zero-shot",
        "prompt: '{question.__class__}'",
        "mini.kb.yaml:4",
    ),
    changed(
        "choices without end",
        "choices: 3",
        "choices: 1000000000",
        "mini.kb.yaml:5",
        RELIABILITY,
    ),
    changed(
        "an encoder that is not there",
        "[known-zero-shot]",
        "[known-four-shot]\n  retrieval: hf/./no",
        "hf/./no",
        RELIABILITY,
        1,
    ),
    Row(
        "facts that are a pipe nobody writes to",
        {SUITE: ASKING.replace("facts.jsonl", "p.jsonl"), "suites/p.jsonl": fifo},
        2,
        "p.jsonl",
    ),
    Row("a suite that is a folder", {"suites/dir.kb.yaml": Path.mkdir}, 0, "1 passed"),
]
