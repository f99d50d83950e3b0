"""Reader of what the scripts of Head-to-Tail write: buckets of ``[entity, template, question, answer]``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import describe, json_value, unknown
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    clean,
    elements,
    relation_id,
    rows,
    with_answers,
)
from pytest_kbrel.records import BUCKETS

FORM = 'a Head-to-Tail file is {"head": [[entity, template, question, answer], ...], "torso": ..., "tail": ...}'
_NAMES = ("name", "title", "label", "key", "id")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# The domains of section 2 of the paper, by what an entity looks like.
_DOMAINS = (
    (re.compile(r"dbpedia\.org"), "open"),
    (re.compile(r"(?:tt|nm)\d{5,}|imdb"), "movie"),
    (re.compile(r"goodreads"), "book"),
)


def read_head_to_tail(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file; each fact has the bucket it stands in, and no popularity.

    A template is a relation, its domain ``open``, ``movie``, ``book`` or ``academics``.
    """
    names: dict[str, str] = {}

    def fact(member: tuple[str, str]) -> Mapping[str, Any]:
        bucket, text = member
        value = json_value(text, FORM)
        if not isinstance(value, list) or len(value) != 4:
            raise ValueError(
                f"a row must be [entity, template, question, answer], found {describe(value)}"
            )
        entity, template = value[0], clean("template", value[1])
        subject = _subject(entity)
        if template not in names:
            names[template] = _add_relation(template, _domain(entity), relations)
        return {
            "relation": names[template],
            "subject": subject,
            "question": clean("question", value[2]),
            "bucket": bucket,
            **with_answers("answer", value[3]),
        }

    return rows(path, _numbered(path), fact, dataset="head-to-tail")


def _numbered(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    for line, bucket, text in elements(path, FORM):
        if bucket not in BUCKETS:
            fault = f"found a list; {FORM}"
            if bucket:
                fault = unknown("bucket", bucket, BUCKETS)
            raise SuiteError(fault, path, line)
        yield line, (bucket, text)


def _subject(entity: Any) -> str:
    if isinstance(entity, list) and entity:
        return _name(clean("entity", entity[0]))
    if isinstance(entity, dict):
        for key in _NAMES:
            if isinstance(entity.get(key), (str, int)):
                return clean(key, entity[key])
        raise ValueError(
            f"the entity must have one of {', '.join(_NAMES)}; found: {', '.join(entity)}"
        )
    return _name(clean("entity", entity))


def _name(text: str) -> str:
    """Return the name in an IRI of DBpedia, any other text as it is."""
    if "dbpedia.org/resource/" not in text:
        return text
    name = unquote(text.strip("<>").split("/resource/", 1)[1]).replace("_", " ")
    return clean("entity", name)


def _domain(entity: Any) -> str:
    if isinstance(entity, dict):
        return "academics"
    text = str(entity[0] if isinstance(entity, list) else entity)
    return next(
        (domain for pattern, domain in _DOMAINS if pattern.search(text)), "open"
    )


def _add_relation(template: str, domain: str, relations: Relations) -> str:
    # The last part of an IRI, and all of it where another template has taken that.
    last = re.split(r"[/#]", template.strip("<>"))[-1]
    if not re.search("[A-Za-z]", last):
        last = f"template_{last}"
    name = relation_id(last)
    if name in relations:
        name = relation_id(template.strip("<>").split("//")[-1])
    return relations.add(name, _HUMP.sub(" ", last).replace("_", " ").lower(), domain)
