"""TriviaQA: one JSON document with a question an element of ``Data``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_value
from pytest_kbrel.facts.located.node import describe
from pytest_kbrel.facts.readers.base import Relations, Row, answers, clean, need, rows
from pytest_kbrel.facts.readers.json_document import Element, elements

FORM = 'a TriviaQA file is {"Data": [{"Question": ..., "QuestionId": ..., "Answer": {"Value": ...}}, ...]}'
# In the order in which they are most like what a person would answer.
_ANSWERS = ("Value", "Aliases", "HumanAnswers", "NormalizedValue", "NormalizedAliases")


def read(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file, one question after the other; the pages and search results of each are passed over."""
    relation = relations.meet("triviaqa", "TriviaQA", "open")

    def fact(element: Element) -> Mapping[str, Any]:
        value = json_value(element.text, FORM)
        if not isinstance(value, dict):
            raise ValueError(f"each of 'Data' must be an object, found {describe(value)}")
        need(value, "Question", "QuestionId")
        answer = value.get("Answer")
        if not isinstance(answer, dict):
            raise ValueError(
                f"'Answer' must be an object with 'Value', found {describe(answer)}; allowed: files with "
                "answers (those called ...-without-answers have none)"
            )
        need(answer, "Value")
        question = clean("Question", value["Question"])
        found = [text for key in _ANSWERS for text in answers(key, answer.get(key))]
        if not found:
            raise ValueError("'Answer' must hold at least one answer, found none")
        right = answers("Answer", found)
        return {
            "id": clean("QuestionId", value["QuestionId"]),
            "relation": relation,
            "subject": question,
            "object": right[0],
            "aliases": right[1:],
            "question": question,
        }

    return rows(path, _data(path), fact, dataset="triviaqa")


def _data(path: Path) -> Iterator[tuple[int, Element]]:
    found = False
    for element in elements(path, FORM):
        if element.key == "Data":
            found = True
            yield element.line, element
    if not found:
        raise SuiteError(f"no questions found; {FORM}", path, 1)
