"""Readers of question files: a table of one's own, PopQA, NQ-open, TriviaQA, SimpleQA, those of many makers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.files import REQUIRED
from pytest_kbrel.facts.located import (
    describe,
    json_object,
    json_rows,
    open_file,
    require_keys,
)
from pytest_kbrel.facts.readers.base import (
    Reader,
    Relations,
    Row,
    answered,
    answers,
    check_header,
    clean,
    delimiter_of,
    elements,
    parquet,
    relation_id,
    rows,
    table,
    with_answers,
)
from pytest_kbrel.records import ANSWER_TYPES, AnswerType
from pytest_kbrel.resources import tsv_rows

Piece = tuple[int, dict[str, Any] | SuiteError]
QA_FORM = 'a question file has {"question": ..., "answers": [...]}, one a line or in a JSON list'
# The first of the names that a row has counts.
NAMES = {
    key: tuple(names.split())
    for key, names in tsv_rows("facts/readers/question_keys.tsv")
}
_TYPES = {
    (maker, word): cast(AnswerType, kind)
    for maker, kind, words in tsv_rows("facts/readers/answer_types.tsv")
    for word in words.split()
}


_TABLE = ("question", "answer")
_COLUMNS = (*_TABLE, "question_2", "group", "language", "id")


def is_question_table(path: Path) -> bool:
    """Return True if the header of a table has columns of a question table and none that facts need."""
    try:
        # Nobody may ever write to a pipe.
        if not path.is_file():
            return False
        _, header = next(table(path, delimiter_of(path)))
    except (SuiteError, OSError):
        # Whoever reads the file says what is wrong with it.
        return False
    names = set() if isinstance(header, SuiteError) else {*header}
    return not names.isdisjoint(_TABLE) and names.isdisjoint(REQUIRED)


def read_question_table(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table with a question and its right answers, parted by ``|``, in each row.

    ``question_2`` is another wording; it, ``group``, ``language`` and ``id`` may be left out. A question that
    stands twice is an error. All questions are one relation.
    """
    source = table(path, delimiter_of(path))
    check_header(path, source, "a question table", _TABLE, _COLUMNS)
    relation = relations.add("questions")
    first: dict[str, int] = {}

    def fact(piece: tuple[int, dict[str, str]]) -> Mapping[str, Any]:
        line, cells = piece
        question = clean("question", cells.get("question"))
        if (before := first.setdefault(question.casefold(), line)) != line:
            raise ValueError(
                f"the question stands twice, first on line {before}; allowed: once, with all right answers "
                "in one cell: London|Greater London"
            )
        return {
            **answered(
                relation, question, "answer", cells.get("answer", "").split("|")
            ),
            **{name: cells.get(name) for name in ("group", "language", "id")},
            "wordings": cells.get("question_2"),
        }

    numbered = (
        (line, cells if isinstance(cells, SuiteError) else (line, cells))
        for line, cells in source
    )
    return rows(path, numbered, fact)


def questions_in(
    convert: Callable[..., Mapping[str, Any]],
    dataset: str = "",
    *columns: str,
    delimiter: str = ",",
) -> Reader:
    """Return the reader of files of questions: the rows of :func:`questions`, or a table with these columns.

    The first of ``columns`` is the name of its maker.
    """

    def read(path: Path, relations: Relations) -> Iterator[Row]:
        if columns and path.suffix.lower() not in _NO_TABLES:
            source = table(path, delimiter)
            check_header(path, source, columns[0], columns[1:])
        else:
            source = questions(path)
        fact = partial(convert, relations=relations)
        return rows(path, source, fact, dataset=dataset)

    return read


_NO_TABLES = (".json", ".jsonl", ".ndjson", ".parquet")


def questions(path: Path, form: str = QA_FORM) -> Iterator[Piece]:
    """Yield the objects of JSON Lines, of Parquet, or of the lists in a JSON document, with their lines.

    An article of SQuAD is many; ``form`` words what the file should look like; what the dataset viewer of the Hub wraps in a row is unwrapped.
    """
    if path.suffix.lower() == ".parquet":
        source: Iterator[Piece] = itertools.islice(parquet(path), 1, None)
    elif _is_lines(path, form):
        source = json_rows(path, form)
    else:
        source = (
            (line, json_object(text, form, path, line))
            for line, _, text in elements(path, form)
        )
    for line, value in source:
        try:
            inner = [value] if isinstance(value, SuiteError) else _inner(value)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            yield line, SuiteError(f"no question: {error}; {form}", path, line)
        else:
            yield from ((line, one) for one in inner)


def _inner(value: dict[str, Any]) -> list[dict[str, Any]]:
    if "feature_idx" in value:
        return []
    if "row_idx" in value:
        cut = {*value.get("truncated_cells", ())}
        if named := cut & {name for names in NAMES.values() for name in names}:
            raise ValueError(f"the viewer cut {', '.join(named)} short")
        return [{**value["row"]}]
    if "paragraphs" in value:
        return [{**one} for of in value["paragraphs"] for one in of["qas"]]
    return [value]


def _is_lines(path: Path, form: str) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    with open_file(path) as stream:
        line = stream.readline(1 << 16).removeprefix(b"\xef\xbb\xbf")
    value = json_object(line, form, path, 1)
    return not isinstance(value, SuiteError) and bool({*NAMES["question"]} & {*value})


def _cells(value: dict[str, Any]) -> dict[str, Any]:
    """Return the cells of a question by the names of :data:`NAMES`, its right answers as texts."""
    cells = {
        what: next((value[name] for name in names if name in value), None)
        for what, names in NAMES.items()
    }
    if not {*NAMES["question"]} & {*value}:
        keys, allowed = ", ".join(value) or "nothing", ", ".join(NAMES["question"])
        raise ValueError(f"no question; found: {keys}; allowed: one of {allowed}")
    if not {*NAMES["answers"]} & {*value}:
        # A slip in the key would make every question one without an answer.
        for key in value:
            if hint := nearest(key, NAMES["answers"]):
                allowed = ", ".join(NAMES["answers"])
                raise ValueError(
                    f"unknown key {key!r}; answers stand under one of {allowed}{hint}"
                )
    right = answers("answers", cells["answers"])
    return {**cells, "answers": right, "question": clean("question", cells["question"])}


def qa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
    """Return the keys of a row of no maker in particular.

    A row without an answer, or with the answer "unsure", is a question nobody can answer. ``dataset`` is the
    row's own, else ``qa``; the relation is the row's own, else one for each dataset.
    """
    cells = _cells(value)
    right = cells.pop("answers")
    if [answer.casefold() for answer in right] == ["unsure"]:
        right = []
    # Slices are named by it.
    dataset = relation_id(clean("dataset", cells["dataset"] or "qa"))
    label, domain = dataset, "qa"
    if cells["relation"] not in (None, ""):
        label, domain = clean("relation", cells["relation"]), dataset
    return {
        **cells,
        "relation": relations.add(label, label, domain),
        "subject": cells["subject"] or cells["question"],
        "object": right[0] if right else None,
        "aliases": right[1:],
        "answer_type": answer_type(cells["answer_type"]),
        "dataset": dataset,
    }


def set_fact(
    value: dict[str, Any],
    relations: Relations,
    name: str,
    label: str,
    domain: str = "open",
) -> dict[str, Any]:
    """Return the keys of a row of a public set of questions with answers, which are one relation."""
    cells = _cells(value)
    relation = relations.add(name, label, domain)
    return {
        **answered(relation, cells["question"], "answers", cells["answers"]),
        **{key: cells[key] for key in ("id", "popularity")},
        "dataset": name,
    }


def answer_type(name: Any) -> str | None:
    """Return the type of answer that a row names, in the words of many makers; ``ValueError`` on others."""
    if name in (None, ""):
        return None
    text = clean("answer_type", name)
    kind = _TYPES.get(("any", text.casefold()))
    if kind is None:
        raise ValueError(
            f"'answer_type' must be one of {', '.join(ANSWER_TYPES)}, found {text!r}"
        )
    return kind


_RANGE = re.compile(
    r"\s*\((?:with an? )?acceptable range:?(?: is)?(?: anything)? (?:between|from)?\s*"
    r"(?P<low>[^()]*?\d[^()]*?)(?: and | to |\s*[–—]\s*)(?P<high>[^()]*?\d[^()]*?)\)\s*\.?$",
    re.IGNORECASE,
)
_ANSWER_TYPE = re.compile(r"'answer_type': '(?P<kind>[^']*)'")
_NUMBER = re.compile(
    r"(?P<sign>[-−–]?)\s*[$€£¥₹]?\s*(?P<digits>\d+(?:,\d{3})*(?:\.\d+)?|\.\d+)"
    r"(?:\s*(?P<scale>k|thousand|million|bn|billion|trillion)\b)?",
    re.IGNORECASE,
)
# The digits of "km2" are none.
_NUMBERS = re.compile(r"(?<![\w.,])\.?\d[\d,.]*")
_SCALES = {"k": 3, "thousand": 3, "million": 6, "bn": 9, "billion": 9, "trillion": 12}


def simpleqa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
    """Return the keys of a row of SimpleQA, or of the verified one, which has a column ``answer_type``.

    A note behind an answer, such as
    "(acceptable range: anything between 118 and 122)", becomes the fact's ``answer_range``, unless an end has
    more numbers than one (feet and inches, dates).
    """
    require_keys(value, "problem", "answer")
    name, label = "simpleqa", "SimpleQA"
    if "answer_type" in value:
        name, label = "simpleqa-verified", "SimpleQA Verified"
    # The metadata are a dictionary, in the table as Python writes it.
    named = _ANSWER_TYPE.search(str(value.get("metadata", "")))
    fact = set_fact(value, relations, name, label)
    answer, bounds = _ranged(fact["object"])
    if not answer:
        raise ValueError(
            f"'answer' must say more than what else is right, found {describe(value['answer'])}"
        )
    kind = answer_type(named["kind"] if named else value.get("answer_type"))
    own = {"object": answer, "answer_type": kind, "answer_range": bounds}
    return fact | own


def _ranged(answer: str) -> tuple[str, tuple[float, float] | None]:
    """Return an answer without the note of a range, and the range where its ends are a number each."""
    if "acceptable range" not in answer.casefold():
        return answer, None
    note = _RANGE.search(answer)
    ends = note.groups() if note else ()
    if note and any(len(_NUMBERS.findall(end)) > 1 for end in ends):
        # "5 feet 3 inches", "10 May 1990", "3:40": the accepted answer alone is right.
        return answer[: note.start()], None
    numbers = [number for end in ends if (number := _NUMBER.search(end))]
    if note is None or len(numbers) < 2:
        raise ValueError(
            f"a range must be of two numbers, found {describe(answer)}; {RANGE_FORM}"
        )
    low, high = numbers
    most = _value(high, high["scale"])
    # "between 1.1 and 1.3 million"
    least = _value(low, low["scale"] or high["scale"])
    if least > most:
        least = _value(low, low["scale"])
    if least > most:
        raise ValueError(
            f"a range must begin with its lower end, found {describe(answer)}"
        )
    return answer[: note.start()], (least, most)


RANGE_FORM = "allowed: (acceptable range: anything between 118 and 122)"


def _value(match: re.Match[str], scale: str | None) -> float:
    power = _SCALES.get((scale or "").casefold(), 0)
    number: float = float(match["digits"].replace(",", "")) * 10**power
    return -number if match["sign"] else number


POPQA = ("id", "subj", "prop", "obj", "question", "s_pop", "possible_answers")


def popqa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
    """Return the keys of a row of PopQA with its columns, or with ``input`` and ``output``.

    ``s_pop``, the views of the subject's page, is the popularity; a negative one is not known. A relation is
    a property (``prop``); rows without one are of the relation ``popqa``.
    """
    if "prop" not in value:
        return set_fact(value, relations, "popqa", "PopQA", "popqa")
    require_keys(value, *POPQA[:5])
    cells, prop = _cells(value), clean("prop", value["prop"])
    kind = _TYPES.get(("popqa", relation_id(prop)))
    right = with_answers("possible_answers", [value["obj"], *cells.pop("answers")])
    more = {"answer_type": kind} if kind else {}
    return cells | right | {"relation": relations.add(prop, prop, "popqa", **more)}
