"""Reader of sets of edits, driven by ``edits.tsv``: a row a role says where its facts stand in a record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Node, describe, read_document, unknown
from pytest_kbrel.facts.readers.base import Relations, Row, answers, clean, rows
from pytest_kbrel.facts.readers.questions import Piece, questions
from pytest_kbrel.resources import tsv_rows

_TABLE: dict[str, list[list[str]]] = {}
for _format, *_cells in tsv_rows("facts/readers/edits.tsv"):
    _TABLE.setdefault(_format, []).append([*_cells, *[""] * 9][:9])
# The format of one's own, in which a key that no row reads is an error.
_OWN = "edits"
_PATHS = " ".join(path for _, *paths in _TABLE[_OWN] for path in paths)
_OWN_KEYS = tuple(dict.fromkeys(["group", *re.findall(r"\w+", _PATHS)]))
_NQ = "nq question: "
# What stands between subject and object in sentences of RippleEdits.
_VERB = re.compile(r"(.* (?:is followed by|is|are|follows)) (.*?)\.?")
# Its file is one record, and not a list of them.
_SANITATION = "knowedit-sanitation"


def _read(form: str, path: Path, relations: Relations) -> Iterator[Row]:
    relation = relations.add(form, form, "edits")
    needed = ", ".join(each or asked for _, each, asked, *_ in _TABLE[form])
    words = f"a file of {form} is a list of records with {needed}"

    def facts() -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
        for number, (line, value) in enumerate(_records(form, path, words), 1):
            if isinstance(value, SuiteError):
                yield line, value
                continue
            group = str(value.get("group", value.get("case_id", number)))
            same = {"relation": relation, "group": group}
            try:
                yield from ((line, same | of) for of in _facts(form, path, value))
            except ValueError as error:
                yield line, SuiteError(f"{error}; {words}", path, line)

    return rows(path, facts(), dict, dataset=form)


def _records(form: str, path: Path, words: str) -> Iterator[Piece]:
    if path.suffix.lower() not in (".yaml", ".yml") and form != _SANITATION:
        yield from questions(path, words)
        return
    document = read_document(path)
    is_one = form == _SANITATION and isinstance(document.value, dict)
    for node in (document,) if is_one else document.items(words, "records"):
        node.mapping("each record")
        yield node.line, _plain(node)


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(of) for key, of in node.value.items()}
    if isinstance(node.value, tuple):
        return [*map(_plain, node.value)]
    return node.value


def _facts(form: str, path: Path, value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the keys of each fact of a record; ``ValueError`` where it has none, or one that is not whole."""
    if form == _OWN:
        _check_keys(value)
    count = 0
    for role, each, *paths in _TABLE[form]:
        name, is_needed = role.removesuffix("!"), role.endswith("!")
        # TOFU says in the file's name alone which part is to be forgotten.
        if form == "tofu" and not path.name.startswith(name):
            name = "keep"
        items = [*_at(value, value, each)]
        for item in _whole(items, value, each) if is_needed else items:
            asked = _questions(value, item, paths[0])
            if each or is_needed:
                _whole(asked, item, paths[0])
            # Public sets have questions without an answer, which their authors skip.
            answered = is_needed or form == _OWN or _some(value, item, paths[1])
            if asked and answered:
                count += 1
                yield {"role": name, **_fact(value, item, asked, paths[1:])}
    if not count:
        _whole([], value, "question")


def _fact(
    value: Any, item: Any, asked: Sequence[str], paths: Sequence[str]
) -> dict[str, Any]:
    right, old, wrong, need, enough, subject = paths
    first, *aliases = _whole(_some(value, item, right), item, right)
    named = next(iter(_some(value, item, subject)), asked[0])
    each, question, answer = need.split() or ("", "", "")
    # CounterFact's prompt has a gap for its subject.
    texts = [text.replace("{}", named) for text in asked]
    return {
        "subject": named,
        "question": texts[0],
        "wordings": texts[1:],
        "object": first,
        "aliases": aliases,
        "old": next(iter(_some(value, item, old)), None),
        "negatives": _some(value, item, wrong),
        "needs": [
            [text, _whole(_some(value, of, answer), of, answer)]
            for of in (_at(value, item, each) if need else ())
            for text in _whole(_questions(value, of, question), of, question)
        ],
        "any_wording": enough == "any" or "OR" in _some(value, item, enough),
    }


def _some(root: Any, value: Any, paths: str) -> list[str]:
    return answers(paths, [*_at(root, value, paths)]) if paths else []


def _whole(items: list[Any], value: Any, path: str) -> list[Any]:
    """Return what lies at a path of a value; ``ValueError`` where that is nothing."""
    if not items:
        here = ", ".join(value) if isinstance(value, dict) else describe(value)
        raise ValueError(f"{path!r} is missing; found: {here or 'nothing'}")
    return items


def _questions(root: Any, value: Any, paths: str) -> list[str]:
    texts = [clean(paths, of) for of in _at(root, value, paths)]
    # As Natural Questions have it, in small letters and without a mark.
    return [
        f"{text.removeprefix(_NQ)}?" if text.startswith(_NQ) else text for text in texts
    ]


def _check_keys(value: Any) -> None:
    for key, inner in value.items():
        if key not in _OWN_KEYS:
            raise ValueError(unknown("key", key, _OWN_KEYS))
        for item in inner if isinstance(inner, list) else ():
            if isinstance(item, dict):
                _check_keys(item)


def _at(root: Any, value: Any, paths: str) -> Iterator[Any]:
    """Yield what lies in a value at paths of the table, or at those of its record."""
    for path in paths.split(","):
        start = root if path.startswith("^") else value
        first, _, second = path.removeprefix("^").partition("&")
        others = [*_along(start, second)] if second else None
        for one in _along(start, first.rstrip("<>")):
            if others is None or one in others:
                yield _cut(one, first) if first[-1:] in ("<", ">") else one


def _along(value: Any, path: str) -> Iterator[Any]:
    step, _, rest = path.partition(".")
    if not step:
        yield value
        return
    inner = value.get(step) if isinstance(value, dict) else None
    for one in inner if isinstance(inner, list) else [inner]:
        if one is not None:
            yield from _along(one, rest)


def _cut(sentence: Any, path: str) -> str:
    """Return a sentence up to its last verb, or what stands behind it."""
    parts = _VERB.fullmatch(clean(path, sentence))
    if not parts:
        raise ValueError(f"{path!r} must be a sentence with ' is ', found {sentence!r}")
    return parts[1 if path[-1] == "<" else 2]


# The readers of sets of edits, and of one's own (JSON or YAML), by format.
EDITS = {form: partial(_read, form) for form in _TABLE}
