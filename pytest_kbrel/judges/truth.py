"""Reads a reply to "Is the statement true or false?"."""

from __future__ import annotations

import re

from pytest_kbrel.metrics.text import normalise

# The question's own words, which a model may repeat before it answers.
_ECHO = re.compile(r"\b(?:neither )?(?:true n?or false|false n?or true)\b")
_NEGATED = re.compile(r"\b(?:not|isn t|isnt|never)(?: \w+)? (true|false)\b")
_OPPOSITE = {"true": "false", "false": "true"}
_SAID = re.compile(r"\b(?:un)?true\b|\bfalse\b")


def read_truth(reply: str) -> bool | None:
    """Return what a reply says of a statement; ``None`` when it says neither or both.

    A reply that begins with its verdict means it, whatever explanation follows. Otherwise all that it calls
    true or false must agree.
    """
    said = _NEGATED.sub(lambda found: _OPPOSITE[found[1]], _ECHO.sub(" ", normalise(reply)))
    verdicts: list[bool] = [word == "true" for word in _SAID.findall(said)]
    if not verdicts:
        return None
    if len(set(verdicts)) == 1 or _SAID.match(said.strip()):
        return verdicts[0]
    return None
