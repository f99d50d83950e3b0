"""Rows, relations and ids, which all readers share, and text as the facts format wants it."""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.answer_kinds import answer_type_of
from pytest_kbrel.facts.files import LISTS, as_fact
from pytest_kbrel.facts.located import describe, json_value
from pytest_kbrel.records import Fact, Relation, record

S = TypeVar("S")
_SPACED_MARK = re.compile(r" +([.,;:!?])")
_DOUBLE_DOT = re.compile(r"(?<!\.)\.\.$")


@record
class Row:
    """One row of a source: a fact, or the error that it is none; ``line`` is where it begins.

    ``given``: the fact's id is the source's own, so that two facts may not share it.
    """

    path: Path
    line: int
    fact: Fact | None = None
    error: SuiteError | None = None
    given: bool = False


class Relations(dict[str, Relation]):
    """The relations a source brings, by id; it fills up while the rows are read."""

    def add(
        self, name: str, label: str = "", domain: str = "general", **more: Any
    ) -> str:
        """Add a relation unless it is there, and return its id, which is made of ``name``."""
        key = relation_id(name)
        if key not in self:
            self[key] = Relation(
                id=key, label=label or name, domain=domain, frames=(), **more
            )
        return key


Reader = Callable[[Path, Relations], Iterator[Row]]


def checked_rows(
    path: Path,
    source: Iterable[tuple[int, S | SuiteError]],
    convert: Callable[[S], tuple[Fact, bool]],
) -> Iterator[Row]:
    """Make a row of each numbered piece of a source; ``convert`` gives the fact, and if its id is given.

    A ``ValueError`` of ``convert`` becomes the row's error.
    """
    for line, piece in source:
        try:
            if isinstance(piece, SuiteError):
                raise piece
            fact, given = convert(piece)
        except SuiteError as error:
            yield Row(path=path, line=line, error=error)
        except ValueError as error:
            yield Row(path=path, line=line, error=SuiteError(str(error), path, line))
        else:
            yield Row(path=path, line=line, fact=fact, given=given)


def rows(
    path: Path,
    source: Iterable[tuple[int, S | SuiteError]],
    convert: Callable[[S], Mapping[str, Any]],
    *,
    dataset: str = "",
) -> Iterator[Row]:
    """Make a row of each numbered piece of a source; ``convert`` gives keys of the facts format.

    Their values are cleaned. What is left out is filled in: ``id`` from the content, ``dataset``, and
    ``answer_type`` where the object looks like a number or a time.
    """

    def filled(piece: S) -> tuple[Fact, bool]:
        value = {
            key: _cell(key, item)
            for key, item in convert(piece).items()
            if item not in (None, "", [])
        }
        given = "id" in value
        value.setdefault("object", None)
        if not given:
            value["id"] = content_id(value)
        if dataset:
            value.setdefault("dataset", dataset)
        fact = as_fact(value)
        # Every number and time has a digit, but for a bare month.
        if not fact.answer_type and any(map(str.isdigit, fact.object or "")):
            looks = answer_type_of(fact, None)
            if looks != "other":
                fact = dataclasses.replace(fact, answer_type=looks)
        return fact, given

    return checked_rows(path, source, filled)


def _cell(key: str, value: Any) -> Any:
    if key in LISTS:
        return answers(key, value)
    if key == "popularity":
        return popularity(key, value)
    if key == "answer_range":
        if isinstance(value, str):
            return json_value(value, f"{key!r} holds two numbers: [118, 122]")
        # DuckDB has a type of its own for numbers with a point.
        return [float(end) if isinstance(end, Decimal) else end for end in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return clean(key, value)


def answered(
    relation: str, question: Any, what: str, right: Sequence[Any] | str
) -> dict[str, Any]:
    """Return the keys of a question with answers, which stand under ``what``; it is its own subject."""
    asked = clean("question", question)
    keys = {"relation": relation, "subject": asked, "question": asked}
    return keys | with_answers(what, right)


def with_answers(what: str, value: Any) -> dict[str, Any]:
    """Return the first of the right answers as the object and the others as aliases; one is needed."""
    right = answers(what, value)
    if not right:
        raise ValueError(f"{what!r} must hold at least one answer, found none")
    return {"object": right[0], "aliases": right[1:]}


def content_id(value: Mapping[str, Any]) -> str:
    """Return ``relation:subject:object``, for a question its relation and a digest of it and its answers."""
    if "question" not in value:
        return f"{value.get('relation')}:{value.get('subject')}:{value.get('object')}"
    content = [value["question"], value.get("object"), value.get("aliases", [])]
    digest = hashlib.sha256(
        json.dumps(content, ensure_ascii=False).encode()
    ).hexdigest()
    return f"{value.get('relation')}:{digest[:16]}"


def clean(what: str, value: Any) -> str:
    """Return a text or number as text of one line with single spaces; raises ``ValueError``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    text = " ".join(value.split()) if isinstance(value, str) else ""
    if not text:
        raise ValueError(f"{what!r} must be text or a number, found {describe(value)}")
    return text


def answers(what: str, value: Any) -> list[str]:
    """Return the right answers of a source: a text, a number, a list of them, or such a list as JSON text.

    Objects may stand for them: ``{value, aliases}`` of TriviaQA, ``{text}`` of SQuAD, ``{answer}`` of KILT,
    where a place alone is none. Blank ones and repetitions, case apart, are left out. Nothing gives an empty
    list.
    """
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = json_list(what, value)
    texts: dict[str, str] = {}
    for text in _flat(what, value):
        texts.setdefault(text.casefold(), text)
    return list(texts.values())


# In the order in which they are most like what a person would answer.
_ANSWERS = (
    *("value", "text", "answer", "aliases", "humananswers"),
    *("normalizedvalue", "normalizedaliases", "provenance"),
)


def _flat(what: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        named = {key.replace("_", "").casefold(): item for key, item in value.items()}
        if named.keys().isdisjoint(_ANSWERS):
            clean(what, value)
        value = [named.get(key) for key in _ANSWERS[:-1]]
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _flat(what, item)
    # TriviaQA has a word for no answer.
    elif value not in (None, "<unk>") and str(value).strip():
        yield clean(what, value)


def json_list(what: str, text: str) -> Sequence[Any]:
    """Return the list that stands as JSON inside a text."""
    value = json_value(text, f'{what!r} holds a JSON list: ["a", "b"]')
    if not isinstance(value, list):
        raise ValueError(f"{what!r} must hold a JSON list, found {describe(value)}")
    return value


def popularity(what: str, value: Any) -> float | None:
    """Return a popularity; one that is absent, empty or negative is not known."""
    if value is None or value == "":
        return None
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{what!r} must be a number, found {describe(value)}"
        ) from None
    return None if number < 0 else number


def relation_id(name: str) -> str:
    """Return a name as a relation's id or domain: ASCII letters, digits, ``_`` and ``.``."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    words = re.sub(r"[^A-Za-z0-9_.]+", "_", plain).strip("_.")
    if not words:
        raise ValueError(
            f"a name needs ASCII letters or digits, found {describe(name)}"
        )
    return words


def statement(what: str, text: Any) -> str:
    """Return a declarative template with ``[X]`` and ``[Y]`` once each, spaces before marks and a double full
    stop at the end removed."""
    cleaned = _DOUBLE_DOT.sub(".", _SPACED_MARK.sub(r"\1", clean(what, text)))
    for placeholder in ("[X]", "[Y]"):
        if cleaned.count(placeholder) != 1:
            raise ValueError(
                f"{what!r} must contain {placeholder} exactly once, found {cleaned!r}"
            )
    return cleaned


class Ids:
    """The ids and contents met so far: all that is kept in memory of a source, about 0.25 kB a fact."""

    def __init__(self) -> None:
        self._first: dict[int, str] = {}
        self._taken: set[int] = set()
        self._last: dict[str, int] = {}

    def with_unique_id(self, row: Row) -> Row:
        """Return the row with an id nobody has; one that says what an earlier one said names it.

        Facts say the same when relation, subject, object and question are equal. A later one becomes
        ``id#2``, ``id#3``, ... A source's own id on two facts that differ is an error.
        """
        fact = row.fact
        if fact is None:
            return row
        content = hash((fact.relation, fact.subject, fact.object, fact.question))
        first = self._first.get(content)
        if first is None and row.given and hash(fact.id) in self._taken:
            message = f"id {fact.id!r} stands twice, for facts that differ; allowed: an id for each fact"
            error = SuiteError(message, row.path, row.line)
            return dataclasses.replace(row, fact=None, error=error)
        free = self._free(fact.id)
        self._first.setdefault(content, free)
        self._taken.add(hash(free))
        if first is None and free == fact.id:
            return row
        fact = dataclasses.replace(fact, id=free, duplicate_of=first or "")
        return dataclasses.replace(row, fact=fact)

    def _free(self, wanted: str) -> str:
        if hash(wanted) not in self._taken:
            return wanted
        number = self._last.get(wanted, 1) + 1
        while hash(f"{wanted}#{number}") in self._taken:
            number += 1
        self._last[wanted] = number
        return f"{wanted}#{number}"
