"""Keys that this process read, and their removal from texts: servers repeat what they were sent."""

from __future__ import annotations

import re
from typing import Any, TypeVar

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
    found = False
    while waiting:
        part = waiting.pop()
        for place, value in list(enumerate(part) if isinstance(part, list) else part.items()):
            if isinstance(value, str) and (shown := redacted(value)) != value:
                part[place], found = shown, True
            if isinstance(place, str) and (name := redacted(place)) != place:
                part[name], found = part.pop(place), True
            waiting += _within(value)
    return whole[0], found


def _within(value: Any) -> list[Any]:
    """Return the lists and dictionaries that a value consists of; the fields of an object are two."""
    if isinstance(value, (list, dict)):
        return [value]
    fields = (getattr(value, "__dict__", None), getattr(value, "__pydantic_extra__", None))
    return [] if isinstance(value, type) else [found for found in fields if isinstance(found, dict)]


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
