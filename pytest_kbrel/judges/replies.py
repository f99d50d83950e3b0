"""Parsers of replies: the option, true or false, or verdict that a reply states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

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
    text = reply[:_LONGEST].strip()
    texts = [normalise(option) for option in options]
    by_text = _index(texts, normalise(text))
    if by_text is not None:
        return by_text
    match = _LETTER.match(text)
    if match is not None:
        picked = _by_letter(match, texts)
        if picked is not None:
            return picked
    framed = _FRAMED_TEXT.match(text)
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


def _index(texts: list[str], text: str) -> int | None:
    return texts.index(text) if text and text in texts else None


# The question's own words, which a model may repeat before it answers.
_ECHO = re.compile(r"\b(?:neither )?(?:true n?or false|false n?or true)\b")
_NEGATED = re.compile(r"\b(?:not|isn t|isnt|never)(?: \w+)? (true|false)\b")
_OPPOSITE = {"true": "false", "false": "true"}
_TRUE_OR_FALSE = re.compile(r"\b(?:un)?true\b|\bfalse\b")


def read_truth(reply: str) -> bool | None:
    """Return what a reply says of a statement; ``None`` when it says neither or both.

    A reply that begins with its verdict means it, whatever explanation follows. Otherwise all that it calls
    true or false must agree.
    """
    text = _NEGATED.sub(lambda match: _OPPOSITE[match[1]], _ECHO.sub(" ", normalise(reply)))
    verdicts: list[bool] = [word == "true" for word in _TRUE_OR_FALSE.findall(text)]
    if not verdicts:
        return None
    if len(set(verdicts)) == 1 or _TRUE_OR_FALSE.match(text.strip()):
        return verdicts[0]
    return None


Verdict = Literal["correct", "incorrect", "unparsable"]

_WORDS = re.compile(r"[a-z]+(?:['’]t)?|[?:]")
_VERDICTS = ("correct", "incorrect")
# What may stand in front of the verdict and changes nothing about it.
_LEAD = (
    "a it its s is was this that the so therefore final my given proposed predicted model answer prediction "
    "response reply verdict judgement judgment result label considered :"
)
_NOT = ("not", "isn't", "isn’t", "wasn't", "wasn’t", "isnt")
# What takes a "correct" back, or makes it a word about something else.
_TAKEN_BACK = "but however although though except if unless only partly partially mostly no false wrong"
_GOES_ON = re.compile(r"correct[\"'*`_)\]}]*\s*(?:[.,;!—–-]|because\b|since\b|as\b|$)")


def read_verdict(reply: str) -> Verdict:
    """Return what a judge's reply says; ``unparsable`` where that cannot be told.

    Case, punctuation and mark-up do not matter, nor a few words in front ("The answer is correct."). "Not
    correct" is ``incorrect``, and so is a reply that begins with it, whatever it goes on about. A "correct"
    that belongs to something else ("The correct answer is Lima"), that is hedged ("partly correct", "Correct,
    but ..."), asked or contradicted is ``unparsable``.
    """
    text = reply.lower()
    words = _WORDS.findall(text)
    places = [index for index, word in enumerate(words) if word in _VERDICTS]
    if not places:
        return "unparsable"
    first = places[0]
    denied = first > 0 and words[first - 1] in _NOT
    before = words[: first - denied]
    behind = words[first + 1 :]
    plain = set(before) <= set(_LEAD.split()) and behind[:1] not in (["?"], ["or"])
    if not plain or (denied and words[first] == "incorrect"):
        return "unparsable"
    if denied or words[first] == "incorrect":
        return "incorrect"
    contradicted = any(words[index] == "incorrect" or words[index - 1] in _NOT for index in places[1:])
    whole = _GOES_ON.match(text, text.index("correct"))
    if contradicted or not whole or set(_TAKEN_BACK.split()) & set(behind):
        return "unparsable"
    return "correct"
