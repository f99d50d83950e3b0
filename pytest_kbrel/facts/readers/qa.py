"""Question files of many makers (SeenQA, UnseenQA and the like): tolerant in the names of keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located.json import json_rows, json_value
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.readers.base import Relations, Row, answers, clean, popularity, relation_id, rows
from pytest_kbrel.facts.readers.json_document import Element, elements
from pytest_kbrel.records import ANSWER_TYPES

FORM = 'a question file has {"question": ..., "answers": [...]}, one a line or in a JSON list'
# The first of the names that a row has counts.
NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "input", "prompt", "Question"),
    "answers": ("answers", "answer", "possible_answers", "output", "outputs", "target", "gold", "Answer"),
    "id": ("id", "qid", "question_id", "QuestionId"),
    "dataset": ("dataset", "source"),
    "popularity": ("popularity", "s_pop"),
    "subject": ("subject", "subj"),
    "relation": ("relation", "prop"),
    "answer_type": ("answer_type",),
    "valid_until": ("valid_until",),
}
_TYPES: Mapping[str, str] = {
    **{name: name for name in ANSWER_TYPES},
    **dict.fromkeys(("date", "year", "datetime"), "time"),
    **dict.fromkeys(("people", "human", "name"), "person"),
    **dict.fromkeys(("place", "loc", "geography"), "location"),
    **dict.fromkeys(("num", "numeric", "numerical", "quantity", "count"), "number"),
    **dict.fromkeys(("others", "misc", "entity"), "other"),
}


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read JSON Lines, a JSON list, or a JSON object of lists.

    A row without an answer, or with the answer "unsure", is a question nobody can answer. ``dataset`` is the
    row's own, else ``qa``; the relation is the row's own, else one for each dataset.
    """
    convert = _Converter(relations)
    if _is_lines(path):
        return rows(path, json_rows(path, FORM), convert.fact, dataset="qa")
    numbered = ((element.line, element) for element in elements(path, FORM))
    return rows(path, numbered, convert.element, dataset="qa")


def _is_lines(path: Path) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    try:
        with path.open("rb") as stream:
            line = stream.readline(1 << 16).removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise SuiteError(f"cannot be read: {error.strerror}", path) from None
    try:
        value = json_value(line.decode("utf-8"), FORM)
    except ValueError:
        return False
    return isinstance(value, dict) and any(name in value for name in NAMES["question"])


class _Converter:
    def __init__(self, relations: Relations) -> None:
        self.relations = relations

    def element(self, element: Element) -> Mapping[str, Any]:
        value = json_value(element.text, FORM)
        if not isinstance(value, dict):
            raise ValueError(f"not a question: found {describe(value)}; {FORM}")
        return self.fact(value)

    def fact(self, value: dict[str, Any]) -> Mapping[str, Any]:
        question = clean("question", _found(value, "question", needed=True))
        right = answers("answers", _answers(value))
        if [answer.casefold() for answer in right] == ["unsure"]:
            right = []
        # Slices are named by it.
        dataset = relation_id(_text(value, "dataset") or "qa")
        name = _text(value, "relation")
        if name is None:
            relation = self.relations.meet(dataset, dataset, "qa")
        else:
            relation = self.relations.meet(name, name, dataset)
        subject = _text(value, "subject")
        return {
            "id": _text(value, "id"),
            "relation": relation,
            "subject": subject or question,
            "object": right[0] if right else None,
            "aliases": right[1:],
            "question": question,
            "popularity": popularity("popularity", _found(value, "popularity")),
            "answer_type": answer_type(value),
            "dataset": dataset,
            "valid_until": _text(value, "valid_until"),
        }


def _found(value: Mapping[str, Any], what: str, *, needed: bool = False) -> Any:
    for name in NAMES[what]:
        if name in value:
            return value[name]
    if needed:
        found = ", ".join(value) or "nothing"
        raise ValueError(f"no {what}; found: {found}; allowed: one of {', '.join(NAMES[what])}")
    return None


def _text(value: Mapping[str, Any], what: str) -> str | None:
    found: object = _found(value, what)
    return None if found is None or found == "" else clean(what, found)


def _answers(value: Mapping[str, Any]) -> Any:
    if not any(name in value for name in NAMES["answers"]):
        # A slip in the key would make every question one without an answer.
        for key in value:
            if hint := nearest(key, NAMES["answers"]):
                raise ValueError(
                    f"unknown key {key!r}; answers stand under one of {', '.join(NAMES['answers'])}{hint}"
                )
    return _found(value, "answers")


def answer_type(value: Mapping[str, Any]) -> str | None:
    """Return the type of answer that a row names, in the words of many makers; ``ValueError`` on others."""
    found = _text(value, "answer_type")
    if found is None:
        return None
    kind = _TYPES.get(found.casefold())
    if kind is None:
        raise ValueError(f"'answer_type' must be one of {', '.join(ANSWER_TYPES)}, found {found!r}")
    return kind
