"""A user's own patterns of uninformative answers."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.facts.located.node import Node, unknown
from pytest_kbrel.facts.located.yaml import read_document
from pytest_kbrel.records import UNINFORMATIVE


def read_uninformative(path: Path) -> tuple[tuple[str, str], ...]:
    """Read a YAML file of patterns: a mapping from ``repetition``, ``none`` or ``unsure`` to a list of them.

    Returns (kind, Python regular expression) in the file's order. Raises ``SuiteError`` with file and line
    for another kind, an empty list, and an expression that is none or matches an empty answer.
    """
    kinds = read_document(path).mapping("a file of uninformative answers")
    found: list[tuple[str, str]] = []
    for kind, entry in kinds.items():
        if kind not in UNINFORMATIVE:
            raise entry.error(unknown("kind", kind, UNINFORMATIVE))
        found += [
            (kind, _pattern(kind, node)) for node in entry.node.items(repr(kind), "regular expressions")
        ]
    if not found:
        raise SuiteError(
            f"no patterns; allowed: lists of regular expressions under {', '.join(UNINFORMATIVE)}", path, 1
        )
    return tuple(found)


def _pattern(kind: str, node: Node) -> str:
    expression = node.text(f"a pattern of {kind!r}")
    try:
        compiled = re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise node.error(f"not a regular expression: {expression!r} ({error})") from None
    if compiled.search(""):
        raise node.error(f"the pattern {expression!r} matches every answer, also an empty one")
    return expression
