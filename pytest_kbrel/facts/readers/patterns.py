"""Declarative templates and LAMA's ``sub_label`` with ``obj_label``, which ParaRel and LAMA share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.json import json_rows
from pytest_kbrel.facts.readers.base import answers, clean, need, statement

TRIPLES = 'a file of LAMA\'s kind has one {"sub_label": ..., "obj_label": ...} a line'


def triple(value: dict[str, Any], relation: str, labels: tuple[str, ...] = ()) -> Mapping[str, Any]:
    """Return subject, object and aliases of a line; ``answer_idx`` may stand for the object.

    ``labels`` is the answer space to which ``answer_idx`` points.
    """
    need(value, "sub_label")
    index = value.get("answer_idx")
    if "obj_label" in value or not labels or not isinstance(index, int) or isinstance(index, bool):
        need(value, "sub_label", "obj_label")
        named = clean("obj_label", value["obj_label"])
    elif 0 <= index < len(labels):
        named = labels[index]
    else:
        raise ValueError(f"'answer_idx' must be 0 to {len(labels) - 1}, found {index}")
    right = answers("obj_aliases", [named, *answers("obj_aliases", value.get("obj_aliases"))])
    return {
        "relation": relation,
        "subject": clean("sub_label", value["sub_label"]),
        "object": right[0],
        "aliases": right[1:],
    }


def read_patterns(path: Path) -> tuple[str, ...]:
    """Read a file of ParaRel patterns, ``{"pattern": "[X] ... [Y] ."}`` a line, as they stand there.

    Spaces before punctuation are removed. Raises ``SuiteError`` on the first line that is none.
    """
    found = []
    for line, value in json_rows(path, 'a ParaRel file has one {"pattern": "[X] ... [Y] ."} a line'):
        if isinstance(value, SuiteError):
            raise value
        try:
            need(value, "pattern")
            found.append(statement("pattern", value["pattern"]))
        except ValueError as error:
            raise SuiteError(str(error), path, line) from None
    return tuple(found)
