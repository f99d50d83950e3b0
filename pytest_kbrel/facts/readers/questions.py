"""Readers of question files: a table of one's own, PopQA, NQ-open, TriviaQA, SimpleQA, those of many makers."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
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
    clean,
    popularity,
    relation_id,
    rows,
    with_answers,
)
from pytest_kbrel.facts.readers.streams import (
    check_header,
    delimiter_of,
    elements,
    parquet,
    table,
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


def read_qa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the rows of :func:`_questions`.

    A row without an answer, or with the answer "unsure", is a question nobody can answer. ``dataset`` is the
    row's own, else ``qa``; the relation is the row's own, else one for each dataset.
    """
    fact = partial(_qa_fact, relations=relations)
    return rows(path, _questions(path), fact, dataset="qa")


def _questions(path: Path) -> Iterator[Piece]:
    """Yield the objects of JSON Lines, of Parquet, or of the lists in a JSON document, with their lines.

    An article of SQuAD is many; what the dataset viewer of the Hub wraps in a row is unwrapped.
    """
    if path.suffix.lower() == ".parquet":
        source: Iterator[Piece] = itertools.islice(parquet(path), 1, None)
    elif _is_lines(path):
        source = json_rows(path, QA_FORM)
    else:
        source = (
            (line, json_object(text, QA_FORM, path, line))
            for line, _, text in elements(path, QA_FORM)
        )
    for line, value in source:
        try:
            inner = [value] if isinstance(value, SuiteError) else _inner(value)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            yield line, SuiteError(f"no question: {error}; {QA_FORM}", path, line)
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


def _is_lines(path: Path) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    with open_file(path) as stream:
        line = stream.readline(1 << 16).removeprefix(b"\xef\xbb\xbf")
    value = json_object(line, QA_FORM, path, 1)
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


def _qa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
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


def question_set(name: str, label: str) -> Reader:
    """Return the reader of a public set of questions with answers, which are one relation."""

    def read(path: Path, relations: Relations) -> Iterator[Row]:
        relation = relations.add(name, label, "open")
        fact = partial(_plain_fact, relation=relation)
        return rows(path, _questions(path), fact, dataset=name)

    return read


def _plain_fact(value: dict[str, Any], relation: str) -> Mapping[str, Any]:
    cells = _cells(value)
    return {
        **answered(relation, cells["question"], "answers", cells["answers"]),
        "id": cells["id"],
        "popularity": cells["popularity"],
    }


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
_SCALES: Mapping[str, int] = {
    **dict.fromkeys(("k", "thousand"), 10**3),
    "million": 10**6,
    **dict.fromkeys(("bn", "billion"), 10**9),
    "trillion": 10**12,
}


def read_simpleqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the table of either, or the rows of :func:`_questions`; all questions are one relation.

    SimpleQA has the columns ``metadata``, ``problem`` and ``answer``; the verified one ``original_index``,
    ``problem``, ``answer``, ``topic``, ``answer_type`` and others. A note behind an answer, such as
    "(acceptable range: anything between 118 and 122)", becomes the fact's ``answer_range``, unless an end has
    more numbers than one (feet and inches, dates).
    """
    source = _pieces(path, ",", "SimpleQA", "problem", "answer")
    return rows(path, source, partial(_simpleqa_fact, relations=relations))


def _pieces(path: Path, delimiter: str, maker: str, *columns: str) -> Iterator[Piece]:
    if path.suffix.lower() in (".json", ".jsonl", ".ndjson", ".parquet"):
        return _questions(path)
    source = table(path, delimiter)
    check_header(path, source, maker, columns)
    return source


def _simpleqa_fact(value: Mapping[str, Any], relations: Relations) -> Mapping[str, Any]:
    require_keys(value, "problem", "answer")
    name, label = "simpleqa", "SimpleQA"
    if "answer_type" in value:
        name, label = "simpleqa-verified", "SimpleQA Verified"
    # The metadata are a dictionary, in the table as Python writes it.
    named = _ANSWER_TYPE.search(str(value.get("metadata", "")))
    kind = named["kind"] if named else value.get("answer_type")
    answer, bounds = _ranged(clean("answer", value["answer"]))
    if not answer:
        raise ValueError(
            f"'answer' must say more than what else is right, found {describe(value['answer'])}"
        )
    return {
        **answered(
            relations.add(name, label, "open"), value["problem"], "answer", [answer]
        ),
        "dataset": name,
        "id": value.get("original_index"),
        "answer_type": answer_type(kind),
        "answer_range": bounds,
    }


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
    number = float(match["digits"].replace(",", "")) * _SCALES.get(
        (scale or "").casefold(), 1
    )
    return -number if match["sign"] else number


_DOMAIN = "popqa"
_POPQA_CELLS = ("id", "subj", "prop", "obj", "question")


def read_popqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the TSV, or the rows of :func:`_questions`, with its columns or with ``input`` and ``output``.

    ``s_pop``, the views of the subject's page, is the popularity; a negative one is not known. A relation is
    a property (``prop``); rows without one are of the relation ``popqa``.
    """
    needed = (*_POPQA_CELLS, "s_pop", "possible_answers")
    source = _pieces(path, "\t", "PopQA", *needed)
    return rows(
        path, source, partial(_popqa_fact, relations=relations), dataset="popqa"
    )


def _popqa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
    if "prop" not in value:
        return _plain_fact(value, relations.add("popqa", "PopQA", _DOMAIN))
    require_keys(value, *_POPQA_CELLS)
    prop = clean("prop", value["prop"])
    kind = _TYPES.get(("popqa", relation_id(prop)))
    more = {} if kind is None else {"answer_type": kind}
    what = "possible_answers"
    listed = answers(what, value.get(what))
    return {
        "id": value["id"],
        "relation": relations.add(prop, prop, _DOMAIN, **more),
        "subject": value["subj"],
        "popularity": popularity("s_pop", value.get("s_pop")),
        "question": value["question"],
        **with_answers(what, [value["obj"], *listed]),
    }
