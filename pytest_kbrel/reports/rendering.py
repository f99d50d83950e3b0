"""Templates filled with a view of a run: text is escaped, and lists are cut so that a report keeps its size.

Markdown for GitHub is filled here too: ``summary.md`` for a job's page, and the comment on a pull request.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from pytest_kbrel.catalogue.metrics import ALL_METRICS
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Run, is_published
from pytest_kbrel.reports import changes, formatting, phrases, reasons, view
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.reports.view import View

if TYPE_CHECKING:
    from jinja2 import Environment


_LONGEST, _LONGEST_VALUE, _LONGEST_PROMPT = 160, 600, 4000
_MARKUP = re.compile(r"[\\`*_\[\]|~$]|(?<=:)//|(?<=www)\.|^(?:[#>+-]|\d+[.)])")
# GitHub links mentions, issues and addresses after Markdown was read: only a character in between stops that.
_REFERENCE = re.compile(
    r"&#64;(?=\S)|(?<!&)#(?=\d)|(?<=\bGH)-(?=\d)|:(?=\\/\\/)", re.IGNORECASE
)
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def markdown_text(text: str, limit: int = _LONGEST) -> str:
    """Return ``text`` so that Markdown shows it as it is: no markup, HTML, link, mention or table cell in it.

    Hashes of commits, which GitHub links, and codes of emoji are not escaped.
    """
    shown = printable(one_line(text, limit))
    escaped = _MARKUP.sub(lambda mark: re.sub(r"(\D)", r"\\\1", mark[0]), shown)
    return _REFERENCE.sub(r"\g<0>&#8203;", escaped.translate(_ENTITIES))


class SizeLimit:
    """Number of bytes (``remaining``) that lists of a report may still take."""

    def __init__(self, remaining: float) -> None:
        self.remaining = remaining

    def take(
        self,
        render: Callable[..., str],
        items: Iterable[Any],
        *more: Any,
        least: int = 1,
    ) -> list[str]:
        """Return ``render(item, *more)`` of the first items that fit, but ``least`` of them at least.

        Once an item did not fit, nothing fits any more: rendering what is left out takes time.
        """
        parts: list[str] = []
        for item in items:
            if len(parts) >= least and self.remaining <= 0:
                break
            part = render(item, *more)
            size = len(part.encode("utf-8", "replace"))
            if len(parts) >= least and size > self.remaining:
                self.remaining = min(0, self.remaining)
                break
            parts.append(part)
            self.remaining -= size
        return parts


def filled(template: str, data: dict[str, Any], largest: float = math.inf) -> str:
    """Return a template filled with ``data``, in fewer than ``largest`` bytes of UTF-8.

    What its lists may take is made smaller until it is.
    """
    # A name says the format: ``summary.md.j2``.
    made, text = _environment(template.split(".")[1]).get_template(template), ""
    for part in (1.0, 0.85, 0.6, 0.3, 0.1):
        text = made.render(
            data | {"size_limit": lambda size, part=part: SizeLimit(size * part)}
        )
        if len(text.encode("utf-8", "replace")) < largest:
            break
    return text


@functools.cache
def _environment(form: str) -> Environment:
    """Return the environment that escapes all text for a format, with the filters below and formatting's."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    # Of HTML and XML jinja2 itself escapes all text.
    escape = {"md": markdown_text, "txt": one_line}.get(form)

    def line(text: str, limit: int = _LONGEST) -> str:
        return Markup(escape(text, limit)) if escape else one_line(str(text), limit)

    def filled_in(value: object) -> object:
        return value if isinstance(value, Markup) else line(str(value), _LONGEST_VALUE)

    made = Environment(
        loader=FunctionLoader(source if escape else _dense),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=filled_in if escape else None,
    )
    made.filters |= vars(formatting) | {
        "at": lambda value: f"{value:.1f}".removesuffix(".0"),
        "line": line,
        "lines": prompt_lines,
        "meaning": meaning,
    }
    made.globals |= vars(formatting) | {
        "better": view.better,
        "changes": changes,
        "is_published": is_published,
        "metric": formatting.metric,
        "phrases": phrases,
        "reasons": reasons,
        "key_figures": view.key_figures,
        "size_limit": SizeLimit,
        # One that stays as it is where the others are made smaller.
        "fixed_limit": SizeLimit,
    }
    return made


def prompt_lines(prompt: str) -> str:
    """Return a prompt with its lines, each as it may be shown."""
    lines = map(one_line, prompt[:_LONGEST_PROMPT].split("\n"))
    return "\n".join(lines) + ("\n…" if len(prompt) > _LONGEST_PROMPT else "")


def meaning(name: str) -> str:
    """Return the first sentence on what a metric is; empty for a name that is none of a metric."""
    about = ALL_METRICS[name].about if name in ALL_METRICS else ""
    return about.partition(". ")[0].removesuffix(".")


def source(name: str) -> str:
    """Return the text of a template."""
    folder = files("pytest_kbrel.reports") / "templates"
    return (folder / name).read_text(encoding="utf-8")


def _dense(name: str) -> str:
    """Return a template without line breaks and their indentation; a blank line is one line break."""
    return re.sub(
        r"\n\s*", lambda gap: "\n" if gap[0].count("\n") > 1 else "", source(name)
    )


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
