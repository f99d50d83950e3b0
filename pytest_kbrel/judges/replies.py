"""Parsers of replies: the option, true or false, or verdict that a reply states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pytest_kbrel.judges.stripping import strip_wrapping
from pytest_kbrel.judges.words import word_set
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
    if normalise(text) in filter(None, texts):
        return texts.index(normalise(text))
    if (match := _LETTER.match(text)) and (
        match["mark"] or match["letter"].isupper() or match.start("letter")
    ):
        index, rest = (
            ord(match["letter"].upper()) - ord("A"),
            normalise(match["rest"] or ""),
        )
        if index < len(texts) and rest in ("", texts[index]):
            return index
    framed = _FRAMED_TEXT.match(text)
    stated = normalise(framed["rest"]) if framed else ""
    return texts.index(stated) if stated in filter(None, texts) else None


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
    text = _NEGATED.sub(
        lambda match: _OPPOSITE[match[1]], _ECHO.sub(" ", normalise(reply))
    )
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
_LEAD = word_set("verdict_lead")
_NOT = ("not", "isn't", "isn’t", "wasn't", "wasn’t", "isnt")
# What takes a "correct" back, or makes it a word about something else.
_TAKEN_BACK = word_set("taken_back")
_GOES_ON = re.compile(r"correct[\"'*`_)\]}]*\s*(?:[.,;!—–-]|because\b|since\b|as\b|$)")


def read_verdict(reply: str) -> Verdict:
    """Return what a judge's reply says; ``unparsable`` where that cannot be told.

    Case, punctuation and mark-up do not matter, nor a few words in front ("The answer is correct."). "Not
    correct" is ``incorrect``, and so is a reply that begins with it, whatever it goes on about. A "correct"
    that belongs to something else ("The correct answer is Lima"), that is hedged ("partly correct", "Correct,
    but ..."), asked or contradicted is ``unparsable``.
    """
    text = strip_wrapping(reply).lower()
    words = _WORDS.findall(text)
    indices = [index for index, word in enumerate(words) if word in _VERDICTS]
    if not indices:
        return "unparsable"
    first = indices[0]
    verdict, behind = words[first], words[first + 1 :]
    denied = first > 0 and words[first - 1] in _NOT
    if not _LEAD.issuperset(words[: first - denied]) or behind[:1] in (["?"], ["or"]):
        return "unparsable"
    if denied or verdict == "incorrect":
        return "unparsable" if denied and verdict == "incorrect" else "incorrect"
    contradicted = any(
        words[index] == "incorrect" or words[index - 1] in _NOT for index in indices[1:]
    )
    whole = _GOES_ON.match(text, text.index("correct"))
    return (
        "correct"
        if whole and not contradicted and _TAKEN_BACK.isdisjoint(behind)
        else "unparsable"
    )
