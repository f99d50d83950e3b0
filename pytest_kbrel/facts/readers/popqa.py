"""PopQA: the table as published, or JSON with the fields renamed to ``input`` and ``output``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_rows, json_value
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    answers,
    clean,
    json_list,
    need,
    popularity,
    relation_id,
    rows,
)
from pytest_kbrel.facts.readers.delimited import table
from pytest_kbrel.facts.readers.json_document import Element, elements
from pytest_kbrel.records import AnswerType

FORM = 'a PopQA file in JSON is a list of {"input": ..., "output": [...], "id": ..., "s_pop": ...}'
_DOMAIN = "popqa"
_TYPES: Mapping[str, AnswerType] = {
    **dict.fromkeys(
        ("father", "mother", "producer", "director", "screenwriter", "composer", "author"), "person"
    ),
    **dict.fromkeys(("place_of_birth", "country", "capital", "capital_of"), "location"),
    **dict.fromkeys(("occupation", "genre", "color", "religion", "sport"), "other"),
}


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the TSV, or a JSON list, an object of lists (``dev``, ``test``), or JSON Lines.

    ``s_pop``, the views of the subject's page, is the popularity; a negative one is not known. A relation is
    a property (``prop``); the JSON has none, so that all its facts are of the relation ``popqa``.
    """
    if path.suffix.lower() in (".json", ".jsonl"):
        relation = relations.meet("popqa", "PopQA", _DOMAIN)
        if path.suffix.lower() == ".jsonl":
            return rows(path, json_rows(path, FORM), lambda value: _renamed(value, relation), dataset="popqa")
        numbered = ((element.line, element) for element in elements(path, FORM))
        return rows(path, numbered, lambda element: _renamed(_object(element), relation), dataset="popqa")
    source = table(path, "\t")
    _check_columns(path, source)
    return rows(path, source, lambda value: _as_published(value, relations), dataset="popqa")


def _check_columns(path: Path, source: Iterator[tuple[int, dict[str, str] | SuiteError]]) -> None:
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    try:
        need(header, "id", "subj", "prop", "obj", "s_pop", "question", "possible_answers")
    except ValueError as error:
        raise SuiteError(f"not PopQA's header: {error}", path, line) from None


def _as_published(value: dict[str, str], relations: Relations) -> Mapping[str, Any]:
    need(value, "id", "subj", "prop", "obj", "question")
    prop = clean("prop", value["prop"])
    kind = _TYPES.get(relation_id(prop))
    more = {} if kind is None else {"answer_type": kind}
    named = clean("obj", value["obj"])
    right = answers("possible_answers", [named, *_listed("possible_answers", value.get("possible_answers"))])
    return {
        "id": clean("id", value["id"]),
        "relation": relations.meet(prop, prop, _DOMAIN, **more),
        "subject": clean("subj", value["subj"]),
        "object": right[0],
        "aliases": right[1:],
        "popularity": popularity("s_pop", value.get("s_pop")),
        "question": clean("question", value["question"]),
    }


def _listed(what: str, cell: str | None) -> list[str]:
    return answers(what, json_list(what, cell)) if cell and cell.strip() else []


def _object(element: Element) -> dict[str, Any]:
    value = json_value(element.text, FORM)
    if not isinstance(value, dict):
        raise ValueError(f"not a question: found {describe(value)}; {FORM}")
    return value


def _renamed(value: dict[str, Any], relation: str) -> Mapping[str, Any]:
    need(value, "input", "output")
    question, right = clean("input", value["input"]), answers("output", value["output"])
    if not right:
        raise ValueError("'output' must hold at least one answer, found none")
    return {
        "id": clean("id", value["id"]) if "id" in value else None,
        "relation": relation,
        "subject": question,
        "object": right[0],
        "aliases": right[1:],
        "popularity": popularity("s_pop", value.get("s_pop")),
        "question": question,
    }
