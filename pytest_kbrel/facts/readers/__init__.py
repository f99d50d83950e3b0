"""Readers of facts: those of the own formats, which have the same keys, and the table of all formats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.files import (
    FORM,
    KEYS,
    LISTS,
    REQUIRED,
    as_fact,
    read_relations,
)
from pytest_kbrel.facts.located import json_rows, unknown
from pytest_kbrel.facts.readers.base import (
    Reader,
    Relations,
    Row,
    check_header,
    checked_rows,
    clean,
    delimiter_of,
    json_list,
    parquet,
    rows,
    table,
    with_unique_ids,
)
from pytest_kbrel.facts.readers.edits import EDITS
from pytest_kbrel.facts.readers.questions import (
    POPQA,
    is_question_table,
    popqa_fact,
    qa_fact,
    questions_in,
    read_question_table,
    set_fact,
    simpleqa_fact,
)
from pytest_kbrel.facts.readers.relations import (
    read_fktc,
    read_head_to_tail,
    read_lama,
    read_pararel,
)
from pytest_kbrel.records import Fact, record


def read_jsonl(path: Path, relations: Relations) -> Iterator[Row]:
    """Read the facts format itself, as strictly as a suite does, but for ids that stand twice."""
    has_relations = _read_relations(path, relations)

    def strict(value: dict[str, Any]) -> tuple[Fact, bool]:
        if value.keys().isdisjoint(REQUIRED):
            raise ValueError(f"no fact: found {', '.join(value) or 'nothing'}; {FORM}")
        fact = as_fact(value)
        if not has_relations:
            relations.add(fact.relation)
        return fact, "id" in value

    return checked_rows(path, json_rows(path, FORM), strict)


def read_csv(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table with a header of the facts format's keys; lists stand as JSON in their cells."""
    return _table(path, relations, table(path, delimiter_of(path)))


def read_parquet(path: Path, relations: Relations) -> Iterator[Row]:
    """Read a table whose columns are the facts format's keys; the line of an error is the row's number.

    Raises ``MissingExtraError`` without DuckDB.
    """
    return _table(path, relations, parquet(path))


def _table(
    path: Path, relations: Relations, source: Iterator[tuple[int, Any]]
) -> Iterator[Row]:
    check_header(path, source, "a facts table", REQUIRED, KEYS)
    has_relations = _read_relations(path, relations)

    def fact(value: Mapping[str, Any]) -> Mapping[str, Any]:
        texts = [key for key in LISTS if isinstance(value.get(key) or None, str)]
        if not has_relations and value.get("relation"):
            relations.add(clean("relation", value["relation"]))
        return {**value, **{key: json_list(key, value[key]) for key in texts}}

    return rows(path, source, fact)


def _read_relations(path: Path, relations: Relations) -> bool:
    """Add the relations of the file beside the facts; return False where there is none."""
    file = path.parent / "relations.yaml"
    if not file.is_file():
        return False
    for relation in read_relations(file):
        relations.setdefault(relation.id, relation)
    return True


@record
class Format:
    """A format that can be read. ``folders``: a folder may stand for the files in it.

    ``own``: it is the project's own, so that the relations stand in a file of theirs.
    """

    name: str
    help: str
    read: Reader
    folders: bool
    own: bool


_TABLE: tuple[tuple[str, str, Reader], ...] = (
    ("fktc", "FKTC, the data of MONITOR", read_fktc),
    ("head-to-tail", "output of the Head-to-Tail scripts", read_head_to_tail),
    (
        "popqa",
        "PopQA",
        questions_in(popqa_fact, "popqa", "PopQA", *POPQA, delimiter="\t"),
    ),
    ("pararel", "ParaRel patterns with T-REx facts", read_pararel),
    ("lama", "LAMA and lm-pub-quiz (BEAR)", read_lama),
    (
        "nq-open",
        "NQ-open",
        questions_in(partial(set_fact, name="nq-open", label="NQ-open")),
    ),
    (
        "triviaqa",
        "TriviaQA",
        questions_in(partial(set_fact, name="triviaqa", label="TriviaQA")),
    ),
    (
        "simpleqa",
        "SimpleQA and SimpleQA Verified",
        questions_in(simpleqa_fact, "", "SimpleQA", "problem", "answer"),
    ),
    (
        "qa",
        "questions with answers, or with none (SeenQA, UnseenQA, SQuAD, KILT)",
        questions_in(qa_fact),
    ),
    *((name, f"edits: {name}", reader) for name, reader in EDITS.items()),
    ("questions", "own questions, CSV: question, answer", read_question_table),
    ("jsonl", "own facts, JSON Lines", read_jsonl),
    ("csv", "own facts, CSV", read_csv),
    ("parquet", 'own facts, Parquet; needs the extra "data"', read_parquet),
)
FORMATS = {
    name: Format(
        name=name,
        help=about,
        read=read_file,
        folders=name in ("fktc", "pararel", "lama"),
        own=name in ("jsonl", "csv", "parquet"),
    )
    for name, about, read_file in _TABLE
}


def format_of(name: str) -> Format:
    """Return the format of this name; raises ``SuiteError`` with the nearest name."""
    if name not in FORMATS:
        raise SuiteError(unknown("format", name, FORMATS))
    return FORMATS[name]


def format_by_suffix(path: Path) -> Format:
    """Return the format of a facts file that names none: one's own by its suffix, a table by its header too.

    ``path`` may be no file.
    """
    suffix = path.suffix.lower().removeprefix(".")
    own = suffix if suffix in ("csv", "parquet") else "jsonl"
    is_questions = suffix in ("csv", "tsv") and is_question_table(path)
    return FORMATS["questions" if is_questions else own]


def read_own_facts(path: Path) -> tuple[Fact, ...]:
    """Read all facts of a file of one's own: CSV or Parquet by its suffix, else JSON Lines.

    Raises ``SuiteError`` with the line of the first that is wrong.
    """
    facts = facts_of(format_by_suffix(path), [path], Relations())
    return tuple(fact for _, _, fact in facts)


def facts_of(
    form: Format, paths: Sequence[Path], relations: Relations
) -> Iterator[tuple[Path, int, Fact]]:
    """Yield the facts of all files with path and line; raises ``SuiteError`` on the first that is wrong.

    In own JSON Lines an id that stands twice is wrong.
    """
    first: dict[str, str] = {}
    for row in (_rows if form.name == "jsonl" else read)(form, paths, relations):
        if row.fact is None:
            assert row.error is not None
            raise row.error
        name = row.fact.id
        if name in first:
            message = f"id {name!r} stands twice; the first is in {first[name]}"
            raise SuiteError(
                f"{message}; allowed: an 'id' of its own for each fact",
                row.path,
                row.line,
            )
        first[name] = f"{row.path}:{row.line}"
        yield row.path, row.line, row.fact


def read(form: Format, paths: Sequence[Path], relations: Relations) -> Iterator[Row]:
    """Yield the rows of all files, streaming, each with a fact of its own id or with its error.

    ``relations`` fills up with what the files bring and is complete at the end. Raises ``SuiteError`` where a
    whole file is wrong, or has no rows.
    """
    return with_unique_ids(_rows(form, paths, relations))


def _rows(form: Format, paths: Sequence[Path], relations: Relations) -> Iterator[Row]:
    for path in paths:
        if path.is_dir() and not form.folders:
            raise SuiteError(
                f"is a folder; allowed: a file of the format {form.name}", path
            )
        any_row = False
        for row in form.read(path, relations):
            any_row = True
            yield row
        if not any_row:
            raise SuiteError(f"no facts found; allowed: {form.help}", path)
