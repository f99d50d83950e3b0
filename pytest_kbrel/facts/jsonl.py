"""The project's own JSON Lines files, one object a line: facts, and examples to show in prompts."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import POPULARITY, Bounds
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import describe, json_rows, unknown
from pytest_kbrel.records import ANSWER_TYPES, BUCKETS, LANGUAGE_TAG, Fact, Shot

_REQUIRED = ("relation", "subject", "object")
_TEXTS = ("id", "relation", "subject", "object")
_NOTES = ("source", "licence", "dataset", "duplicate_of")
_LISTS = ("aliases", "negatives")
# A value that a message shows whole.
_SHOWN = 60
_RANGE = Bounds(-1e300, 1e300, whole=False)
_CHOICES: Mapping[str, tuple[str, ...]] = {"answer_type": ANSWER_TYPES, "bucket": BUCKETS}
KEYS = (
    *(*_TEXTS, *_LISTS, "popularity", "question", *_CHOICES, *_NOTES),
    *("valid_until", "language", "answer_range"),
)

_PUBLIC = (
    "; a public dataset in a format of its own needs that format's name, in a suite under 'format' "
    "(docs/datasets.md)"
)
FORM = 'a facts file has one JSON object a line: {"relation": "P36", "subject": "Peru", "object": "Lima"}'


def read_facts(path: Path) -> tuple[Fact, ...]:
    """Read all facts of a file; raises ``SuiteError`` with the line on the first that is wrong."""
    return tuple(fact for _, fact in numbered_facts(path))


def numbered_facts(path: Path) -> Iterator[tuple[int, Fact]]:
    """Yield the facts of a file one by one with their line numbers; blank lines are skipped.

    An absent ``id`` becomes ``relation:subject``. Ids are unique within a file.
    """
    first_line: dict[str, int] = {}
    for line, value in json_rows(path, FORM):
        # Of a file that is of another format already the first line is no fact.
        foreign = not first_line and (isinstance(value, SuiteError) or not set(_REQUIRED) <= set(value))
        if isinstance(value, SuiteError):
            raise SuiteError(f"{value}{_PUBLIC}") if foreign else value
        try:
            fact = as_fact(value)
        except ValueError as error:
            raise SuiteError(f"{error}{_PUBLIC if foreign else ''}", path, line) from None
        if fact.id in first_line:
            first = f"id {fact.id!r} stands twice; the first is on line {first_line[fact.id]}"
            raise SuiteError(f"{first}; allowed: an 'id' of its own for each fact", path, line)
        first_line[fact.id] = line
        yield line, fact
    if not first_line:
        raise SuiteError(f"no facts found; {FORM}", path, 1)


def as_fact(value: Mapping[str, Any]) -> Fact:
    """Return the fact that an object of the facts format is; raises ``ValueError`` on the first mistake.

    ``object`` may be nothing where there is a ``question``: one that has no answer.
    """
    for key, item in value.items():
        if key == "object" and item is None and value.get("question"):
            continue
        if key in _TEXTS:
            _text(repr(key), item)
        elif key in _LISTS:
            _texts(key, item)
        elif key == "question":
            if item is not None:
                _text(repr(key), item)
        elif key == "popularity":
            if item is not None:
                _popularity(item)
        elif key in _CHOICES:
            if item not in ("", *_CHOICES[key]):
                raise ValueError(f"{key!r} must be one of {', '.join(_CHOICES[key])}, found {describe(item)}")
        elif key == "valid_until":
            check_date(item)
        elif key == "language":
            check_language(item)
        elif key == "answer_range":
            if item is not None:
                check_range(item)
                if value.get("object") is None:
                    raise ValueError("'answer_range' is for questions with an answer; found 'object': null")
        elif key in _NOTES:
            if not isinstance(item, str) or "\0" in item:
                raise ValueError(f"{key!r} must be text without NUL, found {describe(item)}")
        else:
            raise ValueError(unknown("key", key, KEYS))
    for key in _REQUIRED:
        if key not in value:
            keys = ", ".join(value) or "nothing"
            raise ValueError(f"the key {key!r} is missing; found: {keys}; needed: {', '.join(_REQUIRED)}")
    fact = Fact(
        id=value.get("id") or f"{value['relation']}:{value['subject']}",
        relation=value["relation"],
        subject=value["subject"],
        object=value["object"],
        aliases=tuple(value.get("aliases", ())),
        popularity=None if value.get("popularity") is None else float(value["popularity"]),
        negatives=tuple(value.get("negatives", ())),
        question=value.get("question"),
        source=value.get("source", ""),
        licence=value.get("licence", ""),
        answer_type=value.get("answer_type", ""),
        dataset=value.get("dataset", ""),
        bucket=value.get("bucket", ""),
        duplicate_of=value.get("duplicate_of", ""),
        valid_until=value.get("valid_until", ""),
        language=value.get("language", ""),
        answer_range=None if value.get("answer_range") is None else check_range(value["answer_range"]),
    )
    if fact.negatives:
        _wrong_answers(fact)
    return fact


def _text(what: str, item: Any) -> None:
    if not isinstance(item, str) or not item or item != item.strip() or len(item.splitlines()) != 1:
        raise ValueError(f"{what} must be text of one line without space around it, found {describe(item)}")
    if "\0" in item:
        raise ValueError(f"{what} must be text without NUL, found {describe(item)}")


def _texts(key: str, item: Any) -> None:
    if not isinstance(item, list):
        raise ValueError(f"{key!r} must be a list of texts, found {describe(item)}")
    for member in item:
        _text(f"each of {key!r}", member)


def check_date(item: Any) -> None:
    """Raise ``ValueError`` unless the value of ``valid_until`` is a day in ISO's form, or empty."""
    try:
        if item != "" and datetime.date.fromisoformat(item).isoformat() != item:
            raise ValueError
    except (TypeError, ValueError):
        raise ValueError(f"'valid_until' must be a date such as 2028-07-14, found {describe(item)}") from None


def check_language(item: Any) -> None:
    """Raise ``ValueError`` unless the value of ``language`` is a language tag, or empty."""
    if item != "" and not (isinstance(item, str) and re.fullmatch(LANGUAGE_TAG, item)):
        raise ValueError(f"'language' must be a language tag such as de or pt-BR, found {describe(item)}")


def check_range(item: Any) -> tuple[float, float]:
    """Return the value of ``answer_range``; raises ``ValueError`` unless it is two numbers in their order."""
    ends = item if isinstance(item, (list, tuple)) else ()
    if len(ends) != 2 or not all(map(_is_number, ends)) or ends[0] > ends[1]:
        shown = json.dumps(item, default=str)
        raise ValueError(
            "'answer_range' must be the least and the greatest number that is right, such as [118, 122], "
            f"found {shown if len(shown) <= _SHOWN else describe(item)}"
        )
    return float(ends[0]), float(ends[1])


def _is_number(item: Any) -> bool:
    return item in _RANGE


def _popularity(item: Any) -> None:
    if item not in POPULARITY:
        raise ValueError(f"'popularity' must be {POPULARITY}, found {describe(item)}")


def _wrong_answers(fact: Fact) -> None:
    folded = [negative.casefold() for negative in fact.negatives]
    right = [answer.casefold() for answer in fact.accepted]
    for negative, key in zip(fact.negatives, folded, strict=True):
        if key in right:
            raise ValueError(f"'negatives' must be wrong answers, found {negative!r}, which is a right one")
        if folded.count(key) > 1:
            raise ValueError(f"'negatives' must differ from each other, found {negative!r} twice")


_SHOT_KEYS = ("question", "answer", "subject", "valid_until")
_SHOTS_FORM = (
    'allowed, one a line: {"question": "Who wrote Emma?", "answer": "Jane Austen"}, '
    'with "answer": null for "unsure"'
)


def read_shots(path: Path) -> tuple[Shot, ...]:
    """Read ``{question, answer, subject, valid_until}`` a line; ``answer`` null means that there is none.

    The last two may be absent; ``valid_until`` is for examples without an answer. Raises ``SuiteError`` with
    the line of the first mistake, a question that stands twice included.
    """
    shots: dict[str, tuple[int, Shot]] = {}
    for line, row in json_rows(path, _SHOTS_FORM):
        if isinstance(row, SuiteError):
            raise row
        shot = _shot(row, path, line)
        if shot.question in shots:
            first = shots[shot.question][0]
            message = f"question {shot.question!r} stands twice; the first is on line {first}"
            raise SuiteError(f"{message}; allowed: each question once", path, line)
        shots[shot.question] = line, shot
    if not shots:
        raise SuiteError(f"no examples found; {_SHOTS_FORM}", path, 1)
    return tuple(shot for _, shot in shots.values())


def _shot(value: dict[str, Any], path: Path, line: int) -> Shot:
    for key in value:
        if key not in _SHOT_KEYS:
            raise SuiteError(unknown("key", key, _SHOT_KEYS, where="an example"), path, line)
    for key in ("question", "answer"):
        if key not in value:
            keys = ", ".join(value) or "nothing"
            raise SuiteError(f"the key {key!r} is missing; found: {keys}; needed: {_SHOTS_FORM}", path, line)
    for key, item in value.items():
        if key == "answer" and item is None:
            continue
        if not isinstance(item, str) or not item.strip() or len(item.splitlines()) != 1:
            allowed = "text of one line, not blank" + (", or null" if key == "answer" else "")
            raise SuiteError(f"{key!r} must be {allowed}, found {describe(item)}", path, line)
    if "valid_until" in value:
        try:
            check_date(value["valid_until"])
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
        if value["answer"] is not None:
            message = "'valid_until' is for examples without an answer; allowed beside it: \"answer\": null"
            raise SuiteError(message, path, line)
    return Shot(
        question=value["question"],
        answer=value["answer"],
        subject=value.get("subject", ""),
        valid_until=value.get("valid_until", ""),
    )


def fact_line(fact: Fact) -> str:
    """Return a fact as one line of a facts file, without what says nothing."""
    value = {
        field.name: getattr(fact, field.name)
        for field in dataclasses.fields(fact)
        if field.name in ("id", *_REQUIRED) or getattr(fact, field.name) != field.default
    }
    if "popularity" in value:
        value["popularity"] = _plain_number(value["popularity"])
    if "answer_range" in value:
        value["answer_range"] = [_plain_number(end) for end in value["answer_range"]]
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _plain_number(number: float) -> float:
    return int(number) if number.is_integer() else number
