"""Stripping of what models write around an answer: thoughts, special tokens, role names, mark-up, a next turn."""

from __future__ import annotations

import html
import re

from pytest_kbrel.judges.words import LONGEST, substitutions

_STRIPPED = substitutions("wrapping", re.IGNORECASE | re.DOTALL)


def strip_wrapping(answer: str) -> str:
    """Return an answer without what models put around it."""
    answer = html.unescape(answer) if "&" in answer else answer
    for sign, pattern, by in _STRIPPED:
        if sign in answer:
            answer = pattern.sub(by, answer)
    return answer.strip()[:LONGEST]
