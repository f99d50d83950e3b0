"""The printed blocks of ``docs/real-models.md``."""

from __future__ import annotations

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "real-models.md"


def missing(name: str, printed: str) -> list[str]:
    """Return the lines of the page's block of this name that were not printed, their blanks made single."""
    blocks = re.findall(
        rf"<!-- printed: {re.escape(name)} -->\n```\w+\n(.*?)```",
        _PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    assert blocks, f"{_PAGE.name} has no block of {name}"
    there = {" ".join(line.split()) for line in printed.splitlines()}
    shown = (" ".join(line.split()) for line in "".join(blocks).splitlines())
    return [line for line in shown if line not in there]
