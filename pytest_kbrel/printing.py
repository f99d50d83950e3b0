"""Text for terminals: without keys, control characters and log commands; wrapped, and set in tables.

CI systems read commands from what a job prints. A model's answer may hold one, and would then mark the step
as succeeded, set variables or hide what follows. What is printed for people goes through :func:`printable`;
what programs read (``report.json``, ``responses.jsonl``) keeps the text as it is.
"""

from __future__ import annotations

import html
import json
import re
import textwrap
import unicodedata
from collections.abc import Container, Sequence
from itertools import chain, repeat
from urllib.parse import quote

# Zero-width joiners are part of Persian, Indic scripts and emoji, and move nothing on a screen.
HARMLESS_FORMAT = {"\u200c", "\u200d"}
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_COMMANDS = (
    # GitHub Actions, Gitea: ::error::text, behind blanks. A line may be broken before any word.
    (re.compile(r"(^|\s):(?=:[A-Za-z_])", re.MULTILINE), r"\1: "),
    # Azure Pipelines ##vso[...] and ##[...], TeamCity ##teamcity[...], older GitHub Actions: in all places.
    (re.compile(r"#(?=#\w*\[)"), "# "),
    # Travis CI and GitLab fold a log at travis_fold:start:NAME and section_start:TIME:NAME.
    (
        re.compile(r"(travis_(?:fold|time)|section_(?:start|end))(?=:)", re.IGNORECASE),
        r"\1 ",
    ),
)
_CONTROLS = re.compile("[^\n\t\x20-\x7e]")
# Printable text has none.
_FILL = "\0"


def visible(char: str) -> str:
    """Return a character, spelled out where it is a control, bidi or surrogate character."""
    if (
        unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        or char in HARMLESS_FORMAT
    ):
        return char
    code = ord(char)
    return _SHORT_ESCAPES.get(char) or (
        f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    )


def printable(text: str) -> str:
    """Return ``text`` as it may be printed: nearly the same to the eye, and no command to a terminal or CI.

    A blank breaks each log command (``# #vso[``, ``: :error``), and control characters but line breaks and
    tabs are spelled out. What was printable already stays as it is.
    """
    shown = _CONTROLS.sub(lambda match: visible(match[0]), redacted(text))
    for command, broken in _COMMANDS:
        shown = command.sub(broken, shown)
    return shown


HIDDEN = "***"
SHORTEST = 8
"""The length from which a key is hidden: ``none``, ``EMPTY`` or ``test`` are ordinary words of answers."""

_patterns: dict[str, re.Pattern[str]] = {}


def hide(key: str) -> None:
    """Let :func:`redacted` know a key; one of fewer than ``SHORTEST`` characters is not hidden."""
    key = key.strip()
    if len(key) >= SHORTEST and key not in _patterns:
        forms = {key, quote(key, safe=""), html.escape(key), json.dumps(key)[1:-1]}
        _patterns[key] = re.compile("|".join(map(re.escape, forms)), re.IGNORECASE)


def redacted(text: str) -> str:
    """Return ``text`` with ``***`` for each key.

    Found are upper and lower case, percent-encoding, and the escapes of JSON and HTML.
    """
    for pattern in tuple(_patterns.values()):
        text = pattern.sub(HIDDEN, text)
    return text


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
    if cells(text) <= width or cells(text := redacted(text)) <= width:
        return text
    cut = ""
    for char in text:
        if cells(cut + char) > width - 1:
            break
        cut += char
    return cut + "…"


def wrap(text: str, width: int, indent: str = "    ") -> list[str]:
    """Return ``text`` broken into indented lines; those after the first are indented two blanks further.

    No line takes more than ``width`` terminal columns. A line may end within a word that is longer, but not
    within a key.
    """
    text = printable(text)
    # textwrap counts characters: behind one of two columns stands another, which may open the next line.
    filled = "".join(char + _FILL * (cells(char) > 1) for char in text)
    lines = textwrap.wrap(
        filled,
        width - (filled != text),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )
    return [shown for line in lines if (shown := line.replace(_FILL, "")).strip()]


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
