"""One row of the table of hostile input, and the project that it is put into."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.plugin.conftest import CAPITALS, KNOWS, RELATIONS, SCRIPTS

# What pytest documents: 1 tests failed, 2 interrupted (also by errors while collecting), 4 usage error.
PASSED, FAILED, INTERRUPTED, USAGE = 0, 1, 2, 4

SUITE = "suites/mini.kb.yaml"
FACTS = "suites/facts.jsonl"
ASKING = """\
suite: mini
facts: facts.jsonl
head_to_tail:
  prompt: zero-shot
  slices: [places-head]
  gates: {accuracy: {min: 0.3}}
"""
RUN = (f"--kb-model={KNOWS}", "suites")


@dataclass(frozen=True)
class Row:
    """One hostile input and what must come of it.

    ``files`` are written over the project before the program starts: text, bytes, or a function that is
    given the path. ``args`` are the arguments of pytest, or of ``kbrel`` where ``command`` is true.
    ``printed`` is a part of what is printed. Input that is odd and sound exits with :data:`PASSED`.
    """

    what: str
    files: Mapping[str, str | bytes | Callable[[Path], None]] = field(
        default_factory=dict
    )
    exit: int = INTERRUPTED
    printed: str = ""
    args: tuple[str, ...] = RUN
    command: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def typed(self) -> str:
        """The command line as a user types it."""
        return " ".join(("kbrel" if self.command else "pytest", *self.args))


def facts(*changes: Mapping[str, object]) -> str:
    """Return facts as JSON lines: twelve capitals, the first of them with ``changes`` in turn."""
    lines: list[dict[str, object]] = [
        {"relation": "P36", "subject": country, "object": city, "popularity": people}
        for country, city, people in CAPITALS
    ]
    for number, change in enumerate(changes):
        lines[number] |= change
    return "".join(json.dumps(line) + "\n" for line in lines)


def project(folder: Path) -> None:
    """Write a sound suite, its facts and the models that scripts play."""
    (folder / "suites").mkdir()
    (folder / SUITE).write_text(ASKING)
    (folder / FACTS).write_text(facts())
    (folder / "suites" / "relations.yaml").write_text(RELATIONS)
    for name, lines in SCRIPTS.items():
        (folder / f"{name}.jsonl").write_text(lines)


def put(row: Row, folder: Path, sound: Path) -> None:
    """Write the row's files into the project; what an earlier run left is copied from ``sound`` first."""
    for name, content in row.files.items():
        path = folder / name
        if callable(content) and (sound / name).is_dir():
            shutil.copytree(sound / name, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if callable(content):
            content(path)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content, encoding="utf-8")
