"""Parsers of replies: the option, true or false, or verdict that a reply states."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pytest_kbrel.judges.abstention import uninformative_kind
from pytest_kbrel.judges.words import strip_wrapping, word_set
from pytest_kbrel.metrics.text import normalise

_LONGEST = 400
_FRAME = (
    r"(?:(?:so|therefore|thus|hence)\s*,?\s+)?"
    r"(?:(?:the|my)\s+)?(?:(?:correct|right|best|final)\s+)?(?:answer|option|choice|response|letter)"
    r"(?:\s+to\s+(?:the|this)\s+question)?"
    r"(?:\s+(?:is|would\s+be|must\s+be))?\s*[:=]?\s*(?:option\s+|letter\s+|choice\s+)?"
)
_LETTER = re.compile(
    rf"^(?:(?:{_FRAME})|(?:i\s+(?:choose|pick|select|would\s+(?:choose|pick|say)|think)\s+(?:it\s+is\s+|it's\s+)?"
    r"(?:option\s+)?)|it\s+is\s+|it's\s+)?"
    r"[\"'\[]*\(?(?P<letter>[A-J])(?P<mark>\)?[).:\]\"',-]*)(?:\s+(?P<rest>.*))?$",
    re.DOTALL | re.IGNORECASE,
)
# "B is the correct answer."
_CALLED_RIGHT = re.compile(
    r"^is\s+(?:the\s+)?(?:correct|right|best)(?:\s+(?:answer|option|choice|one))?\W*$",
    re.IGNORECASE,
)
_MARKDOWN = re.compile(r"[*_`]+")
# A second letter: "A) or B)".
_ANOTHER = re.compile(r"(?:^|\s)\(?[A-J][).:](?:\s|$)")
_DENIES = re.compile(
    r"\b(?:not|no|never|neither|nor|none|except|unlike|instead|rather|wrong|incorrect|false)\b|n t\b"
)
_NOT_SURE = "unsure"


def chosen_option(reply: str, options: Sequence[str], question: str = "") -> int | None:
    """Return the index of the option a reply picks, ``None`` when it cannot be told.

    A reply may be an option's text, its letter, or both (``B) Paris``), also in Markdown, in a sentence ("The
    answer is B", "The capital of France is Paris.") or with more behind it. A letter counts by itself and
    where what follows names no other option; a sentence where it names one option alone, which is not
    among the words of the ``question``, and denies nothing. When letter and text disagree the text counts if
    it is all that follows: it is the model's earlier answer several times as often as what the letter stands
    for (``docs/judging.md``). An option may itself be a letter: its text goes first. A lone small letter counts with a mark
    or a frame only: "a" may begin anything. Not to know is "unsure", where that is an option.
    """
    bare = _MARKDOWN.sub("", reply[:_LONGEST])
    texts, asked = [normalise(option) for option in options], normalise(question)
    # What is stripped may be the frame that makes a small letter one ("Answer: b").
    readings = (
        _picked(text, options, texts, asked)
        for text in dict.fromkeys((bare.strip(), strip_wrapping(bare)))
    )
    return next((index for index in readings if index is not None), None)


def _picked(
    text: str, options: Sequence[str], texts: Sequence[str], asked: str
) -> int | None:
    whole = normalise(text)
    match = _LETTER.match(text)
    if match and normalise(match["rest"] or "") and _is_letter(match, options, texts):
        return _lettered(match, texts)
    if whole in filter(None, texts):
        return texts.index(whole)
    if match and _is_letter(match, options, texts):
        return _lettered(match, texts)
    named = _named(whole, texts)
    if len(named) == 1 and not _DENIES.search(whole):
        return None if f" {texts[named[0]]} " in f" {asked} " else named[0]
    unsure = texts.index(_NOT_SURE) if _NOT_SURE in texts else None
    others = [index for index in named if index != unsure]
    return unsure if not others and uninformative_kind(text) == "unsure" else None


def _is_letter(
    match: re.Match[str], options: Sequence[str], texts: Sequence[str]
) -> bool:
    """Return True if what a reply begins with is the letter of an option, and not a word or an initial."""
    begun = match.string[match.start("letter") :].casefold()
    if any(" " in name and begun.startswith(name.casefold()) for name in options):
        return False
    # What stands between question and answer in many dialogues.
    if begun.startswith("a:"):
        return False
    if match["mark"]:
        return True
    # Without a mark a letter may be a word: what stands behind it is the option, or calls it right.
    rest = match["rest"] or ""
    is_alone = normalise(rest) in ("", *texts) or _CALLED_RIGHT.match(rest)
    return bool(is_alone and (match["letter"].isupper() or match.start("letter")))


def _lettered(match: re.Match[str], texts: Sequence[str]) -> int | None:
    index, rest = ord(match["letter"].upper()) - ord("A"), match["rest"] or ""
    text = normalise(rest)
    if index < len(texts) and text in filter(None, texts):
        return texts.index(text)
    if index >= len(texts) or _ANOTHER.search(rest):
        return None
    named = {*_named(text, texts)}
    # A part of a longer option, or of one that is cut short.
    within = {at for at, of in enumerate(texts) if text and f" {text} " in f" {of} "}
    is_denied = not named and _DENIES.search(text)
    return None if (named | within) - {index} or is_denied else index


def _named(text: str, texts: Sequence[str]) -> list[int]:
    """Return the options that stand in a text, not those that stand in a longer one only."""
    places, text = [], f" {text} "
    for index in sorted(range(len(texts)), key=lambda at: -len(texts[at])):
        if texts[index] and f" {texts[index]} " in text:
            places.append(index)
            text = text.replace(f" {texts[index]} ", " | ")
    return places


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
