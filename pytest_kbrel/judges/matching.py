"""Comparison of an answer with accepted ones: is one of them stated, and neither denied nor merely mentioned?"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from pytest_kbrel.judges.dates import Date, dates_in
from pytest_kbrel.judges.words import Text, data, read_words, word_set
from pytest_kbrel.records import base_language

_FILLER, _TITLES = word_set("filler"), word_set("titles")
_UNITS, _NAMING = word_set("units"), word_set("naming")
_MARKS = re.compile(r"[,;:.!?()/|\n]")
_WORD = r"[^\s,;:.!?()/|¤¥]+"
_ASCII = str.maketrans("。、؛،।", ".,;,.")
_ASIDE = re.compile(r"\s*\([^)]*\)")
# Letters of an accepted answer that may be parted otherwise, and of one that may be part of a word.
_JOINED, _LONG = 6, 10


class Gold(NamedTuple):
    """An accepted answer as it is compared.

    ``content`` are its words but for filler and titles; ``date`` is what it is where it is a date.
    """

    text: Text
    content: tuple[str, ...]
    date: Date | None

    @property
    def is_name(self) -> bool:
        """Return True if it has a capital and no number."""
        letters = "".join(self.text.words)
        return any(self.text.capitals) and not any(map(str.isdigit, letters))


@lru_cache(maxsize=16384)
def read_gold(gold: str, language: str = "") -> Gold:
    """Read an accepted answer; what stands in parentheses is left out."""
    text = read_words(_ASIDE.sub("", gold).strip() or gold, language)
    hits, rest = dates_in(text.words), set(text.words)
    for item in hits:
        rest -= set(text.words[item.start : item.end])
    is_date = len(hits) == 1 and rest <= _FILLER
    return Gold(text, _content(text), hits[0].date if is_date else None)


def without_coarser_dates(golds: Sequence[Gold]) -> list[Gold]:
    """Return accepted answers without years and months of which another one knows more."""
    dates = [gold.date for gold in golds if gold.date]
    return [
        gold
        for gold in golds
        if not gold.date or not any(date.refines(gold.date) for date in dates)
    ]


def find_rule(answer: Text, gold: Gold, question: Text, language: str) -> str:
    """Return the rule by which an answer states an accepted one, ``""`` where none does."""
    words = gold.text.words
    if gold.date:
        hits = [one for one in dates_in(answer.words) if one.date.agrees(gold.date)]
        stated = any(_is_stated(answer, one.start, one.end) for one in hits)
        return "date" if stated else ""
    if words in (("yes",), ("no",)):
        return "yes or no" if answer.words[:1] == words else ""
    # "IN" for India is not the word "in".
    is_code = gold.text.capitals == (2,) and len(words[0]) < 3
    # What the question names itself may only be repeated, but for "Is it Lima or Quito?"
    content = _content(answer)
    echoes, places = (list(_places(text.words, words)) for text in (question, answer))
    if len(places) <= len(echoes) and echoes and "or" not in question.words:
        return "equal" if content == gold.content else ""
    for start, end in places:
        if (
            (not is_code or answer.capitals[start] == 2)
            and _is_stated(answer, start, end)
            and not _is_of_longer_name(answer.words, start, words, language)
        ):
            return "contained"
    if places:
        return ""
    new = set(content).difference(question.words)
    if any(map(str.isalpha, new)) and sorted(content) == sorted(gold.content):
        return "same words"
    nation = len(words) == 1 and _nations().get(words[0])
    given, asked = (map(_nations().get, text) for text in (content, question.words))
    if nation and nation in given and nation not in asked:
        return "nation"
    if new and content == gold.content[:1] and _UNITS.issuperset(gold.content[1:]):
        return "number"
    place = _joined_place(answer.words, "".join(words))
    if place and _is_stated(answer, *place):
        return "joined"
    return _part_of_name(answer, content, gold, question)


def is_whole(answer: Text, gold: Gold) -> bool:
    """Return True if all of an answer is another writing of an accepted one."""
    if gold.date:
        return dates_in(answer.words) == [(gold.date, 0, len(answer.words))]
    content = _content(answer)
    if not content or _FILLER & (set(answer.words) - set(gold.text.words)):
        return False
    rest = _part_of_name(answer, content, gold, read_words(""))
    return bool(rest) or sorted(content) == sorted(gold.content)


def _content(text: Text) -> tuple[str, ...]:
    return tuple(w for w in text.words if w not in _FILLER and w not in _TITLES)


def _places(words: Sequence[str], part: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where ``part`` begins and ends in ``words``."""
    start, size = -1, len(part)
    while size and part[0] in words[start + 1 :]:
        start = words.index(part[0], start + 1)
        if words[start : start + size] == part:
            yield start, start + size


def _joined_place(words: Sequence[str], letters: str) -> tuple[int, int] | None:
    """Return where the letters of an accepted answer stand, in words that are parted in another way.

    "Dogpatch" is Dog Patch. Few letters must begin and end with words: Kansas is not in Arkansas.
    """
    text = "".join(words)
    if len(letters) < _JOINED or letters not in text:
        return None
    ends = list(accumulate(map(len, words)))
    begin = text.index(letters)
    start, end = bisect_right(ends, begin), bisect_left(ends, begin + len(letters))
    whole = begin in (0, *ends) and begin + len(letters) in ends
    return (start, end + 1) if whole or len(letters) >= _LONG else None


def _is_stated(text: Text, start: int, end: int) -> bool:
    """Return True if some words are stated: not denied, corrected, one of several or merely mentioned."""
    before, said, behind = (
        _written(text, *span) for span in ((0, start), (start, end), (end, None))
    )
    own = said.strip(" ,;:.!?()/|\n")
    sentence = f"{before} {said.replace(own, '¤')} {behind.replace(own, '¥')}"
    return not any(pattern.search(sentence) for pattern in _unstated())


def _written(text: Text, start: int, end: int | None) -> str:
    """Return some words with blanks around the marks between clauses and without other marks."""
    words = zip(
        text.words[start:end],
        text.gaps[start:end],
        text.capitals[start:end],
        strict=True,
    )
    return " ".join(
        f"{' '.join(_MARKS.findall(gap.translate(_ASCII)))} {word.capitalize() if capital else word}".strip()
        for word, gap, capital in words
    )


@lru_cache(maxsize=1)
def _unstated() -> tuple[re.Pattern[str], ...]:
    # Python's own \\w leaves out the vowel signs of Devanagari.
    patterns = (one.replace(r"\w+", _WORD) for one in data("words")["unstated"])
    return tuple(re.compile(one, re.IGNORECASE | re.DOTALL) for one in patterns)


@lru_cache(maxsize=16)
def _territories(code: str) -> dict[str, list[tuple[str, ...]]]:
    """Return, by each of their words, the names of more than one word that CLDR has for territories."""
    from babel import Locale, UnknownLocaleError

    hits: dict[str, list[tuple[str, ...]]] = {}
    try:
        names = Locale.parse(code).territories.values()
    except (UnknownLocaleError, ValueError):
        return hits
    for name in (read_words(str(name), code).words for name in names):
        for word in name if len(name) > 1 else ():
            hits.setdefault(word, []).append(name)
    return hits


def _is_of_longer_name(
    words: Sequence[str], start: int, own: Sequence[str], language: str
) -> bool:
    """Return True if the name at ``start`` is part of a territory's: Sudan in South Sudan."""
    for name in _territories(base_language(language)).get(own[0], ()):
        at = start - name.index(own[0])
        if at >= 0 and len(name) > len(own) and words[at : at + len(name)] == name:
            return True
    return False


@lru_cache(maxsize=1)
def _nations() -> dict[str, str]:
    """Return countries by their own names and by the words for their people."""
    rows = (row.split() for row in data("words")["nations"])
    return {read_words(word).words[0]: row[0] for row in rows for word in row}


def _part_of_name(
    answer: Text, content: Sequence[str], gold: Gold, question: Text
) -> str:
    """Return the rule by which a part of a name, or its words in another order, say enough."""
    words, own = answer.words, gold.content
    asked = set(question.words)
    comma = next((i for i, gap in enumerate(gold.text.gaps) if i and "," in gap), 0)
    if comma and words == gold.text.words[:comma]:
        return "before comma"
    # "Shakespeare" and "W. Shakespeare" are William Shakespeare.
    pairs = zip(content[::-1], own[::-1], strict=False)
    ends = 0 < len(content) <= len(own) <= 4 and all(
        one in (two, two[0]) for one, two in pairs
    )
    named = gold.is_name and _NAMING.isdisjoint(own) and not asked.issuperset(content)
    if ends and named and len(content[-1]) > 2:
        return "surname"
    rest = [word for word in own if word not in asked]
    if content and rest and tuple(rest) == tuple(w for w in content if w not in asked):
        return "question's words"
    if len(own) < 2 or any(map(str.isdigit, "".join(own))):
        return ""
    spread = _spread(words, rest or own)
    if spread and (len(rest) != 1 or rest == list(own[:1])):
        start, end = spread
        if end - start <= 3 + 2 * len(own) and _is_stated(answer, start, end):
            return "all words"
    if len(own) == 3 and named and own[2] not in asked:
        for place in _places(words, (own[0], own[2])):
            if _is_stated(answer, *place):
                return "first and last name"
    return ""


def _spread(words: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """Return where the first of the places begins and ends at which all wanted words stand close together."""
    places = [[at for at, word in enumerate(words) if word == one] for one in wanted]
    if not all(places):
        return None
    spans = []
    for first in places[0]:
        near = [min(others, key=lambda at: abs(at - first)) for others in places]
        spans.append((min(near), max(near) + 1))
    return min(spans, key=lambda span: span[1] - span[0])
