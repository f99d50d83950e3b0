"""Markdown for GitHub: ``summary.md`` for a job's page, and the comment on a pull request."""

from __future__ import annotations

import re

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Run
from pytest_kbrel.reports.rendering import filled
from pytest_kbrel.reports.view import View

# GitHub refuses comments of more than 65,536 characters; the summary may be posted as one, too.
LARGEST = 64_000
# What a user may state of a comment: its form, and that in words.
_STATED = {
    "name": (
        r"[A-Za-z0-9._-]{1,60}",
        "up to 60 letters, digits, '.', '-' and '_'",
    ),
    "link": (
        r"https?://[A-Za-z0-9._~:/?#@!$&*+,;=%-]{1,500}",
        "an address that begins with https:// or http://",
    ),
    "commit": (r"[0-9a-f]{7,64}", "7 to 64 hexadecimal digits"),
}


def summary_markdown(run: Run) -> str:
    """Return the summary of ``run``: verdict, problems, reasons, lost and gained facts, tables, notes.

    It has fewer than :data:`LARGEST` characters: what does not fit is left out and counted.
    """
    return _text("summary.md.j2", run, {})


def comment_markdown(
    run: Run, *, name: str = "", link: str = "", commit: str = ""
) -> str:
    """Return the comment on ``run``: verdict, age of the baseline, what failed, was lost, is open.

    It has fewer than :data:`LARGEST` characters: what does not fit is left out and counted. ``name`` tells
    the comments of several gates on one pull request apart: the next run finds its own by the first line.
    Raises :class:`KbrelError` where name, link or commit are none.
    """
    stated = {"name": name, "link": link, "commit": commit}
    for option, text in stated.items():
        form, allowed = _STATED[option]
        if text and not re.fullmatch(form, text):
            raise KbrelError(f"--{option}: found {text!r}; allowed: {allowed}")
    return _text("comment.md.j2", run, stated)


def _text(template: str, run: Run, stated: dict[str, str]) -> str:
    data = {"run": run, "view": View(run), **stated}
    text = filled(template, data, LARGEST)
    # Nothing that is filled in has a line break.
    return re.sub("\n{3,}", "\n\n", text).strip() + "\n"
