"""Relations files: what each relation is called and how it is put into words, in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, cast

from pytest_kbrel.bounds import POPULARITY, shown
from pytest_kbrel.facts.located import Entry, Node, read_document
from pytest_kbrel.records import ANSWER_TYPES, AnswerType, Relation

# Ids and domains become part of pytest node ids and of -k expressions.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.]*")
_KEYS = ("label", "domain", "frames", "statements", "answer_type", "popularity")


def read_relations(path: Path) -> tuple[Relation, ...]:
    """Read a YAML mapping ``id -> {label, domain, frames, statements, ...}``, in the order of the file.

    A frame holds ``[X]`` (the subject) exactly once, a statement ``[X]`` and ``[Y]`` (the object) once each.
    A relation may do without frames, or have an empty list, when all its facts bring their own ``question``.
    ``answer_type`` is that of its objects, ``popularity`` the predicate's own (a number of at least 0).
    """
    root = read_document(path)
    entries = root.mapping("a relations file")
    if not entries:
        raise root.wrong("a relations file", "a mapping with at least one relation")
    return tuple(_relation(name, entry) for name, entry in entries.items())


def _relation(name: str, entry: Entry) -> Relation:
    if not NAME.fullmatch(name):
        raise entry.error(f"a relation's id must be ASCII letters, digits, _ and ., found {shown(name)}")
    keys = entry.node.keys(f"relation {name}", _KEYS, required=("label", "domain"))
    domain = keys["domain"].node
    if not NAME.fullmatch(domain.text("domain")):
        raise domain.wrong("domain", "ASCII letters, digits, _ and .")
    return Relation(
        id=name,
        label=keys["label"].node.text("label"),
        domain=domain.text("domain"),
        frames=_templates(keys, "frames", {"[X]": 1, "[Y]": 0}),
        statements=_templates(keys, "statements", {"[X]": 1, "[Y]": 1}),
        answer_type=_answer_type(keys),
        popularity=_popularity(keys),
    )


def _answer_type(keys: dict[str, Entry]) -> Literal["", AnswerType]:
    if "answer_type" not in keys:
        return ""
    return cast(AnswerType, keys["answer_type"].node.choice("answer_type", ANSWER_TYPES))


def _popularity(keys: dict[str, Entry]) -> float | None:
    if "popularity" not in keys:
        return None
    return float(keys["popularity"].node.number("popularity", str(POPULARITY), POPULARITY))


def _templates(keys: dict[str, Entry], key: str, places: dict[str, int]) -> tuple[str, ...]:
    if key not in keys or keys[key].node.value == ():
        return ()
    seen: dict[str, Node] = {}
    for node in keys[key].node.items(key, of="texts"):
        text = node.text(f"each of {key}")
        for place, count in places.items():
            if text.count(place) != count:
                allowed = "exactly once" if count else "nowhere"
                fault = f"found {text.count(place)} times in {text!r}"
                raise node.error(f"each of {key} must contain {place} {allowed}, {fault}")
        if text in seen:
            raise node.error(f"each of {key} must differ, found {text!r} again from line {seen[text].line}")
        seen[text] = node
    return tuple(seen)


# Names that YAML would take for something else than text stand in quotes.
_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][A-Za-z0-9_.]*", re.IGNORECASE)


def relations_text(relations: Iterable[Relation]) -> str:
    """Return relations as the text of a relations file."""
    lines = ["# [X] is the subject, [Y] the object. The first frame is the base frame.\n"]
    for relation in relations:
        name = relation.id if _PLAIN.fullmatch(relation.id) else _quoted(relation.id)
        lines.append(f"{name}:\n  label: {_quoted(relation.label)}\n  domain: {_quoted(relation.domain)}\n")
        if relation.answer_type:
            lines.append(f"  answer_type: {relation.answer_type}\n")
        if relation.popularity is not None:
            lines.append(f"  popularity: {relation.popularity!r}\n")
        for key, texts in (("frames", relation.frames), ("statements", relation.statements)):
            if texts:
                lines.append(f"  {key}:\n" + "".join(f"    - {_quoted(text)}\n" for text in texts))
    return "".join(lines)


def _quoted(text: str) -> str:
    import yaml

    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)).rstrip("\n")
