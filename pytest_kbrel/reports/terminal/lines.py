"""Lines of the terminal with their markup, and what they are broken and coloured by."""

from __future__ import annotations

from pytest_kbrel.printing import wrap

Line = tuple[str, dict[str, bool]]
# The widest line, in columns: longer ones are hard to read.
WIDEST = 100
PLAIN: dict[str, bool] = {}
BOLD = {"bold": True}


def wrapped(
    text: str, width: int, indent: str = "    ", markup: dict[str, bool] = PLAIN
) -> list[Line]:
    """Return ``text`` broken into indented lines."""
    return [(line, markup) for line in wrap(text, width, indent)]


def row(
    label: str, text: str, width: int, column: int, markup: dict[str, bool] = PLAIN
) -> list[Line]:
    """Return ``text`` behind a label, broken into lines that all begin at ``column``."""
    # wrap() indents further lines by two more.
    lines = [line.strip() for line in wrap(text, width - column + 2, "  ")]
    return [
        (f"{label if not at else '':<{column}}{line}", markup if not at else PLAIN)
        for at, line in enumerate(lines)
    ]
