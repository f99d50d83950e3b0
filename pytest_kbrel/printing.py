"""Text of models, servers and files as it may be printed: no keys, control characters or log commands.

CI systems read commands from what a job prints. A model's answer may hold one, and would then mark the step
as succeeded, set variables or hide what follows. What is printed for people goes through :func:`printable`;
what programs read (``report.json``, ``responses.jsonl``) keeps the text as it is.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

# Zero-width joiners are part of Persian, Indic scripts and emoji, and move nothing on a screen.
HARMLESS_FORMAT = {"\u200c", "\u200d"}
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Comparisons of texts by the rules of a language ignore these, and so may the readers of logs.
_UNSEEN = "\u034f\u200c\u200d\ufe00-\ufe0f"
_COMMANDS = (
    # GitHub Actions, Gitea: ::error::text, behind blanks. A line may be broken before any word.
    (re.compile(rf"(^|\s)([{_UNSEEN}]*:)(?=[{_UNSEEN}]*:[{_UNSEEN}]*[A-Za-z_])", re.MULTILINE), r"\1\2 "),
    # Azure Pipelines ##vso[...] and ##[...], TeamCity ##teamcity[...], older GitHub Actions: in all places.
    (re.compile(rf"#(?=[{_UNSEEN}]*#[\w{_UNSEEN}]*\[)"), "# "),
    # Travis CI and GitLab fold a log at travis_fold:start:NAME and section_start:TIME:NAME.
    (re.compile(r"(travis_(?:fold|time)|section_(?:start|end))(?=:)", re.IGNORECASE), r"\1 "),
)
_CONTROLS = re.compile("[^\n\t\x20-\x7e]")


def visible(char: str) -> str:
    """Return a character, spelled out where it is a control, bidi or surrogate character."""
    import unicodedata

    if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} or char in HARMLESS_FORMAT:
        return char
    code = ord(char)
    return _SHORT_ESCAPES.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def printable(text: str) -> str:
    """Return ``text`` as it may be printed: nearly the same to the eye, and no command to a terminal or CI.

    A blank breaks each log command (``# #vso[``, ``: :error``), and control characters but line breaks and
    tabs are spelled out. What was printable already stays as it is.
    """
    shown = _CONTROLS.sub(lambda match: visible(match[0]), redacted(text))
    for command, broken in _COMMANDS:
        shown = command.sub(broken, shown)
    return shown


T = TypeVar("T")

HIDDEN = "***"
SHORTEST = 8
"""The length from which a key is hidden: ``none``, ``EMPTY`` or ``test`` are ordinary words of answers."""

_known: dict[str, re.Pattern[str]] = {}


def hide(key: str) -> None:
    """Let :func:`redacted` know a key; one of fewer than ``SHORTEST`` characters is not hidden."""
    key = key.strip()
    if len(key) >= SHORTEST and key not in _known:
        _known[key] = re.compile("".join(map(_spellings, key)), re.IGNORECASE)


def redacted(text: str) -> str:
    """Return ``text`` with ``***`` for each key, however it is spelled.

    Found are upper and lower case, percent-encoding of any of its characters (also twice), and the escapes of
    JSON, Python and HTML. Base64 and other codes are not: who means to give a key away has ways enough.
    """
    for pattern in tuple(_known.values()):
        text = pattern.sub(HIDDEN, text)
    return text


def redacted_reply(reply: T) -> tuple[T, bool]:
    """Return what a client made of a server's reply without keys, and whether there were any.

    All texts are searched, and the names in objects: those of objects, lists and dictionaries to any depth,
    in place.
    """
    whole: list[Any] = [reply]
    waiting: list[Any] = [whole] if _known else []
    masked = False
    while waiting:
        part = waiting.pop()
        for place, value in list(enumerate(part) if isinstance(part, list) else part.items()):
            if isinstance(value, str) and (shown := redacted(value)) != value:
                part[place], masked = shown, True
            if isinstance(place, str) and (name := redacted(place)) != place:
                part[name], masked = part.pop(place), True
            waiting += _within(value)
    return whole[0], masked


def _within(value: Any) -> list[Any]:
    """Return the lists and dictionaries that a value consists of; the fields of an object are two."""
    if isinstance(value, (list, dict)):
        return [value]
    fields = (getattr(value, "__dict__", None), getattr(value, "__pydantic_extra__", None))
    return [] if isinstance(value, type) else [field for field in fields if isinstance(field, dict)]


def _spellings(char: str) -> str:
    """Return a pattern of the ways in which a character of a key may be spelled."""
    import html

    code = ord(char)
    ways = [
        rf"\\?{re.escape(char)}",
        "".join(f"%(?:25)*{byte:02x}" for byte in char.encode("utf-8", "surrogatepass")),
        rf"\\u{code:04x}",
        rf"\\x{code:02x}",
        f"&#0*{code};",
        f"&#x0*{code:x};",
    ]
    named = html.escape(char)
    return f"(?:{'|'.join(ways + [named] * (named != char))})"
