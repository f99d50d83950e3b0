"""Which option of a multiple-choice question a reply picks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_kbrel.metrics.text import normalise

_LONGEST = 400
_FRAME = (
    r"(?:(?:so|therefore|thus|hence)\s*,?\s+)?"
    r"(?:(?:the|my)\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|option|choice|response|letter)"
    r"(?:\s+(?:is|would\s+be|must\s+be))?\s*[:=]?\s*(?:option\s+|letter\s+|choice\s+)?"
)
_LETTER = re.compile(
    rf"^(?:(?:{_FRAME})|(?:i\s+(?:choose|pick|select|would\s+(?:choose|pick|say)|think)\s+(?:it\s+is\s+|it's\s+)?"
    r"(?:option\s+)?)|it\s+is\s+|it's\s+)?"
    r"[\"'*\[]*\(?(?P<letter>[A-J])(?P<mark>\)?[).:\]*\"',-]*)(?:\s+(?P<rest>.*))?$",
    re.DOTALL | re.IGNORECASE,
)
_FRAMED_TEXT = re.compile(rf"^{_FRAME}(?P<rest>.+)$", re.DOTALL | re.IGNORECASE)


def chosen_option(reply: str, options: Sequence[str]) -> int | None:
    """Return the index of the option a reply picks, ``None`` when it cannot be told.

    A reply may be an option's text, its letter, or both (``B) Paris``), also as "The answer is B". The text
    is tried first, since an option may itself be a letter. When letter and text disagree the reply picks
    nothing. A lone small letter counts with a mark or a frame only: "a" may begin anything.
    """
    said = reply[:_LONGEST].strip()
    texts = [normalise(option) for option in options]
    by_text = _index(texts, normalise(said))
    if by_text is not None:
        return by_text
    match = _LETTER.match(said)
    if match is not None:
        picked = _by_letter(match, texts)
        if picked is not None:
            return picked
    framed = _FRAMED_TEXT.match(said)
    return _index(texts, normalise(framed["rest"])) if framed else None


def _by_letter(match: re.Match[str], texts: list[str]) -> int | None:
    letter, mark = match["letter"], match["mark"]
    rest = normalise(match["rest"] or "")
    framed = match.start("letter") > 0
    if letter.islower() and not mark and not framed:
        return None
    index = ord(letter.upper()) - ord("A")
    if index >= len(texts):
        return None
    if not rest or rest == texts[index]:
        return index
    return None


def _index(texts: list[str], said: str) -> int | None:
    return texts.index(said) if said and said in texts else None
