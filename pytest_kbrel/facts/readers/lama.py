"""LAMA and lm-pub-quiz (BEAR): a file a relation, with the templates in a file beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_rows, json_value
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.located.yaml import read_text
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    clean,
    distinct,
    need,
    relation_id,
    rows,
    statement,
)
from pytest_kbrel.facts.readers.patterns import TRIPLES, triple
from pytest_kbrel.facts.readers.wikidata import meet_property
from pytest_kbrel.records import record

_QUIZ, _LAMA = "metadata_relations.json", "relations.jsonl"
_QUIZ_FORM = '{"P30": {"templates": ["[X] ... [Y]."], ...}, ...}'


@record
class _Known:
    """What the file beside the facts says of a relation."""

    statements: tuple[str, ...]
    label: str = ""
    answers: tuple[str, ...] = ()


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a folder of ``P*.jsonl`` or one such file.

    Templates come from ``metadata_relations.json`` (lm-pub-quiz) or ``relations.jsonl`` (LAMA) in the same
    folder or the one above, and become statements; a file without either has none. A line's ``predicate_id``
    names its relation, by default the file's name does.
    """
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    files = [file for file in files if file.name != _LAMA]
    if not files:
        below = sorted({file.parent.name for file in path.glob("*/*.jsonl")})
        hint = f"; there are some in {', '.join(below)}" if below else ""
        raise SuiteError(
            f"found no *.jsonl with facts{hint}; allowed: a file of them or a folder of such files", path
        )
    known = _known(path if path.is_dir() else path.parent)
    for file in files:
        yield from _file(file, known, relations)


def _file(path: Path, known: Mapping[str, _Known], relations: Relations) -> Iterator[Row]:
    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        name = relation_id(clean("predicate_id", value.get("predicate_id", path.stem)))
        about = known.get(name, _Known(statements=()))
        if name not in relations:
            meet_property(relations, name, about.label)
            relations[name] = dataclasses.replace(relations[name], statements=about.statements)
        return triple(value, name, about.answers)

    return rows(path, json_rows(path, TRIPLES), fact, dataset="lama")


def _known(folder: Path) -> Mapping[str, _Known]:
    for place in (folder, folder.parent):
        if (place / _QUIZ).is_file():
            return _from_quiz(place / _QUIZ)
        if (place / _LAMA).is_file():
            return _from_lama(place / _LAMA)
    return {}


def _from_quiz(path: Path) -> Mapping[str, _Known]:
    form = f"{path.name} is {_QUIZ_FORM}"
    try:
        value = json_value(read_text(path), form)
        if not isinstance(value, dict):
            raise ValueError(f"found {describe(value)}; {form}")
        found = {}
        for name, about in value.items():
            if not isinstance(about, dict) or not isinstance(about.get("templates"), list):
                raise ValueError(f"relation {name!r} must have a list 'templates'; {form}")
            space = about.get("answer_space_labels", about.get("answer_space"))
            found[relation_id(name)] = _Known(
                statements=distinct(statement(f"a template of {name}", text) for text in about["templates"]),
                answers=tuple(clean(f"each answer of {name}", label) for label in space or ()),
            )
    except ValueError as error:
        raise SuiteError(str(error), path) from None
    return found


def _from_lama(path: Path) -> Mapping[str, _Known]:
    found: dict[str, _Known] = {}
    for line, value in json_rows(path, 'relations.jsonl has one {"relation": ..., "template": ...} a line'):
        if isinstance(value, SuiteError):
            raise value
        try:
            need(value, "relation", "template")
            label = value.get("label")
            found[relation_id(clean("relation", value["relation"]))] = _Known(
                statements=(statement("template", value["template"]),),
                label=clean("label", label) if label else "",
            )
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
    return found
