"""SimpleQA and SimpleQA Verified: questions with an answer each, some with a range of right numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.readers.base import Relations, Row, clean, need, rows
from pytest_kbrel.facts.readers.delimited import table
from pytest_kbrel.facts.readers.qa import answer_type

_RANGE = re.compile(
    r"\s*\((?:with an? )?acceptable range:?(?: is)?(?: anything)? (?:between|from)?\s*"
    r"(?P<low>[^()]*?\d[^()]*?)(?: and | to |\s*[–—]\s*)(?P<high>[^()]*?\d[^()]*?)\)\s*\.?$",
    re.IGNORECASE,
)
_OTHER = re.compile(r"\s*\(or (?P<other>[^()]+)\)\s*\.?$")
_NUMBER = re.compile(
    r"(?P<sign>[-−–]?)\s*[$€£¥₹]?\s*(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"
    r"(?:\s*(?P<scale>k|thousand|million|bn|billion|trillion)\b)?",
    re.IGNORECASE,
)
# The digits of "km2" are none.
_NUMBERS = re.compile(r"(?<![\w.,])\.?\d[\d,.]*")
_SCALES: Mapping[str, int] = {
    **dict.fromkeys(("k", "thousand"), 10**3),
    "million": 10**6,
    **dict.fromkeys(("bn", "billion"), 10**9),
    "trillion": 10**12,
}


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the table of either; all questions are one relation.

    SimpleQA has the columns ``metadata``, ``problem`` and ``answer``; the verified one ``original_index``,
    ``problem``, ``answer``, ``topic``, ``answer_type`` and others. A note behind an answer, such as
    "(acceptable range: anything between 118 and 122)", becomes the fact's ``answer_range``, unless an end has
    more numbers than one (feet and inches, dates); "(or X)" becomes an alias.
    """
    source = table(path, ",")
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    try:
        need(header, "problem", "answer")
    except ValueError as error:
        raise SuiteError(f"not SimpleQA's header: {error}", path, line) from None
    verified = "original_index" in header
    name = "simpleqa-verified" if verified else "simpleqa"
    relation = relations.meet(name, "SimpleQA Verified" if verified else "SimpleQA", "open")
    return rows(path, source, lambda value: _fact(value, relation), dataset=name)


def _fact(value: Mapping[str, str], relation: str) -> Mapping[str, Any]:
    need(value, "problem", "answer")
    question, answer = clean("problem", value["problem"]), clean("answer", value["answer"])
    about = {**_metadata(value.get("metadata")), **value}
    answer, found = _ranged(answer)
    other = _OTHER.search(answer)
    if other:
        answer = answer[: other.start()]
    if not answer:
        raise ValueError(f"'answer' must say more than what else is right, found {describe(value['answer'])}")
    return {
        "id": about.get("original_index"),
        "relation": relation,
        "subject": question,
        "object": answer,
        "aliases": [other["other"].strip()] if other else [],
        "question": question,
        "answer_type": answer_type(about),
        "answer_range": found,
    }


def _metadata(text: str | None) -> Mapping[str, Any]:
    """Return what stands under ``metadata``: a dictionary as Python writes it."""
    if text is None:
        return {}
    try:
        found = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(
            f"'metadata' must be a dictionary such as {{'topic': 'Art', 'answer_type': 'Date'}}, found "
            f"{describe(text)}"
        )
    return {key: item for key, item in found.items() if key == "answer_type"}


def _ranged(answer: str) -> tuple[str, tuple[float, float] | None]:
    """Return an answer without the note of a range, and the range where its ends are a number each."""
    note = _RANGE.search(answer)
    if note is None:
        if "acceptable range" in answer.casefold():
            raise ValueError(f"a range must be of two numbers, found {describe(answer)}; {_FORM}")
        return answer, None
    if any(len(_NUMBERS.findall(note[end])) > 1 for end in ("low", "high")):
        # "5 feet 3 inches", "10 May 1990", "3:40": the accepted answer alone is right.
        return answer[: note.start()], None
    low, high = (_NUMBER.search(note[end]) for end in ("low", "high"))
    if low is None or high is None:
        raise ValueError(f"a range must be of two numbers, found {describe(note[0].strip())}; {_FORM}")
    # "between 1.1 and 1.3 million"
    scale = low["scale"] or high["scale"]
    least, most = _value(low, scale), _value(high, high["scale"])
    if least > most:
        least = _value(low, low["scale"])
    if least > most:
        raise ValueError(f"a range must begin with its lower end, found {describe(note[0].strip())}")
    return answer[: note.start()], (least, most)


_FORM = "allowed: (acceptable range: anything between 118 and 122)"


def _value(found: re.Match[str], scale: str | None) -> float:
    number = float(found["digits"].replace(",", "")) * _SCALES.get((scale or "").casefold(), 1)
    return -number if found["sign"] else number
