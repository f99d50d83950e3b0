"""Rule-based judge: is an answer correct, wrong or uninformative? ``docs/judging.md`` explains each rule."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from pytest_kbrel.judges.abstention import read_abstention, uninformative_kind
from pytest_kbrel.judges.dates import Date, dates_in
from pytest_kbrel.judges.words import (
    COUNTED,
    FILLER,
    Text,
    data,
    read_words,
    strip_wrapping,
    word_set,
)
from pytest_kbrel.records import Label, base_language, record

_UNITS, _NAMING = word_set("units"), word_set("naming")
_MARKS = re.compile(r"[,;:.!?()/|\n]")
_WORD = r"[^\s,;:.!?()/|¤¥]+"
_ASCII = str.maketrans("。、؛،।", ".,;,.")
# Python's own \\w leaves out the vowel signs of Devanagari.
_UNSTATED = tuple(
    (
        read_words(signs).known | set(signs.split()),
        re.compile(pattern.replace(r"\w+", _WORD), re.IGNORECASE | re.DOTALL),
    )
    for signs, pattern in data("words")["unstated"].items()
)
# Countries by their own names and by the words for their people.
_NATIONS = {
    read_words(word).words[0]: row.split()[0]
    for row in data("words")["nations"]
    for word in row.split()
}
_ASIDE = re.compile(r"\s*\([^)]*\)")
# Letters of an accepted answer that may be parted otherwise, and of one that may be part of a word.
_JOINED, _LONG = 6, 10


class Gold(NamedTuple):
    """An accepted answer as it is compared, and its date where it is one."""

    text: Text
    date: Date | None


@lru_cache(maxsize=16384)
def read_gold(gold: str, language: str) -> Gold:
    """Read an accepted answer; what stands in parentheses is left out."""
    text = read_words(_ASIDE.sub("", gold).strip() or gold, language)
    hits, rest = dates_in(text.words), text.known
    for item in hits:
        rest = rest.difference(text.words[item.start : item.end])
    is_date = len(hits) == 1 and rest <= FILLER
    return Gold(text, hits[0].date if is_date else None)


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
    content, known = answer.content, gold.text.content
    echoes, places = (list(_places(text, words)) for text in (question, answer))
    if len(places) <= len(echoes) and echoes and "or" not in question.known:
        return "equal" if content == known else ""
    for start, end in places:
        if (
            (not is_code or answer.capitals[start] == 2)
            and _is_stated(answer, start, end)
            and not _is_of_longer_name(answer.words, start, words, language)
        ):
            return "contained"
    if places:
        return ""
    new = [word for word in content if word not in question.known]
    if any(map(str.isalpha, new)) and sorted(content) == sorted(known):
        return "same words"
    nation = len(words) == 1 and _NATIONS.get(words[0])
    given, asked = (map(_NATIONS.get, text) for text in (content, question.words))
    if nation and nation in given and nation not in asked:
        return "nation"
    if new and content == known[:1] and _UNITS.issuperset(known[1:]):
        return "number"
    place = _joined_place(answer.words, "".join(words))
    if place and _is_stated(answer, *place):
        return "joined"
    return _part_of_name(answer, gold, question)


def is_whole(answer: Text, gold: Gold) -> bool:
    """Return True if all of an answer is another writing of an accepted one."""
    if gold.date:
        return dates_in(answer.words) == [(gold.date, 0, len(answer.words))]
    if not answer.content or FILLER & (answer.known - gold.text.known):
        return False
    rest = _part_of_name(answer, gold, read_words(""))
    return bool(rest) or sorted(answer.content) == sorted(gold.text.content)


def _places(text: Text, part: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where ``part`` begins and ends in a text."""
    if part and text.known.issuperset(part):
        for start, word in enumerate(text.words):
            end = start + len(part)
            if word == part[0] and text.words[start:end] == part:
                yield start, end


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
    marks = "".join(text.gaps).translate(_ASCII) + text.words[-1]
    patterns = [
        pattern
        for signs, pattern in _UNSTATED
        if not (signs.isdisjoint(text.known) and signs.isdisjoint(marks))
    ]
    if not patterns:
        return True
    before, said, behind = (
        _written(text, *span) for span in ((0, start), (start, end), (end, None))
    )
    own = said.strip(" ,;:.!?()/|\n")
    sentence = f"{before} {said.replace(own, '¤')} {behind.replace(own, '¥')}"
    return not any(pattern.search(sentence) for pattern in patterns)


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


def _part_of_name(answer: Text, gold: Gold, question: Text) -> str:
    """Return the rule by which a part of a name, or its words in another order, say enough."""
    words, content = answer.words, answer.content
    own, asked = gold.text.content, question.known
    comma = next((i for i, gap in enumerate(gold.text.gaps) if i and "," in gap), 0)
    if comma and words == gold.text.words[:comma]:
        return "before comma"
    # "Shakespeare" and "W. Shakespeare" are William Shakespeare.
    pairs = zip(content[::-1], own[::-1], strict=False)
    ends = 0 < len(content) <= len(own) <= 4 and all(
        one in (two, two[0]) for one, two in pairs
    )
    named = any(gold.text.capitals) and _NAMING.isdisjoint(own)
    named = named and not asked.issuperset(content)
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
        for place in _places(answer, (own[0], own[2])):
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


@record
class Judged:
    """Label of an answer and the rule that decided: ``equal``, ``date``, ``contained``, ``unsure``, ..."""

    label: Label
    rule: str


def judge(
    answer: str,
    accepted: Sequence[str],
    question: str = "",
    *,
    extra: Sequence[tuple[str, str]] = (),
    language: str = "",
    within: tuple[float, float] | None = None,
) -> Judged:
    """Judge one answer and name the rule that decided.

    What models write around an answer is stripped first. Equality with any of ``accepted`` comes first, then
    uninformative (Reliable KB, section 3.3), then the rules for other ways of stating an accepted answer
    (Head-to-Tail, section 2.2), else wrong. The paper lists uninformative first; but an answer that equals the
    gold is no way of saying nothing, be it "None". With nothing accepted
    (unseen knowledge) every informative answer is wrong. ``extra`` are the user's own rules for uninformative
    answers: (kind, regular expression). ``language`` is what question and answers are in ("de", "pt-BR";
    nothing stated is English). ``within`` is the range of numbers or years that are right, in the unit of the
    first of ``accepted``: where the answer has a number, it alone decides (rule ``range``).
    """
    answer = strip_wrapping(answer)
    text = read_words(answer, language)
    golds = [read_gold(gold, language) for gold in accepted]
    if text.words and any(text.words == gold.text.words for gold in golds):
        return Judged(label="correct", rule="equal")
    kind = uninformative_kind(
        answer, question, extra, language=language, unanswerable=not accepted
    )
    states = (
        kind == "unsure" and read_abstention(answer, base_language(language)).states
    )
    if kind and not (accepted and states):
        return Judged(label="uninformative", rule=kind)
    label: Label
    if within is not None and (number := first_number(answer, language)) is not None:
        label = "correct" if within[0] <= number <= within[1] else "wrong"
        return Judged(label=label, rule="range")
    asked = read_words(question, language)
    for gold in without_coarser_dates(golds):
        if rule := find_rule(text, gold, asked, language):
            return Judged(label="correct", rule=rule)
    label = "uninformative" if kind else "wrong"
    return Judged(label=label, rule=kind or "no rule")


def first_number(answer: str, language: str) -> float | None:
    """Return the first year or number of an answer, ``None`` where it has none."""
    words = read_words(answer, language).words
    if dates := dates_in(words):
        return dates[0].date.year
    return next(map(float, filter(COUNTED.fullmatch, words)), None)


def is_variant(answer: str, accepted: Sequence[str], *, language: str = "") -> bool:
    """Return True if all of ``answer`` is a variant of one of ``accepted``; a sentence with one in it is not.

    Head-to-Tail (arXiv 2308.10168, section 2.2) adds such variants to the accepted answers by hand before it
    scores how alike they are: "W Shakespeare" is as good as "William Shakespeare".
    """
    text = read_words(answer, language)
    return any(is_whole(text, read_gold(gold, language)) for gold in accepted)
