"""Text tables for the terminal: widths are counted in terminal columns, not in characters."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Container, Sequence
from itertools import chain, repeat

from pytest_kbrel.printing import HARMLESS_FORMAT


def cells(text: str) -> int:
    """Return how many terminal columns ``text`` takes."""
    return sum(
        0
        if unicodedata.combining(char) or char in HARMLESS_FORMAT
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def fit(text: str, width: int) -> str:
    """Cut ``text`` to ``width`` terminal columns."""
    if cells(text) <= width:
        return text
    cut = ""
    for char in text:
        if cells(cut + char) > width - 1:
            break
        cut += char
    return cut + "…"


def wrap(text: str, width: int, indent: str = "    ") -> list[str]:
    """Return ``text`` broken into indented lines; those after the first are indented two blanks further."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
    )


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill ``text`` with blanks to ``width`` terminal columns; ``right`` aligns it to the right."""
    fill = " " * (width - cells(text))
    return fill + text if right else text + fill


def format_table(
    rows: Sequence[Sequence[str]],
    *,
    left: Container[int] = (0,),
    least: Sequence[int] = (),
    gap: str = "  ",
) -> list[str]:
    """Return the lines of a table: each column is as wide as its widest cell.

    Columns are aligned to the right, but for those whose numbers are in ``left``. ``least`` are the least
    widths of the first columns, ``gap`` stands between two columns. All rows have the same length.
    """
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    widths = list(map(max, widths, chain(least, repeat(0))))
    return [
        gap.join(
            pad(cell, width, right=column not in left)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
