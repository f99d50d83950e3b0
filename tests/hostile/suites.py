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
  slices: [seen-zero-shot]
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
    suite("an empty suite", "", "mini.kb.yaml"),
    suite("a suite that is a comment", "# nothing\n", "mini.kb.yaml"),
    suite("a suite that is a list", "- suite: mini\n", "mini.kb.yaml:1"),
    suite("a suite that is one word", "mini", "mini.kb.yaml:1"),
    suite("a suite that is no YAML", ASKING + "  [", "mini.kb.yaml:"),
    suite("a suite with a tab before a key", ASKING + "\tx: 1\n", "mini.kb.yaml:7"),
    suite("two documents in a file", ASKING + "---\n" + ASKING, "mini.kb.yaml"),
    suite("bytes that are no UTF-8", ASKING.encode() + b"\xff\xfe\n", "mini.kb.yaml"),
    suite("a suite in UTF-16", ASKING.encode("utf-16"), "mini.kb.yaml:1: not UTF-8"),
    suite(
        "a suite with a byte order mark",
        b"\xef\xbb\xbf" + ASKING.encode(),
        "1 passed",
        PASSED,
    ),
    suite("a NUL byte", ASKING + "# \0\n", "mini.kb.yaml"),
    suite("lines that end in CR LF", ASKING.replace("\n", "\r\n"), "1 passed", PASSED),
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
    suite("a key that stands twice", ASKING + "suite: other\n", "mini.kb.yaml:7"),
    suite("a key that is a list", ASKING + "? [a, b]\n: c\n", "mini.kb.yaml:7"),
    suite("a key that is a number", ASKING + "1: c\n", "mini.kb.yaml:7"),
    suite("a merge key", ASKING + "<<: {seed: 3}\n", "1 passed", PASSED),
    suite("a key that nobody knows", ASKING + "hedd_to_tail: {}\n", "hedd_to_tail"),
    suite("no facts", "suite: mini\nhead_to_tail: {prompt: zero-shot}\n", "facts"),
    suite("no probe", "suite: mini\nfacts: facts.jsonl\n", "mini.kb.yaml"),
    changed(
        "a name with a path",
        "suite: mini",
        "suite: ../../mini",
        "1 passed",
        exit=PASSED,
    ),
    changed(
        "a name with a line break", "suite: mini", 'suite: "mi\\nni"', "mini.kb.yaml:1"
    ),
    changed("a name that is a number", "suite: mini", "suite: 12", "mini.kb.yaml:1"),
    changed("a name that is empty", "suite: mini", "suite: ''", "mini.kb.yaml:1"),
    changed(
        "a name of markup",
        "suite: mini",
        "suite: <script>alert(1)</script>",
        "1 passed",
        exit=PASSED,
    ),
    changed(
        "facts that are not there", "facts.jsonl", "nowhere.jsonl", "nowhere.jsonl"
    ),
    changed("facts that are a folder", "facts.jsonl", ".", "mini.kb.yaml:2"),
    changed("facts that are a number", "facts.jsonl", "17", "mini.kb.yaml:2"),
    changed(
        "facts that are an endless device", "facts.jsonl", "/dev/zero", "/dev/zero"
    ),
    changed(
        "a format that is not known", "facts.jsonl", "facts.jsonl\nformat: jsnl", "jsnl"
    ),
    changed(
        "a language that is not known",
        "facts.jsonl",
        "facts.jsonl\nlanguage: xx-nowhere",
        "no rules for the language 'xx'",
        exit=PASSED,
    ),
    changed(
        "a list of patterns that is not there",
        "facts.jsonl",
        "facts.jsonl\nuninformative: no.yaml",
        "no.yaml",
    ),
    changed("a seed below 0", "facts.jsonl", "facts.jsonl\nseed: -1", "mini.kb.yaml:3"),
    changed(
        "a seed of 5,000 digits",
        "facts.jsonl",
        f"facts.jsonl\nseed: {HUGE}",
        "mini.kb.yaml:3",
    ),
    changed(
        "a seed that is true",
        "facts.jsonl",
        "facts.jsonl\nseed: true",
        "mini.kb.yaml:3",
    ),
    changed("a slice that is not known", "places-head", "places-haed", "places-haed"),
    changed("slices that are no list", "[places-head]", "7", "mini.kb.yaml:5"),
    changed("a limit of 0", "  gates:", "  limit: 0\n  gates:", "mini.kb.yaml:6"),
    changed("a limit below 0", "  gates:", "  limit: -5\n  gates:", "mini.kb.yaml:6"),
    changed(
        "a limit that is no number",
        "  gates:",
        "  limit: .nan\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "a limit without end", "  gates:", "  limit: .inf\n  gates:", "mini.kb.yaml:6"
    ),
    changed(
        "a limit of 5,000 digits",
        "  gates:",
        f"  limit: {HUGE}\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed("a limit in words", "  gates:", "  limit: ten\n  gates:", "mini.kb.yaml:6"),
    changed(
        "tokens without end",
        "  gates:",
        "  max_new_tokens: 1000000000\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "a stop string that is empty",
        "  gates:",
        "  stop: ['']\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "a stop string that is a number",
        "  gates:",
        "  stop: [7]\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "a prompt without its question",
        "prompt: zero-shot",
        "prompt: 'Say something.'",
        "mini.kb.yaml:4",
    ),
    changed(
        "a prompt with a field of Python",
        "prompt: zero-shot",
        "prompt: '{question.__class__}'",
        "mini.kb.yaml:4",
    ),
    changed(
        "gates that are a list",
        "{accuracy: {min: 0.3}}",
        "[accuracy]",
        "mini.kb.yaml:6",
    ),
    changed(
        "a metric that is not known", "accuracy:", "acuracy:", "did you mean 'accuracy'"
    ),
    changed("a bound that is no number", "min: 0.3", "min: .nan", "mini.kb.yaml:6"),
    changed("a bound without end", "min: 0.3", "min: -.inf", "mini.kb.yaml:6"),
    changed("a bound in words", "min: 0.3", "min: half", "mini.kb.yaml:6"),
    changed(
        "a bound that no model can reach", "min: 0.3", "min: 1.5", "mini.kb.yaml:6"
    ),
    changed("a bound that is true", "min: 0.3", "min: true", "mini.kb.yaml:6"),
    changed("a rule that is not known", "min: 0.3", "mim: 0.3", "did you mean 'min'"),
    changed(
        "a lower bound above the upper one",
        "min: 0.3",
        "min: 0.8, max: 0.2",
        "mini.kb.yaml:6",
    ),
    changed("a tolerance below 0", "min: 0.3", "max_drop: -0.1", "mini.kb.yaml:6"),
    changed(
        "an integrity limit that is not known",
        "  gates:",
        "  integrity: {x: 1}\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "an integrity limit above 1",
        "  gates:",
        "  integrity: {empty: 7}\n  gates:",
        "mini.kb.yaml:6",
    ),
    changed(
        "negatives of 0", "negatives: 2", "negatives: 0", "mini.kb.yaml:4", MONITOR
    ),
    changed(
        "negatives without end",
        "negatives: 2",
        "negatives: 1000000000",
        "mini.kb.yaml:4",
        MONITOR,
    ),
    changed(
        "an ablation without end",
        "negatives: 2",
        "ablation: 1000000000",
        "mini.kb.yaml:4",
        MONITOR,
    ),
    changed(
        "a variant that is not known",
        "negatives: 2",
        "variant: publishd",
        "mini.kb.yaml:4",
        MONITOR,
    ),
    changed("choices of 0", "choices: 3", "choices: 0", "mini.kb.yaml:5", RELIABILITY),
    changed(
        "choices without end",
        "choices: 3",
        "choices: 1000000000",
        "mini.kb.yaml:5",
        RELIABILITY,
    ),
    changed(
        "distractors without end",
        "distractors: 6",
        "distractors: 1000000000",
        "mini.kb.yaml:6",
        RELIABILITY,
    ),
    changed(
        "distractors of 5,000 digits",
        "distractors: 6",
        f"distractors: {HUGE}",
        "mini.kb.yaml:6",
        RELIABILITY,
    ),
    changed(
        "unseen questions without end",
        "  gates",
        "  unseen: {count: 1000000000}\n  gates",
        "mini.kb.yaml:7",
        RELIABILITY,
    ),
    changed(
        "a suite that expires before it begins",
        "  gates",
        "  unseen: {count: 6, as_of: 2026-11-01, expires: 2020-01-01}\n  gates",
        "mini.kb.yaml:7",
        RELIABILITY,
    ),
    changed(
        "a day that is none",
        "  gates",
        "  unseen: {count: 6, as_of: 2026-02-30}\n  gates",
        "mini.kb.yaml:7",
        RELIABILITY,
    ),
    changed(
        "a relation that is not known",
        "  gates",
        "  relations: [P9]\n  gates",
        "P9",
        RELIABILITY,
    ),
    changed(
        "relations that are a number",
        "  gates",
        "  relations: 7\n  gates",
        "mini.kb.yaml:7",
        RELIABILITY,
    ),
    changed(
        "examples that are not there",
        "  gates",
        "  shots: no.yaml\n  gates",
        "mini.kb.yaml:7",
        RELIABILITY,
    ),
    changed(
        "an encoder that is not there",
        "[seen-zero-shot]",
        "[seen-four-shot]\n  retrieval: hf/./no",
        "hf/./no",
        RELIABILITY,
        1,
    ),
    suite("waivers that are a word", ASKING + "waivers: all\n", "mini.kb.yaml:7"),
    suite("a waiver without end", ASKING + "waivers: [{case: x}]\n", "mini.kb.yaml:7"),
    Row(
        "facts that are a pipe nobody writes to",
        {SUITE: ASKING.replace("facts.jsonl", "p.jsonl"), "suites/p.jsonl": fifo},
        2,
        "p.jsonl",
    ),
    Row("a suite that is a folder", {"suites/dir.kb.yaml": Path.mkdir}, 0, "1 passed"),
]
