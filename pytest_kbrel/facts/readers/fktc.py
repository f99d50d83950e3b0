"""FKTC, the question sets of MONITOR: a line with the prompts, then a fact a line; a file is a relation."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_rows
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.readers.base import Relations, Row, clean, distinct, need, rows
from pytest_kbrel.facts.readers.wikidata import meet_property

FORM = (
    'an FKTC file has {"relations": ["question with [X]", ...]} on its first line and then '
    '{"subject": ..., "object": ..., "taxonomy": [...]} on each'
)
_FILES = "*-subclass*.json"
# The files are called P37-subclass.json; another relation than Wikidata's may stand there.
_NAME = re.compile(r"(P[0-9]+)(?![A-Za-z0-9_])|([A-Za-z0-9_]+)(?=-subclass)")


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file, or all ``P*-subclass.json`` of a folder.

    The prompts are the relation's frames, the first the base frame; one that repeats an earlier one word for
    word is left out. The relation's id is the first part of the file's name. ``taxonomy`` are the negatives.
    """
    if not path.is_dir():
        yield from _file(path, relations)
        return
    files = sorted(path.glob(_FILES))
    if not files:
        raise SuiteError(f"found no file called {_FILES}; allowed: an FKTC file, or a folder with some", path)
    for file in files:
        yield from _file(file, relations)


def _file(path: Path, relations: Relations) -> Iterator[Row]:
    name = _NAME.match(path.name)
    if name is None:
        raise SuiteError(
            "an FKTC file's name must begin with its relation, which stands nowhere in the file; allowed: "
            "P37-subclass.json, P37.json or NAME-subclass.json",
            path,
        )
    source = json_rows(path, FORM)
    line, header = next(source, (1, SuiteError(f"the file is empty; {FORM}", path, 1)))
    if isinstance(header, SuiteError):
        raise header
    relation = meet_property(relations, name[0])
    frames = _frames(header, path, line)
    relations[relation] = dataclasses.replace(relations[relation], frames=frames)

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        need(value, "subject", "object", "taxonomy")
        negatives = value["taxonomy"]
        if not isinstance(negatives, list):
            raise ValueError(f"'taxonomy' must be a list of texts, found {describe(negatives)}")
        return {
            "relation": relation,
            "subject": clean("subject", value["subject"]),
            "object": clean("object", value["object"]),
            "negatives": [clean("each of taxonomy", item) for item in negatives],
        }

    yield from rows(path, source, fact, dataset="fktc")


def _frames(header: dict[str, Any], path: Path, line: int) -> tuple[str, ...]:
    prompts = header.get("relations")
    if not isinstance(prompts, list) or not prompts:
        found = ", ".join(header) or "nothing"
        raise SuiteError(f"no 'relations' with the prompts; found: {found}; {FORM}", path, line)
    try:
        frames = distinct(clean("each of relations", prompt) for prompt in prompts)
        for frame in frames:
            if frame.count("[X]") != 1 or "[Y]" in frame:
                raise ValueError(f"each of 'relations' must contain [X] exactly once, found {frame!r}")
    except ValueError as error:
        raise SuiteError(str(error), path, line) from None
    return frames
