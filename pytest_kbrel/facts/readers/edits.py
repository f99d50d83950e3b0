"""Reader of sets of edits, driven by ``edits.tsv``: a row a role says where its facts stand in a record."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import Node, describe, read_document, unknown
from pytest_kbrel.facts.readers.base import Reader, Relations, Row, answers, clean, rows
from pytest_kbrel.facts.readers.questions import Piece, questions
from pytest_kbrel.records import record
from pytest_kbrel.resources import tsv_rows


@record
class _Place:
    """Where the facts of one role stand: paths, as the table explains them."""

    role: str
    each: str
    question: str
    answers: str
    old: str = ""
    negatives: str = ""
    needs: str = ""
    enough: str = ""
    subject: str = ""


_PLACES: dict[str, list[_Place]] = {}
for _format, *_cells in tsv_rows("facts/readers/edits.tsv"):
    _place = _Place(**dict(zip(_Place.__dataclass_fields__, _cells, strict=False)))
    _PLACES.setdefault(_format, []).append(_place)
# The format of one's own, in which a key that is not known is an error.
OWN = "edits"
EDIT_FORMATS = tuple(_PLACES)
_OWN_FORM = (
    "a file of edits is a list of {question: The capital of Peru is, new: Cusco, old: Lima, keep: [{question: "
    "..., answer: ...}], follow: ..., forget: ...}"
)
_NQ = "nq question: "


def edits_in(form: str) -> Reader:
    """Return the reader of a set of edits, or of one's own (YAML or JSON), in this format."""
    return partial(_read, form)


def _read(form: str, path: Path, relations: Relations) -> Iterator[Row]:
    relation = relations.add(form, form, "edits")
    return rows(path, _facts(form, path, relation), dict, dataset=form)


def _facts(
    form: str, path: Path, relation: str
) -> Iterator[tuple[int, dict[str, Any] | SuiteError]]:
    for number, (line, value) in enumerate(_records(form, path), 1):
        if isinstance(value, SuiteError):
            yield line, value
            continue
        group = str(value.get("group", value.get("case_id", number)))
        try:
            for fact in _of_record(form, path, value):
                yield line, {"relation": relation, "group": group, **fact}
        except ValueError as error:
            yield line, SuiteError(str(error), path, line)


def _records(form: str, path: Path) -> Iterator[Piece]:
    if path.suffix.lower() not in (".yaml", ".yml"):
        needed = f"a file of {form} has {_needed(form)}, one record a line or in a list"
        yield from questions(path, _OWN_FORM if form == OWN else needed)
        return
    for node in read_document(path).items(_OWN_FORM, "edits"):
        value = _plain(node)
        wrong = node.wrong("an edit", f"a mapping; {_OWN_FORM}")
        yield node.line, value if isinstance(value, dict) else wrong


def _plain(node: Node) -> Any:
    if isinstance(node.value, dict):
        return {key: _plain(of) for key, of in node.value.items()}
    if isinstance(node.value, tuple):
        return [*map(_plain, node.value)]
    return node.value


def _needed(form: str) -> str:
    places = _PLACES[form]
    paths = (f"{of.each}.{of.question}".strip(".") for of in places if "!" in of.role)
    return " and ".join(paths) or ", ".join(of.each or of.question for of in places)


def _of_record(
    form: str, path: Path, value: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the keys of each fact of a record; ``ValueError`` where it has none, or one without an answer."""
    if form == OWN:
        _check_keys(value)
    count = 0
    for place in _PLACES[form]:
        role = place.role.removesuffix("!")
        # TOFU says in the file's name alone which half is to be forgotten.
        if form == "tofu" and not path.name.startswith(role):
            role = "keep"
        items = [*_at(value, value, place.each)]
        for item in items:
            texts = [_question(of) for of in _at(value, item, place.question)]
            if not texts and (place.each or "!" in place.role):
                raise _missing(item, place.question)
            if texts:
                count += 1
                yield {"role": role, **_fact(place, value, item, texts)}
        if not items and "!" in place.role:
            raise _missing(value, place.each)
    if not count:
        raise _missing(value, _needed(form))


def _missing(value: Any, path: str) -> ValueError:
    here = ", ".join(value) if isinstance(value, dict) else describe(value)
    return ValueError(f"no {path}; found: {here or 'nothing'}; needed: {path}")


def _fact(place: _Place, value: Any, item: Any, texts: list[str]) -> dict[str, Any]:
    def some(path: str) -> list[str]:
        return answers(path, [*_at(value, item, path)]) if path else []

    right, old = some(place.answers), some(place.old)
    if not right:
        raise ValueError(f"{place.answers!r} must hold at least one answer, found none")
    needs = []
    each, *of_need = place.needs.split() or [""]
    for need in _at(value, item, each) if of_need else ():
        asked = [_question(of) for of in _at(value, need, of_need[0])]
        named = answers(of_need[1], [*_at(value, need, of_need[1])])
        if not (asked and named):
            raise _missing(need, " and ".join(of_need))
        needs += [(text, named) for text in asked]
    enough = place.enough == "any" or "OR" in (some(place.enough))
    subject = next(iter(some(place.subject)), texts[0])
    # CounterFact's prompt has a gap for its subject.
    texts = [text.replace("{}", subject) for text in texts]
    return {
        "subject": subject,
        "question": texts[0],
        "wordings": texts[1:],
        "object": right[0],
        "aliases": right[1:],
        "old": next(iter(old), None),
        "negatives": [of for of in some(place.negatives) if of not in right],
        "needs": needs,
        **({"any_wording": True} if enough else {}),
    }


def _question(value: Any) -> str:
    text = clean("question", value)
    # As Natural Questions have it, in small letters and without a mark.
    return f"{text.removeprefix(_NQ)}?" if text.startswith(_NQ) else text


def _check_keys(value: dict[str, Any]) -> None:
    """Raise ``ValueError`` on a key that no row of the table reads."""
    paths: dict[str, list[str]] = {"": ["group"]}
    for place in _PLACES[OWN]:
        each, *of_need = place.needs.split() or [""]
        own = (place.question, place.answers, place.old, place.negatives, place.subject)
        named = [name for path in (*own, each) for name in path.split(",") if name]
        paths.setdefault(place.each.removesuffix("[]"), []).extend(named)
        paths[""] += [place.each.removesuffix("[]")] if place.each else []
        paths.setdefault(each.removesuffix("[]"), []).extend(of_need)

    def check(inner: dict[str, Any], name: str) -> None:
        allowed = [path.removesuffix("[]") for path in paths[name]]
        for key, items in inner.items():
            if key not in allowed:
                where = name or "an edit"
                raise ValueError(unknown("key", key, allowed, where=where))
            for item in items if key in paths and isinstance(items, list) else ():
                if isinstance(item, dict):
                    check(item, key)

    check(value, "")


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
    inner = value.get(step.removesuffix("[]")) if isinstance(value, dict) else None
    if inner is not None and not (isinstance(inner, list) and step.endswith("[]")):
        inner = [inner]
    for one in inner or ():
        yield from _along(one, rest)


def _cut(sentence: Any, path: str) -> str:
    """Return a sentence up to its last "is", or what stands behind it."""
    before, verb, behind = clean(path, sentence).rpartition(" is ")
    if not verb:
        raise ValueError(
            f"{path[:-1]!r} must be a sentence with 'is' before the object, found {describe(sentence)}"
        )
    return f"{before} is" if path[-1] == "<" else behind.removesuffix(".")
