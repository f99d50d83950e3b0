"""ParaRel: patterns a relation, with the facts of LAMA's T-REx beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_rows
from pytest_kbrel.facts.readers.base import Relations, Row, distinct, relation_id, rows
from pytest_kbrel.facts.readers.patterns import TRIPLES, read_patterns, triple
from pytest_kbrel.facts.readers.wikidata import meet_property

_PATTERNS, _FACTS = "graphs_json", "trex_lms_vocab"


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a folder with ``graphs_json`` and ``trex_lms_vocab``, or one file of facts of such a folder.

    Patterns become the relation's statements, each once. They are declarative, so that these relations have
    no frames: MONITOR and the other probes need frames from a relations file of the user's own.
    """
    if not path.is_dir():
        # The patterns lie in the sister folder, or beside the file itself.
        folder = next((f for f in (path.parent.parent, path.parent) if (f / _PATTERNS).is_dir()), None)
        if folder is None:
            raise SuiteError(f"found no folder {_PATTERNS} with patterns beside or above it", path)
        patterns = folder / _PATTERNS / path.name
        if not patterns.is_file():
            raise SuiteError(f"found no patterns for it: {patterns} is no file", path)
        yield from _facts(path, _relation(patterns, relations))
        return
    facts = sorted((path / _FACTS).glob("*.jsonl"))
    if not facts:
        raise SuiteError(f"found no *.jsonl in its folder {_FACTS}; allowed: a folder with the facts", path)
    known = {file.name: _relation(file, relations) for file in sorted((path / _PATTERNS).glob("*.jsonl"))}
    for file in facts:
        if file.name not in known:
            raise SuiteError(f"found no patterns for it: {path / _PATTERNS / file.name} is no file", file)
        yield from _facts(file, known[file.name])


def _relation(file: Path, relations: Relations) -> str:
    name = meet_property(relations, relation_id(file.stem))
    relations[name] = dataclasses.replace(relations[name], statements=distinct(read_patterns(file)))
    return name


def _facts(file: Path, relation: str) -> Iterator[Row]:
    return rows(file, json_rows(file, TRIPLES), partial(triple, relation=relation), dataset="pararel")
