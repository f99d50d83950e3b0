"""What a model that judges has replied: its one word, read strictly."""

from __future__ import annotations

import re
from typing import Literal

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
    places = [place for place, word in enumerate(words) if word in _VERDICTS]
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
    contradicted = any(words[place] == "incorrect" or words[place - 1] in _NOT for place in places[1:])
    whole = _GOES_ON.match(text, text.index("correct"))
    if contradicted or not whole or set(_TAKEN_BACK.split()) & set(behind):
        return "unparsable"
    return "correct"
