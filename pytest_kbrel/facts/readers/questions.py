"""Readers of question files: a table of one's own, PopQA, NQ-open, TriviaQA, SimpleQA, those of many makers."""

from __future__ import annotations

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
    unknown,
)
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    answered,
    answers,
    clean,
    json_list,
    popularity,
    relation_id,
    rows,
    with_answers,
)
from pytest_kbrel.facts.readers.streams import delimiter_of, elements, table
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
    line, header = _header(path, source, "a question table", *_TABLE)
    for name in header:
        if name not in _COLUMNS:
            raise SuiteError(unknown("column", name, _COLUMNS), path, line)
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
    """Read JSON Lines, a JSON list, or a JSON object of lists.

    A row without an answer, or with the answer "unsure", is a question nobody can answer. ``dataset`` is the
    row's own, else ``qa``; the relation is the row's own, else one for each dataset.
    """
    fact = partial(_qa_fact, relations=relations)
    return rows(path, _questions(path, QA_FORM), fact, dataset="qa")


def _questions(path: Path, form: str) -> Iterator[Piece]:
    """Yield the objects of JSON Lines, or of the lists in a JSON document, with their lines."""
    return json_rows(path, form) if _is_lines(path) else _members(path, form)


def _members(path: Path, form: str, key: str | None = None) -> Iterator[Piece]:
    """Yield the objects in the lists of a JSON document, or in the list under ``key`` alone."""
    for element in elements(path, form):
        if key in (None, element.key):
            yield element.line, json_object(element.text, form, path, element.line)


def _is_lines(path: Path) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    with open_file(path) as stream:
        line = stream.readline(1 << 16).removeprefix(b"\xef\xbb\xbf")
    value = json_object(line, QA_FORM, path, 1)
    return not isinstance(value, SuiteError) and bool({*NAMES["question"]} & {*value})


def _qa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
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
    question = clean("question", cells["question"])
    right = answers("answers", cells.pop("answers"))
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
        "subject": cells["subject"] or question,
        "object": right[0] if right else None,
        "aliases": right[1:],
        "question": question,
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


NQ_OPEN_FORM = 'an NQ-open file has one {"question": ..., "answer": [...]} a line'


def read_nq_open(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file; the first answer is the object, the others its aliases. Further keys are passed over."""
    relation = relations.add("nq_open", "NQ-open", "open")

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        require_keys(value, "question", "answer")
        return answered(relation, value["question"], "answer", value["answer"])

    return rows(path, json_rows(path, NQ_OPEN_FORM), fact, dataset="nq-open")


TRIVIAQA_FORM = 'a TriviaQA file is {"Data": [{"Question": ..., "QuestionId": ..., "Answer": {"Value": ...}}, ...]}'
# In the order in which they are most like what a person would answer.
_ANSWERS = ("Value", "Aliases", "HumanAnswers", "NormalizedValue", "NormalizedAliases")


def read_triviaqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file, one question after the other; the pages and search results of each are passed over."""
    relation = relations.add("triviaqa", "TriviaQA", "open")

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        require_keys(value, "Question", "QuestionId")
        answer = value.get("Answer")
        if not isinstance(answer, dict):
            raise ValueError(
                f"'Answer' must be an object with 'Value', found {describe(answer)}; allowed: files with "
                "answers (those called ...-without-answers have none)"
            )
        require_keys(answer, "Value")
        right = [text for key in _ANSWERS for text in answers(key, answer.get(key))]
        question = answered(relation, value["Question"], "Answer", right)
        return {"id": value["QuestionId"], **question}

    source = _members(path, TRIVIAQA_FORM, key="Data")
    return rows(path, source, fact, dataset="triviaqa")


_RANGE = re.compile(
    r"\s*\((?:with an? )?acceptable range:?(?: is)?(?: anything)? (?:between|from)?\s*"
    r"(?P<low>[^()]*?\d[^()]*?)(?: and | to |\s*[–—]\s*)(?P<high>[^()]*?\d[^()]*?)\)\s*\.?$",
    re.IGNORECASE,
)
_ANSWER_TYPE = re.compile(r"'answer_type': '(?P<kind>[^']*)'")
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


def read_simpleqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the table of either; all questions are one relation.

    SimpleQA has the columns ``metadata``, ``problem`` and ``answer``; the verified one ``original_index``,
    ``problem``, ``answer``, ``topic``, ``answer_type`` and others. A note behind an answer, such as
    "(acceptable range: anything between 118 and 122)", becomes the fact's ``answer_range``, unless an end has
    more numbers than one (feet and inches, dates); "(or X)" becomes an alias.
    """
    source = table(path, ",")
    _, header = _header(path, source, "SimpleQA", "problem", "answer")
    name, label = "simpleqa", "SimpleQA"
    if "original_index" in header:
        name, label = "simpleqa-verified", "SimpleQA Verified"
    relation = relations.add(name, label, "open")
    return rows(path, source, partial(_simpleqa_fact, relation=relation), dataset=name)


def _header(
    path: Path, source: Iterator[Piece], maker: str, *columns: str
) -> tuple[int, dict[str, str]]:
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    try:
        require_keys(header, *columns)
    except ValueError as error:
        raise SuiteError(f"not {maker}'s header: {error}", path, line) from None
    return line, header


def _simpleqa_fact(value: Mapping[str, str], relation: str) -> Mapping[str, Any]:
    require_keys(value, "problem", "answer")
    # The metadata are a dictionary as Python writes it.
    named = _ANSWER_TYPE.search(value.get("metadata", ""))
    kind = named["kind"] if named else value.get("answer_type")
    answer, bounds = _ranged(clean("answer", value["answer"]))
    other = _OTHER.search(answer)
    if other:
        answer = answer[: other.start()]
    if not answer:
        raise ValueError(
            f"'answer' must say more than what else is right, found {describe(value['answer'])}"
        )
    return {
        **answered(relation, value["problem"], "answer", [answer]),
        "id": value.get("original_index"),
        "aliases": [other["other"]] if other else [],
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


POPQA_FORM = 'a PopQA file in JSON is a list of {"input": ..., "output": [...], "id": ..., "s_pop": ...}'
_DOMAIN = "popqa"
_POPQA_CELLS = ("id", "subj", "prop", "obj", "question")


def read_popqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the TSV, or a JSON list, an object of lists (``dev``, ``test``), or JSON Lines.

    ``s_pop``, the views of the subject's page, is the popularity; a negative one is not known. A relation is
    a property (``prop``); the JSON has none, so that all its facts are of the relation ``popqa``.
    """
    if path.suffix.lower() in (".json", ".jsonl"):
        relation = relations.add("popqa", "PopQA", _DOMAIN)
        renamed = partial(_renamed, relation=relation)
        return rows(path, _questions(path, POPQA_FORM), renamed, dataset="popqa")
    source = table(path, "\t")
    needed = (*_POPQA_CELLS, "s_pop", "possible_answers")
    _header(path, source, "PopQA", *needed)
    published = partial(_as_published, relations=relations)
    return rows(path, source, published, dataset="popqa")


def _as_published(value: dict[str, str], relations: Relations) -> Mapping[str, Any]:
    require_keys(value, *_POPQA_CELLS)
    prop = clean("prop", value["prop"])
    kind = _TYPES.get(("popqa", relation_id(prop)))
    more = {} if kind is None else {"answer_type": kind}
    what = "possible_answers"
    listed = answers(what, json_list(what, value[what])) if what in value else ()
    return {
        "id": value["id"],
        "relation": relations.add(prop, prop, _DOMAIN, **more),
        "subject": value["subj"],
        "popularity": popularity("s_pop", value.get("s_pop")),
        "question": value["question"],
        **with_answers(what, [value["obj"], *listed]),
    }


def _renamed(value: dict[str, Any], relation: str) -> Mapping[str, Any]:
    require_keys(value, "input", "output")
    return {
        **answered(relation, value["input"], "output", value["output"]),
        "id": value.get("id"),
        "popularity": popularity("s_pop", value.get("s_pop")),
    }
