"""What a model that judges has replied: its one word, read strictly."""

from __future__ import annotations

import re
from typing import Literal

Verdict = Literal["correct", "incorrect", "unparsable"]

_WORDS = re.compile(r"[a-z]+(?:['’]t)?|\?")
_VERDICTS = ("correct", "incorrect")
# What may stand in front of the verdict and changes nothing about it.
_LEAD = (
    "a it its s is was would be this that the so therefore final my given proposed predicted model "
    "answer prediction response reply verdict judgement judgment result label considered"
)
_NOT = ("not", "isn't", "isn’t", "wasn't", "wasn’t", "isnt")


def read_verdict(reply: str) -> Verdict:
    """Return what a judge's reply says; ``unparsable`` where that cannot be told.

    Case, punctuation and mark-up do not matter, nor a few words in front ("The answer is correct."). "Not
    correct" is ``incorrect``. A reply that says both, that hedges in front ("partly correct"), that asks or
    that says neither is ``unparsable``.
    """
    words = _WORDS.findall(reply.lower())
    places = [place for place, word in enumerate(words) if word in _VERDICTS]
    if not places:
        return "unparsable"
    said = {_said(words, place) for place in places}
    first = places[0]
    denied = words[first - 1 : first] if first and words[first - 1] in _NOT else []
    before = words[: first - len(denied)]
    if len(said) > 1 or not set(before) <= set(_LEAD.split()) or words[first + 1 : first + 2] == ["?"]:
        return "unparsable"
    return said.pop()


def _said(words: list[str], place: int) -> Verdict:
    denied = place > 0 and words[place - 1] in _NOT
    if words[place] == "correct":
        return "incorrect" if denied else "correct"
    # "Not incorrect" may mean anything between the two.
    return "unparsable" if denied else "incorrect"
