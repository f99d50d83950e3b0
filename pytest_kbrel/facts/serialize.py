"""Facts and relations as the files that a suite reads."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable

from pytest_kbrel.records import Fact, Relation

_NEEDED = ("id", "relation", "subject", "object")
# Names that YAML would take for something else than text stand in quotes.
_PLAIN = re.compile(r"(?!(?:true|false|yes|no|on|off|null|y|n)$)[A-Za-z_][A-Za-z0-9_.]*", re.IGNORECASE)


def fact_line(fact: Fact) -> str:
    """Return a fact as one line of a facts file, without what says nothing."""
    value = {
        field.name: getattr(fact, field.name)
        for field in dataclasses.fields(fact)
        if field.name in _NEEDED or getattr(fact, field.name) != field.default
    }
    if "popularity" in value:
        value["popularity"] = _whole(value["popularity"])
    if "answer_range" in value:
        value["answer_range"] = [_whole(end) for end in value["answer_range"]]
    return json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n"


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


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
