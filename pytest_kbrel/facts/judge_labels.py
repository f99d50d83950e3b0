"""Reader of answers that a human has labelled, by which the error of a model as judge is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.bounds import FEWEST_LABELS
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.files import check_language
from pytest_kbrel.facts.located import describe, json_rows, require_keys
from pytest_kbrel.facts.readers.base import answers as read_answers
from pytest_kbrel.facts.readers.base import clean
from pytest_kbrel.facts.readers.streams import table
from pytest_kbrel.records import record

_FORM = (
    'a file of labels has one JSON object a line: {"question": "What is the capital of Peru?", "answers": '
    '["Lima"], "prediction": "It is Lima.", "label": "right"}, or is a .csv with these columns'
)
_KEYS = ("question", "answers", "prediction", "label")
# An answer that a human calls missing is not right.
_LABELS = {"right": True, "wrong": False, "missing": False}


@record
class LabelledAnswer:
    """An answer to a question with the accepted answers, and whether a human calls it right.

    ``language`` is that of :class:`pytest_kbrel.records.Fact`.
    """

    question: str
    answers: tuple[str, ...]
    prediction: str
    right: bool
    language: str = ""


def read_labels(path: Path) -> tuple[LabelledAnswer, ...]:
    """Read a file of labelled answers, JSON Lines or CSV; other keys and columns are not read.

    Raises ``SuiteError`` for a row that is none, one that stands twice, and too few labels of either kind.
    """
    lines: dict[tuple[str, tuple[str, ...], str], int] = {}
    labelled = []
    for line, row in _rows(path):
        if isinstance(row, SuiteError):
            raise row
        try:
            answer = _answer(row)
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
        key = (answer.question, answer.answers, answer.prediction)
        if first := lines.get(key):
            fault = f"the same answer stands on line {first}, and says nothing new of a judge"
            raise SuiteError(f"{fault}; allowed: each answer once", path, line)
        lines[key] = line
        labelled.append(answer)
    right = sum(answer.right for answer in labelled)
    if problem := too_few(right, len(labelled) - right):
        raise SuiteError(problem, path)
    return tuple(labelled)


def too_few(right: int, wrong: int) -> str:
    """Return what is wrong with so few labels; empty where there are enough."""
    if min(right, wrong) >= FEWEST_LABELS:
        return ""
    return (
        f"found {right} answers labelled right and {wrong} labelled wrong; allowed: at least {FEWEST_LABELS} "
        "of each, and the more the surer"
    )


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
    if path.suffix.lower() != ".csv":
        yield from json_rows(path, _FORM)
        return
    source = table(path, ",")
    line, header = next(source)
    if isinstance(header, SuiteError):
        yield line, header
        return
    empty = dict.fromkeys(header, "")
    for line, row in source:
        yield line, row if isinstance(row, SuiteError) else empty | row


def _answer(row: Mapping[str, Any]) -> LabelledAnswer:
    require_keys(row, *_KEYS)
    label, language = row["label"], row.get("language", "")
    if not isinstance(label, str) or label not in _LABELS:
        hint = nearest(label, _LABELS) if isinstance(label, str) else ""
        raise ValueError(
            f"'label' must be {', '.join(_LABELS)}, found {describe(label)}{hint}"
        )
    accepted = tuple(read_answers("answers", row["answers"]))
    if not accepted:
        raise ValueError(
            "'answers' must have an accepted answer: without one rules judge, and no model"
        )
    if not isinstance(row["prediction"], str):
        raise ValueError(
            f"'prediction' must be text, found {describe(row['prediction'])}"
        )
    check_language(language)
    return LabelledAnswer(
        question=clean("question", row["question"]),
        answers=accepted,
        prediction=row["prediction"],
        right=_LABELS[label],
        language=language,
    )
