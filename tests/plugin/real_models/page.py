"""The printed blocks of ``docs/real-models.md``."""

from __future__ import annotations

import json
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "real-models.md"


def lines_in(text: str, name: str) -> list[str]:
    """Return the lines of the blocks that are said to be printed for a case, their blanks made single.

    What was cut off a line stands as ``…`` at its end.
    """
    lines = [
        line for block in _blocks(text, "printed", name) for line in block.splitlines()
    ]
    return [" ".join(line.split()) for line in lines if line.strip()]


def records_in(text: str, name: str) -> list[dict[str, object]]:
    """Return what is said to be recorded of a case's responses."""
    return [json.loads(block) for block in _blocks(text, "recorded", name)]


def _blocks(text: str, kind: str, name: str) -> list[str]:
    return re.findall(
        rf"<!-- {kind}: {re.escape(name)} -->\n```\w+\n(.*?)```", text, flags=re.DOTALL
    )


def names_in(text: str) -> set[str]:
    """Return the ids of all cases that the page shows blocks of."""
    return set(re.findall(r"<!-- (?:printed|recorded): (\S+) -->", text))
