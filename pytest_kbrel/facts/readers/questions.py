"""Readers of question files: PopQA, NQ-open, TriviaQA, SimpleQA, and those of many makers (SeenQA, ...)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located import (
    describe,
    json_rows,
    json_value,
    open_file,
    require_keys,
)
from pytest_kbrel.facts.readers.base import (
    Relations,
    Row,
    answers,
    clean,
    json_list,
    popularity,
    relation_id,
    rows,
)
from pytest_kbrel.facts.readers.streams import Element, elements, table
from pytest_kbrel.records import ANSWER_TYPES, AnswerType

Table = Iterator[tuple[int, dict[str, str] | SuiteError]]
QA_FORM = 'a question file has {"question": ..., "answers": [...]}, one a line or in a JSON list'
# The first of the names that a row has counts.
NAMES: Mapping[str, tuple[str, ...]] = {
    "question": ("question", "query", "input", "prompt", "Question"),
    "answers": (
        "answers",
        "answer",
        "possible_answers",
        "output",
        "outputs",
        "target",
        "gold",
        "Answer",
    ),
    "id": ("id", "qid", "question_id", "QuestionId"),
    "dataset": ("dataset", "source"),
    "popularity": ("popularity", "s_pop"),
    "subject": ("subject", "subj"),
    "relation": ("relation", "prop"),
    "answer_type": ("answer_type",),
    "valid_until": ("valid_until",),
}
_QA_TYPES: Mapping[str, str] = {
    **{name: name for name in ANSWER_TYPES},
    **dict.fromkeys(("date", "year", "datetime"), "time"),
    **dict.fromkeys(("people", "human", "name"), "person"),
    **dict.fromkeys(("place", "loc", "geography"), "location"),
    **dict.fromkeys(("num", "numeric", "numerical", "quantity", "count"), "number"),
    **dict.fromkeys(("others", "misc", "entity"), "other"),
}


def read_qa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read JSON Lines, a JSON list, or a JSON object of lists.

    A row without an answer, or with the answer "unsure", is a question nobody can answer. ``dataset`` is the
    row's own, else ``qa``; the relation is the row's own, else one for each dataset.
    """

    def fact(value: dict[str, Any]) -> Mapping[str, Any]:
        return _qa_fact(value, relations)

    if _is_lines(path):
        return rows(path, json_rows(path, QA_FORM), fact, dataset="qa")
    numbered = ((element.line, element) for element in elements(path, QA_FORM))
    return rows(
        path, numbered, lambda element: fact(_object(element, QA_FORM)), dataset="qa"
    )


def _is_lines(path: Path) -> bool:
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    with open_file(path) as stream:
        line = stream.readline(1 << 16).removeprefix(b"\xef\xbb\xbf")
    try:
        value = json_value(line.decode("utf-8"), QA_FORM)
    except ValueError:
        return False
    return isinstance(value, dict) and any(name in value for name in NAMES["question"])


def _qa_fact(value: dict[str, Any], relations: Relations) -> Mapping[str, Any]:
    question = clean("question", _cell(value, "question", needed=True))
    right = answers("answers", _answers(value))
    if [answer.casefold() for answer in right] == ["unsure"]:
        right = []
    # Slices are named by it.
    dataset = relation_id(_cell_text(value, "dataset") or "qa")
    name = _cell_text(value, "relation")
    label, domain = (dataset, "qa") if name is None else (name, dataset)
    relation = relations.add(label, label, domain)
    subject = _cell_text(value, "subject")
    return {
        "id": _cell_text(value, "id"),
        "relation": relation,
        "subject": subject or question,
        "object": right[0] if right else None,
        "aliases": right[1:],
        "question": question,
        "popularity": popularity("popularity", _cell(value, "popularity")),
        "answer_type": answer_type(value),
        "dataset": dataset,
        "valid_until": _cell_text(value, "valid_until"),
    }


def _object(element: Element, form: str) -> dict[str, Any]:
    value = json_value(element.text, form)
    if not isinstance(value, dict):
        raise ValueError(f"not a question: found {describe(value)}; {form}")
    return value


def _cell(value: Mapping[str, Any], what: str, *, needed: bool = False) -> Any:
    for name in NAMES[what]:
        if name in value:
            return value[name]
    if needed:
        keys = ", ".join(value) or "nothing"
        raise ValueError(
            f"no {what}; found: {keys}; allowed: one of {', '.join(NAMES[what])}"
        )
    return None


def _cell_text(value: Mapping[str, Any], what: str) -> str | None:
    cell: object = _cell(value, what)
    return None if cell is None or cell == "" else clean(what, cell)


def _answers(value: Mapping[str, Any]) -> Any:
    if not any(name in value for name in NAMES["answers"]):
        # A slip in the key would make every question one without an answer.
        for key in value:
            if hint := nearest(key, NAMES["answers"]):
                raise ValueError(
                    f"unknown key {key!r}; answers stand under one of {', '.join(NAMES['answers'])}{hint}"
                )
    return _cell(value, "answers")


def answer_type(value: Mapping[str, Any]) -> str | None:
    """Return the type of answer that a row names, in the words of many makers; ``ValueError`` on others."""
    text = _cell_text(value, "answer_type")
    if text is None:
        return None
    kind = _QA_TYPES.get(text.casefold())
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
        question = clean("question", value["question"])
        return _answered(
            relation, question, "answer", answers("answer", value["answer"])
        )

    return rows(path, json_rows(path, NQ_OPEN_FORM), fact, dataset="nq-open")


def _answered(
    relation: str, question: str, what: str, right: list[str]
) -> dict[str, Any]:
    if not right:
        raise ValueError(f"{what!r} must hold at least one answer, found none")
    return {
        "relation": relation,
        "subject": question,
        "object": right[0],
        "aliases": right[1:],
        "question": question,
    }


TRIVIAQA_FORM = 'a TriviaQA file is {"Data": [{"Question": ..., "QuestionId": ..., "Answer": {"Value": ...}}, ...]}'
# In the order in which they are most like what a person would answer.
_ANSWERS = ("Value", "Aliases", "HumanAnswers", "NormalizedValue", "NormalizedAliases")


def read_triviaqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a file, one question after the other; the pages and search results of each are passed over."""
    relation = relations.add("triviaqa", "TriviaQA", "open")

    def fact(element: Element) -> Mapping[str, Any]:
        value = json_value(element.text, TRIVIAQA_FORM)
        if not isinstance(value, dict):
            raise ValueError(
                f"each of 'Data' must be an object, found {describe(value)}"
            )
        require_keys(value, "Question", "QuestionId")
        answer = value.get("Answer")
        if not isinstance(answer, dict):
            raise ValueError(
                f"'Answer' must be an object with 'Value', found {describe(answer)}; allowed: files with "
                "answers (those called ...-without-answers have none)"
            )
        require_keys(answer, "Value")
        question = clean("Question", value["Question"])
        right = answers(
            "Answer",
            [text for key in _ANSWERS for text in answers(key, answer.get(key))],
        )
        return {
            "id": clean("QuestionId", value["QuestionId"]),
            **_answered(relation, question, "Answer", right),
        }

    return rows(path, _triviaqa_data(path), fact, dataset="triviaqa")


def _triviaqa_data(path: Path) -> Iterator[tuple[int, Element]]:
    any_row = False
    for element in elements(path, TRIVIAQA_FORM):
        if element.key == "Data":
            any_row = True
            yield element.line, element
    if not any_row:
        raise SuiteError(f"no questions found; {TRIVIAQA_FORM}", path, 1)


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


def read_simpleqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the table of either; all questions are one relation.

    SimpleQA has the columns ``metadata``, ``problem`` and ``answer``; the verified one ``original_index``,
    ``problem``, ``answer``, ``topic``, ``answer_type`` and others. A note behind an answer, such as
    "(acceptable range: anything between 118 and 122)", becomes the fact's ``answer_range``, unless an end has
    more numbers than one (feet and inches, dates); "(or X)" becomes an alias.
    """
    source = table(path, ",")
    header = _header(path, source, "SimpleQA", "problem", "answer")
    verified = "original_index" in header
    name = "simpleqa-verified" if verified else "simpleqa"
    relation = relations.add(
        name, "SimpleQA Verified" if verified else "SimpleQA", "open"
    )
    return rows(
        path, source, lambda value: _simpleqa_fact(value, relation), dataset=name
    )


def _header(path: Path, source: Table, maker: str, *columns: str) -> dict[str, str]:
    line, header = next(source)
    if isinstance(header, SuiteError):
        raise header
    try:
        require_keys(header, *columns)
    except ValueError as error:
        raise SuiteError(f"not {maker}'s header: {error}", path, line) from None
    return header


def _simpleqa_fact(value: Mapping[str, str], relation: str) -> Mapping[str, Any]:
    require_keys(value, "problem", "answer")
    question, answer = (
        clean("problem", value["problem"]),
        clean("answer", value["answer"]),
    )
    about = {**_metadata(value.get("metadata")), **value}
    answer, bounds = _ranged(answer)
    other = _OTHER.search(answer)
    if other:
        answer = answer[: other.start()]
    if not answer:
        raise ValueError(
            f"'answer' must say more than what else is right, found {describe(value['answer'])}"
        )
    return {
        "id": about.get("original_index"),
        "relation": relation,
        "subject": question,
        "object": answer,
        "aliases": [other["other"].strip()] if other else [],
        "question": question,
        "answer_type": answer_type(about),
        "answer_range": bounds,
    }


def _metadata(text: str | None) -> Mapping[str, Any]:
    """Return what stands under ``metadata``: a dictionary as Python writes it."""
    if text is None:
        return {}
    try:
        parsed = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        parsed = None
    if not isinstance(parsed, dict):
        raise ValueError(
            f"'metadata' must be a dictionary such as {{'topic': 'Art', 'answer_type': 'Date'}}, found "
            f"{describe(text)}"
        )
    return {key: item for key, item in parsed.items() if key == "answer_type"}


def _ranged(answer: str) -> tuple[str, tuple[float, float] | None]:
    """Return an answer without the note of a range, and the range where its ends are a number each."""
    note = _RANGE.search(answer)
    if note is None:
        if "acceptable range" in answer.casefold():
            raise ValueError(
                f"a range must be of two numbers, found {describe(answer)}; {RANGE_FORM}"
            )
        return answer, None
    if any(len(_NUMBERS.findall(note[end])) > 1 for end in ("low", "high")):
        # "5 feet 3 inches", "10 May 1990", "3:40": the accepted answer alone is right.
        return answer[: note.start()], None
    low, high = (_NUMBER.search(note[end]) for end in ("low", "high"))
    if low is None or high is None:
        raise ValueError(
            f"a range must be of two numbers, found {describe(note[0].strip())}; {RANGE_FORM}"
        )
    # "between 1.1 and 1.3 million"
    scale = low["scale"] or high["scale"]
    least, most = _value(low, scale), _value(high, high["scale"])
    if least > most:
        least = _value(low, low["scale"])
    if least > most:
        raise ValueError(
            f"a range must begin with its lower end, found {describe(note[0].strip())}"
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
_POPQA_TYPES: Mapping[str, AnswerType] = {
    **dict.fromkeys(
        (
            "father",
            "mother",
            "producer",
            "director",
            "screenwriter",
            "composer",
            "author",
        ),
        "person",
    ),
    **dict.fromkeys(("place_of_birth", "country", "capital", "capital_of"), "location"),
    **dict.fromkeys(("occupation", "genre", "color", "religion", "sport"), "other"),
}


def read_popqa(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the TSV, or a JSON list, an object of lists (``dev``, ``test``), or JSON Lines.

    ``s_pop``, the views of the subject's page, is the popularity; a negative one is not known. A relation is
    a property (``prop``); the JSON has none, so that all its facts are of the relation ``popqa``.
    """
    if path.suffix.lower() in (".json", ".jsonl"):
        relation = relations.add("popqa", "PopQA", _DOMAIN)
        if path.suffix.lower() == ".jsonl":
            return rows(
                path,
                json_rows(path, POPQA_FORM),
                lambda value: _renamed(value, relation),
                dataset="popqa",
            )
        numbered = ((element.line, element) for element in elements(path, POPQA_FORM))
        return rows(
            path,
            numbered,
            lambda element: _renamed(_object(element, POPQA_FORM), relation),
            dataset="popqa",
        )
    source = table(path, "\t")
    _header(
        path,
        source,
        "PopQA",
        "id",
        "subj",
        "prop",
        "obj",
        "s_pop",
        "question",
        "possible_answers",
    )
    return rows(
        path, source, lambda value: _as_published(value, relations), dataset="popqa"
    )


def _as_published(value: dict[str, str], relations: Relations) -> Mapping[str, Any]:
    require_keys(value, "id", "subj", "prop", "obj", "question")
    prop = clean("prop", value["prop"])
    kind = _POPQA_TYPES.get(relation_id(prop))
    more = {} if kind is None else {"answer_type": kind}
    named, what = clean("obj", value["obj"]), "possible_answers"
    listed = answers(what, json_list(what, value[what])) if what in value else ()
    right = answers(what, [named, *listed])
    return {
        "id": clean("id", value["id"]),
        "relation": relations.add(prop, prop, _DOMAIN, **more),
        "subject": clean("subj", value["subj"]),
        "object": right[0],
        "aliases": right[1:],
        "popularity": popularity("s_pop", value.get("s_pop")),
        "question": clean("question", value["question"]),
    }


def _renamed(value: dict[str, Any], relation: str) -> Mapping[str, Any]:
    require_keys(value, "input", "output")
    question, right = clean("input", value["input"]), answers("output", value["output"])
    return {
        **_answered(relation, question, "output", right),
        "id": clean("id", value["id"]) if "id" in value else None,
        "popularity": popularity("s_pop", value.get("s_pop")),
    }
