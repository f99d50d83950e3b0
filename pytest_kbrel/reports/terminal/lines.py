"""Lines of the terminal with their markup, as templates of text describe them."""

from __future__ import annotations

import re
from typing import Any

from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import fit, printable, wrap
from pytest_kbrel.reports.rendering import filled

Line = tuple[str, dict[str, bool]]
# The widest line, in columns: longer ones are hard to read.
WIDEST = 100
MARKUP: dict[str, dict[str, bool]] = {
    name: verdict.markup for name, verdict in VERDICTS.items()
}


def laid_out(template: str, width: int, data: dict[str, Any]) -> list[Line]:
    """Return the lines of a template of text, broken at ``width`` columns.

    Its lines are ``markup|label|text``. Markup is names of pytest's or a verdict, for the first line of the
    text. All lines of the text begin behind the label; without one (blanks) those after the first are
    indented further. A label without text has no line, and an empty line of the template is one of ours.
    """
    lines: list[Line] = []
    text = filled(template, data)
    for described in re.sub("\n{3,}", "\n\n", text).strip("\n").split("\n"):
        if not described.strip():
            lines.append(("", {}))
            continue
        markup, label, text = described.split("|", 2)
        if label.strip():
            # wrap() indents further lines by two more.
            broken = wrap(text, width - len(label) + 2, "  ")
            broken = [" " * len(label) + line.strip() for line in broken]
            broken[:1] = [label + line[len(label) :] for line in broken[:1]]
        else:
            broken = wrap(text, width, label)
        names = dict[str, bool]()
        for word in filter(None, markup.split(",")):
            names |= MARKUP.get(word, {word: True})
        for at, line in enumerate(broken):
            is_plain = at and label.strip()
            lines.append((fit(printable(line), width), {} if is_plain else names))
    return lines
