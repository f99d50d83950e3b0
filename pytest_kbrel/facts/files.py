"""The project's own files: facts and examples in JSON Lines, and relations in YAML."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from pytest_kbrel.bounds import POPULARITY, Bounds, shown
from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located import (
    Node,
    describe,
    iso_day,
    json_records,
    read_document,
    require_keys,
    unknown,
)
from pytest_kbrel.records import (
    ANSWER_TYPES,
    BUCKETS,
    LANGUAGE_TAG,
    ROLES,
    WORTHS,
    Fact,
    Former,
    Need,
    Relation,
    Shot,
)
from pytest_kbrel.serialization import from_wire

REQUIRED = ("relation", "subject", "object")
LISTS = ("aliases", "negatives", "wordings")
_RANGE = Bounds(-1e300, 1e300, whole=False)
_OPTIONAL = ("question", "popularity", "answer_range")
_LINE = "text of one line without NUL or space around it"


def _is_range(item: Any) -> bool:
    ends = item if isinstance(item, (list, tuple)) else ()
    ordered = len(ends) == 2 and all(end in _RANGE for end in ends)
    return ordered and ends[0] <= ends[1]


def _texts(pattern: str) -> Callable[[Any], bool]:
    matches = re.compile(pattern).fullmatch
    return lambda item: isinstance(item, str) and matches(item) is not None


_is_line = _texts(r"(?!\s)[^\0\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+(?<!\s)")


def _is_needs(item: Any) -> bool:
    try:
        return all(_is_line(asked) and right for asked, right in _needs(item))
    except ValueError:
        return False


_needs = partial(from_wire, tuple[Need, ...])
# What each key may hold: whether a value may stand there, and in words what may.
_CHECKS = {
    **dict.fromkeys(("id", *REQUIRED), (_is_line, _LINE)),
    **dict.fromkeys(LISTS, (lambda item: isinstance(item, list), "a list of texts")),
    "popularity": (POPULARITY.__contains__, str(POPULARITY)),
    "question": (_is_line, _LINE),
    **{
        key: (("", *options).__contains__, f"one of {', '.join(options)}")
        for key, options in (("answer_type", ANSWER_TYPES), ("bucket", BUCKETS))
    },
    **dict.fromkeys(
        ("source", "licence", "dataset", "duplicate_of", "group", "parallel"),
        (_texts(r"[^\0]*"), "text without NUL"),
    ),
    **dict.fromkeys(
        ("valid_from", "valid_until"),
        (
            lambda item: item == "" or (isinstance(item, str) and bool(iso_day(item))),
            "a date such as 2028-07-14",
        ),
    ),
    "former": (
        lambda item: isinstance(item, list),
        'a list such as [{"object": "kuna", "valid_until": "2022-12-31"}]',
    ),
    "language": (_texts(f"({LANGUAGE_TAG})?"), "a language tag such as de or pt-BR"),
    "role": (("", *ROLES).__contains__, f"one of {', '.join(ROLES)}"),
    "old": (_is_line, _LINE),
    "needs": (_is_needs, "a list of [question, [answers]]"),
    "any_wording": (lambda item: isinstance(item, bool), "true or false"),
    "answer_range": (
        _is_range,
        "the least and the greatest number that is right, such as [118, 122]",
    ),
}
KEYS = tuple(_CHECKS)

_ITEM = re.compile(r"Q[1-9]\d+")
_URI = re.compile(
    r"_:|<?(?:https?://)?(?:www\.)?wikidata\.org/(?:entity|wiki|prop|\.well-known)/|wd\w*:[A-Z]?\d"
)

FORM = (
    'a facts file has one JSON object a line: {"relation": "P36", "subject": "Peru", "object": "Lima"}; '
    "a public dataset in a format of its own needs that format's name, in a suite under 'format' "
    "(docs/datasets.md)"
)


def as_fact(value: Mapping[str, Any]) -> Fact:
    """Return the fact that an object of the facts format is; raises ``ValueError`` on the first mistake.

    ``object`` may be nothing where there is a ``question``: one that has no answer.
    """
    for key, item in value.items():
        if key not in KEYS:
            raise ValueError(unknown("key", key, KEYS))
        is_question = key == "object" and value.get("question")
        if item is None and (key in _OPTIONAL or is_question):
            continue
        check_key(key, item)
        for member in item if key in LISTS else ():
            _require(f"each of {key!r}", member, _is_line(member), _LINE)
    if value.get("answer_range") is not None and value.get("object") is None:
        raise ValueError(
            "'answer_range' is for questions with an answer; found 'object': null"
        )
    require_keys(value, *REQUIRED)
    fields = {"id": f"{value['relation']}:{value['subject']}", **value}
    fields |= {key: tuple(value[key]) for key in LISTS if key in value}
    if "former" in value:
        fields["former"] = tuple(map(_former, value["former"]))
    if value.get("popularity") is not None:
        fields["popularity"] = float(value["popularity"])
    if value.get("answer_range") is not None:
        fields["answer_range"] = tuple(map(float, value["answer_range"]))
    if "needs" in value:
        fields["needs"] = _needs(value["needs"])
    fact = Fact(**fields)
    _check_negatives(fact)
    check_labels(fact)
    return fact


def _former(value: Any) -> Former:
    keys = tuple(field.name for field in dataclasses.fields(Former))
    _require("each of 'former'", value, isinstance(value, dict), "an object")
    for key, item in value.items():
        if key not in keys:
            raise ValueError(unknown("key", key, keys, where="'former'"))
        check_key(key, item)
        for member in item if key == "aliases" else ():
            _require("each of 'aliases'", member, _is_line(member), _LINE)
    require_keys(value, "object", "valid_until")
    former = Former(**value | {"aliases": tuple(value.get("aliases", ()))})
    if not former.valid_from <= former.valid_until > "":
        raise ValueError(
            f"'valid_until' of 'former' must be a day, not before 'valid_from', found {describe(former.valid_until)}"
        )
    return former


def check_key(key: str, item: Any) -> None:
    """Raise ``ValueError`` unless ``item`` may stand under a key of the facts format."""
    holds, allowed = _CHECKS[key]
    if key == "answer_range" and not holds(item):
        raise ValueError(f"{key!r} must be {allowed}, found {shown(item)}")
    _require(repr(key), item, holds(item), allowed)


def _require(what: str, item: Any, holds: bool, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{what} must be {allowed}, found {describe(item)}")


def check_labels(fact: Fact) -> None:
    """Raise ``ValueError`` where subject or object is what Wikidata has in place of a label."""
    for key, text in (("subject", fact.subject), ("object", fact.object or "")):
        # A free question is its own subject, and Q7 may be a car.
        is_item = fact.question != fact.subject and _ITEM.fullmatch(text)
        if is_item or _URI.match(text):
            raise ValueError(
                f"{key!r} must be a name, found {describe(text)}; allowed: the label that Wikidata has for it"
            )


def _check_negatives(fact: Fact) -> None:
    folded = [negative.casefold() for negative in fact.negatives]
    right = [answer.casefold() for answer in fact.accepted]
    for negative, key in zip(fact.negatives, folded, strict=True):
        if key in right:
            raise ValueError(
                f"'negatives' must be wrong answers, found {negative!r}, which is a right one"
            )
        if folded.count(key) > 1:
            raise ValueError(
                f"'negatives' must differ from each other, found {negative!r} twice"
            )


_SHOT_KEYS = ("question", "answer", "subject", "valid_until")
_SHOTS_FORM = (
    'allowed, one a line: {"question": "Who wrote Emma?", "answer": "Jane Austen"}, '
    'with "answer": null for "unsure"'
)


def read_shots(path: Path) -> tuple[Shot, ...]:
    """Read ``{question, answer, subject, valid_until}`` a line; ``answer`` null means that there is none.

    The last two may be absent; ``valid_until`` is for examples without an answer. Raises ``SuiteError`` with
    the line of the first mistake, a question that stands twice included.
    """
    shots: dict[str, tuple[int, Shot]] = {}
    for line, shot in json_records(path, _SHOTS_FORM, _shot):
        if shot.question in shots:
            first = shots[shot.question][0]
            message = (
                f"question {shot.question!r} stands twice; the first is on line {first}"
            )
            raise SuiteError(f"{message}; allowed: each question once", path, line)
        shots[shot.question] = line, shot
    if not shots:
        raise SuiteError(f"no examples found; {_SHOTS_FORM}", path, 1)
    return tuple(shot for _, shot in shots.values())


def _shot(value: dict[str, Any]) -> Shot:
    for key in value:
        if key not in _SHOT_KEYS:
            raise ValueError(unknown("key", key, _SHOT_KEYS, where="an example"))
    require_keys(value, "question", "answer")
    for key, item in value.items():
        if key != "answer" or item is not None:
            _require(repr(key), item, _is_line(item), _LINE)
    if "valid_until" in value:
        check_key("valid_until", value["valid_until"])
        if value["answer"] is not None:
            raise ValueError(
                "'valid_until' is for examples without an answer; allowed beside it: \"answer\": null"
            )
    return Shot(**value)


def fact_line(fact: Fact) -> str:
    """Return a fact as one line of a facts file, without what says nothing."""
    value = {
        field.name: getattr(fact, field.name)
        for field in dataclasses.fields(fact)
        if field.name in ("id", *REQUIRED) or getattr(fact, field.name) != field.default
    }
    if "former" in value:
        value["former"] = list(map(dataclasses.asdict, fact.former))
    if "popularity" in value:
        value["popularity"] = _plain_number(value["popularity"])
    if "answer_range" in value:
        value["answer_range"] = [_plain_number(end) for end in value["answer_range"]]
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _plain_number(number: float) -> float:
    return int(number) if number.is_integer() else number


# Ids and domains become part of pytest node ids and of -k expressions.
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
_RELATION_KEYS = (
    *("label", "domain", "answer_type", "popularity"),
    *("proxy", "lead", "frames", "statements", "checked"),
)


def read_relations(path: Path) -> tuple[Relation, ...]:
    """Read a YAML mapping ``id -> {label, domain, frames, lead, ...}``, in the order of the file.

    A frame holds ``[X]`` (the subject) exactly once, as a ``lead`` does, a statement ``[X]`` and ``[Y]`` (the
    object) once each.
    A relation may do without frames, or have an empty list, when all its facts bring their own ``question``.
    ``answer_type`` is that of its objects, ``popularity`` the predicate's own (a number of at least 0),
    ``proxy`` what stands for the popularity of subjects: ``{name, worth}``.
    """
    entries = read_entries(path, "a relations file")
    return tuple(_relation(name, entry) for name, entry in entries.items())


def read_entries(path: Path, what: str) -> dict[str, Node]:
    """Read a YAML mapping from the ids of relations, at least one; ``what`` the file is called in errors."""
    root = read_document(path)
    entries = root.mapping(what)
    if not entries:
        raise root.wrong(what, "a mapping with at least one relation")
    return entries


def _relation(name: str, node: Node) -> Relation:
    what = f"relation {name}"
    keys, about = relation_keys(name, node, what, _RELATION_KEYS, ("label", "domain"))
    popularity = keys.get("popularity")
    lead = keys.get("lead")
    if "proxy" in keys:
        parts = keys["proxy"].keys("proxy", ("name", "worth"), ("name", "worth"))
        about["proxy"] = parts["name"].text("name")
        about["worth"] = parts["worth"].choice("worth", WORTHS)
    return Relation(
        id=name,
        frames=_templates(keys, "frames", {"[X]": 1, "[Y]": 0}),
        lead=_template(lead, "lead", {"[X]": 1, "[Y]": 0}) if lead else "",
        checked="checked" not in keys or _truth(keys["checked"], "checked"),
        statements=_templates(keys, "statements", {"[X]": 1, "[Y]": 1}),
        popularity=float(popularity.number("popularity", str(POPULARITY), POPULARITY))
        if popularity
        else None,
        **about,
    )


def _truth(node: Node, what: str) -> bool:
    if isinstance(node.value, bool):
        return node.value
    raise node.wrong(what, "true or false")


def relation_keys(
    name: str, node: Node, what: str, allowed: Sequence[str], required: Sequence[str]
) -> tuple[dict[str, Node], dict[str, Any]]:
    """Return the keys of a relation in YAML, and its label, domain and answer type by these names."""
    if not ID.fullmatch(name):
        raise node.error(
            f"a relation's id must be ASCII letters, digits, _ and ., found {shown(name)}"
        )
    keys = node.keys(what, allowed, required)
    about = {"label": name, "domain": "open"}
    about |= {key: keys[key].text(key) for key in about if key in keys}
    if not ID.fullmatch(about["domain"]):
        raise keys["domain"].wrong("domain", "ASCII letters, digits, _ and .")
    if "answer_type" in keys:
        about["answer_type"] = keys["answer_type"].choice("answer_type", ANSWER_TYPES)
    return keys, about


def _templates(
    keys: dict[str, Node], key: str, counts: dict[str, int]
) -> tuple[str, ...]:
    if key not in keys or keys[key].value == ():
        return ()
    seen: dict[str, Node] = {}
    for node in keys[key].items(key, of="texts"):
        text = _template(node, f"each of {key}", counts)
        if text in seen:
            raise node.error(
                f"each of {key} must differ, found {text!r} again from line {seen[text].line}"
            )
        seen[text] = node
    return tuple(seen)


def _template(node: Node, what: str, counts: dict[str, int]) -> str:
    text = node.text(what)
    for placeholder, count in counts.items():
        if text.count(placeholder) != count:
            allowed = "exactly once" if count else "nowhere"
            fault = f"found {text.count(placeholder)} times in {text!r}"
            raise node.error(f"{what} must contain {placeholder} {allowed}, {fault}")
    return text


# Names that YAML would take for something else than text stand in quotes.
_PLAIN = re.compile(
    r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][A-Za-z0-9_.]*", re.IGNORECASE
)


def relations_text(relations: Iterable[Relation]) -> str:
    """Return relations as the text of a relations file."""
    lines = ["# [X] is the subject, [Y] the object. The first frame is the base frame."]
    for relation in relations:
        plain = _PLAIN.fullmatch(relation.id)
        lines.append(f"{relation.id if plain else _quoted(relation.id)}:")
        for key in _RELATION_KEYS:
            value = getattr(relation, key)
            if isinstance(value, tuple) and value:
                lines += [f"  {key}:", *(f"    - {_quoted(text)}" for text in value)]
            elif isinstance(value, bool):
                lines += [] if value else [f"  {key}: false"]
            elif value not in ("", None, ()):
                text = key in ("label", "domain", "lead")
                if key == "proxy":
                    value = f"{{name: {_quoted(value)}, worth: {relation.worth}}}"
                lines.append(f"  {key}: {_quoted(value) if text else value}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return str(
        yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)
    ).rstrip("\n")
