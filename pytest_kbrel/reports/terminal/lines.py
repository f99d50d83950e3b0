"""Lines of the terminal with their markup, and what they are broken and coloured by."""

from __future__ import annotations

from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import wrap
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports import phrases

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


def case_markup(case: CaseResult, run: Run) -> dict[str, bool]:
    """Return the colour of a case's verdict; a waived failure looks like an undecided case."""
    if case.verdict == "pass":
        return PLAIN
    return VERDICTS[
        "inconclusive" if phrases.is_waived(case, run) else case.verdict
    ].markup
