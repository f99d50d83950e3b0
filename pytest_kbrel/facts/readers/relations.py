"""Readers of datasets with relations: FKTC (MONITOR), ParaRel, LAMA and lm-pub-quiz (BEAR), Head-to-Tail."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import (
    describe,
    json_records,
    json_rows,
    json_value,
    located,
    read_text,
    require_keys,
    unknown,
)
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    answers,
    clean,
    elements,
    relation_id,
    rows,
    statement,
    with_answers,
)
from pytest_kbrel.records import BUCKETS, AnswerType
from pytest_kbrel.resources import tsv_rows

_WIKIDATA = "wikidata"
# The label and the type of answer of each property.
PROPERTIES = {
    name: (label, cast(AnswerType, kind))
    for name, kind, label in tsv_rows("facts/readers/wikidata_properties.tsv")
}


def add_property(relations: Relations, name: str, label: str = "") -> str:
    """Add the relation of a Wikidata property, labelled as the source or else :data:`PROPERTIES` has it."""
    if name not in PROPERTIES:
        return relations.add(name, label or name, _WIKIDATA)
    own_label, answer_type = PROPERTIES[name]
    return relations.add(name, label or own_label, _WIKIDATA, answer_type=answer_type)


FKTC_FORM = (
    'an FKTC file has {"relations": ["question with [X]", ...]} on its first line and then '
    '{"subject": ..., "object": ..., "taxonomy": [...]} on each'
)
_SUBCLASS_FILES = "*-subclass*.json"
# The files are called P37-subclass.json; another relation than Wikidata's may stand there.
_FKTC_NAME = re.compile(r"(P[0-9]+)(?![A-Za-z0-9_])|([A-Za-z0-9_]+)(?=-subclass)")


def read_fktc(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file, or all ``P*-subclass.json`` of a folder.

    The prompts are the relation's frames, the first the base frame; one that repeats an earlier one word for
    word is left out. The relation's id is the first part of the file's name. ``taxonomy`` are the negatives.
    """
    for file in _files(path, _SUBCLASS_FILES, "an FKTC file, or a folder with some"):
        yield from _fktc_file(file, relations)


def _files(path: Path, pattern: str, allowed: str, hint: str = "") -> list[Path]:
    """Return a file, or those of a folder that a pattern names, at least one."""
    files = sorted(path.glob(pattern)) if path.is_dir() else [path]
    files = [file for file in files if file.name != _LAMA]
    if not files:
        raise SuiteError(
            f"found no file called {pattern}{hint}; allowed: {allowed}", path
        )
    return files


def _fktc_file(path: Path, relations: Relations) -> Iterator[Row]:
    name = _FKTC_NAME.match(path.name)
    if name is None:
        raise SuiteError(
            "an FKTC file's name must begin with its relation, which stands nowhere in the file; allowed: "
            "P37-subclass.json, P37.json or NAME-subclass.json",
            path,
        )
    source = json_rows(path, FKTC_FORM)
    empty = SuiteError(f"the file is empty; {FKTC_FORM}", path, 1)
    line, header = next(source, (1, empty))
    if isinstance(header, SuiteError):
        raise header
    relation = add_property(relations, name[0])
    with located(path, line):
        prompts = header.get("relations")
        if not isinstance(prompts, list) or not prompts:
            present = ", ".join(header) or "nothing"
            raise ValueError(
                f"no 'relations' with the prompts; found: {present}; {FKTC_FORM}"
            )
        texts = [clean("each of relations", prompt) for prompt in prompts]
        frames = tuple(dict.fromkeys(texts))
        for frame in frames:
            if frame.count("[X]") != 1 or "[Y]" in frame:
                raise ValueError(
                    f"each of 'relations' must contain [X] exactly once, found {frame!r}"
                )
    relations[relation] = dataclasses.replace(relations[relation], frames=frames)

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        require_keys(value, "subject", "object", "taxonomy")
        negatives = value["taxonomy"]
        if not isinstance(negatives, list):
            raise ValueError(
                f"'taxonomy' must be a list of texts, found {describe(negatives)}"
            )
        return {
            "relation": relation,
            "subject": value["subject"],
            "object": value["object"],
            "negatives": negatives,
        }

    yield from rows(path, source, fact, dataset="fktc")


TRIPLES = 'a file of LAMA\'s kind has one {"sub_label": ..., "obj_label": ...} a line'


def triple(
    value: dict[str, Any], relation: str, labels: tuple[str, ...] = ()
) -> Mapping[str, Any]:
    """Return subject, object and aliases of a line; ``answer_idx`` may stand for the object.

    ``labels`` is the answer space to which ``answer_idx`` points.
    """
    require_keys(value, "sub_label")
    index = value.get("answer_idx")
    if "obj_label" in value or not labels or type(index) is not int:
        require_keys(value, "sub_label", "obj_label")
        named = value["obj_label"]
    elif 0 <= index < len(labels):
        named = labels[index]
    else:
        raise ValueError(f"'answer_idx' must be 0 to {len(labels) - 1}, found {index}")
    others = answers("obj_aliases", value.get("obj_aliases"))
    return {
        "relation": relation,
        "subject": value["sub_label"],
        **with_answers("obj_label", [named, *others]),
    }


def read_patterns(path: Path) -> tuple[str, ...]:
    """Read a file of ParaRel patterns, ``{"pattern": "[X] ... [Y] ."}`` a line, as they stand there.

    Spaces before punctuation are removed. Raises ``SuiteError`` on the first line that is none.
    """
    form = 'a ParaRel file has one {"pattern": "[X] ... [Y] ."} a line'

    def pattern(value: dict[str, Any]) -> str:
        require_keys(value, "pattern")
        return statement("pattern", value["pattern"])

    return tuple(text for _, text in json_records(path, form, pattern))


_PATTERNS, _FACTS = "graphs_json", "trex_lms_vocab"


def read_pararel(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a folder with ``graphs_json`` and ``trex_lms_vocab``, or one file of facts of such a folder.

    Patterns become the relation's statements, each once. They are declarative, so that these relations have
    no frames: MONITOR and the other probes need frames from a relations file of the user's own.
    """
    files = _files(path, f"{_FACTS}/*.jsonl", "a folder with the facts")
    # The patterns of a file lie in the sister folder, or beside the file itself.
    folders = [path] if path.is_dir() else [path.parent.parent, path.parent]
    for file in files:
        patterns = [folder / _PATTERNS / file.name for folder in folders]
        there = next(filter(Path.is_file, patterns), None)
        if there is None:
            raise SuiteError(
                f"found no patterns for it: {patterns[0]} is no file", file
            )
        relation = add_property(relations, relation_id(there.stem))
        relations[relation] = dataclasses.replace(
            relations[relation], statements=tuple(dict.fromkeys(read_patterns(there)))
        )
        fact = partial(triple, relation=relation)
        yield from rows(file, json_rows(file, TRIPLES), fact, dataset="pararel")


_QUIZ, _LAMA = "metadata_relations.json", "relations.jsonl"
_LAMA_FORM = 'relations.jsonl has one {"relation": ..., "template": ...} a line'


# A relation as the file beside the facts describes it: label, statements, and the answers that there are.
_About = tuple[str, tuple[str, ...], tuple[str, ...]]


def read_lama(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a folder of ``P*.jsonl`` or one such file.

    Templates come from ``metadata_relations.json`` (lm-pub-quiz) or ``relations.jsonl`` (LAMA) in the same
    folder or the one above, and become statements; a file without either has none. A line's ``predicate_id``
    names its relation, by default the file's name does.
    """
    below = sorted({file.parent.name for file in path.glob("*/*.jsonl")})
    hint = f"; there are some in {', '.join(below)}" if below else ""
    files = _files(path, "*.jsonl", "a file of facts or a folder of such", hint)
    described = _described(path if path.is_dir() else path.parent)

    def fact(value: dict[str, Any], file: Path) -> Mapping[str, Any]:
        name = relation_id(clean("predicate_id", value.get("predicate_id", file.stem)))
        label, statements, labels = described.get(name, ("", (), ()))
        if name not in relations:
            add_property(relations, name, label)
            of = dataclasses.replace(relations[name], statements=statements)
            relations[name] = of
        return triple(value, name, labels)

    for file in files:
        source = json_rows(file, TRIPLES)
        yield from rows(file, source, partial(fact, file=file), dataset="lama")


def _described(folder: Path) -> Mapping[str, _About]:
    for parent in (folder, folder.parent):
        if (parent / _QUIZ).is_file():
            with located(parent / _QUIZ):
                return dict(_quiz_relations(parent / _QUIZ))
        if (parent / _LAMA).is_file():
            records = json_records(parent / _LAMA, _LAMA_FORM, _lama_relation)
            return dict(about for _, about in records)
    return {}


def _quiz_relations(path: Path) -> Iterator[tuple[str, _About]]:
    form = f'{path.name} is {{"P30": {{"templates": ["[X] ... [Y]."], ...}}, ...}}'
    value = json_value(read_text(path), form)
    if not isinstance(value, dict):
        raise ValueError(f"found {describe(value)}; {form}")
    for name, about in value.items():
        if not isinstance(about, dict) or not isinstance(about.get("templates"), list):
            raise ValueError(f"relation {name!r} must have a list 'templates'; {form}")
        space = about.get("answer_space_labels", about.get("answer_space")) or ()
        texts = [statement(f"a template of {name}", of) for of in about["templates"]]
        labels = tuple(clean(f"each answer of {name}", label) for label in space)
        yield relation_id(name), ("", tuple(dict.fromkeys(texts)), labels)


def _lama_relation(value: dict[str, Any]) -> tuple[str, _About]:
    require_keys(value, "relation", "template")
    label = clean("label", value["label"]) if value.get("label") else ""
    about = label, (statement("template", value["template"]),), ()
    return relation_id(clean("relation", value["relation"])), about


_HEAD_TO_TAIL = 'a Head-to-Tail file is {"head": [[entity, template, question, answer], ...], "torso": ..., "tail": ...}'
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
    names = {}

    def fact(member: tuple[str, str]) -> Mapping[str, Any]:
        bucket, text = member
        value = json_value(text, _HEAD_TO_TAIL)
        if not isinstance(value, list) or len(value) != 4:
            raise ValueError(
                f"a row must be [entity, template, question, answer], found {describe(value)}"
            )
        entity, template = value[0], clean("template", value[1])
        subject, domain = _subject(entity)
        if template not in names:
            names[template] = _add_relation(template, domain, relations)
        return {
            "relation": names[template],
            "subject": subject,
            "question": clean("question", value[2]),
            "bucket": bucket,
            **with_answers("answer", value[3]),
        }

    return rows(path, _numbered(path), fact, dataset="head-to-tail")


def _numbered(path: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    for line, bucket, text in elements(path, _HEAD_TO_TAIL):
        if bucket not in BUCKETS:
            fault = f"found a list; {_HEAD_TO_TAIL}"
            if bucket:
                fault = unknown("bucket", bucket, BUCKETS)
            raise SuiteError(fault, path, line)
        yield line, (bucket, text)


def _subject(entity: Any) -> tuple[str, str]:
    """Return the name of an entity and its domain."""
    if isinstance(entity, dict):
        for key in _NAMES:
            if isinstance(entity.get(key), (str, int)):
                return clean(key, entity[key]), "academics"
        raise ValueError(
            f"the entity must have one of {', '.join(_NAMES)}; found: {', '.join(entity)}"
        )
    if isinstance(entity, list) and entity:
        entity = entity[0]
    name = _name(clean("entity", entity))
    domains = (domain for pattern, domain in _DOMAINS if pattern.search(str(entity)))
    return name, next(domains, "open")


def _name(text: str) -> str:
    """Return the name in an IRI of DBpedia, any other text as it is."""
    if "dbpedia.org/resource/" not in text:
        return text
    name = unquote(text.strip("<>").split("/resource/", 1)[1]).replace("_", " ")
    return clean("entity", name)


def _add_relation(template: str, domain: str, relations: Relations) -> str:
    # The last part of an IRI, and all of it where another template has taken that.
    last = re.split(r"[/#]", template.strip("<>"))[-1]
    if not re.search("[A-Za-z]", last):
        last = f"template_{last}"
    name = relation_id(last)
    if name in relations:
        name = relation_id(template.strip("<>").split("//")[-1])
    return relations.add(name, _HUMP.sub(" ", last).replace("_", " ").lower(), domain)
