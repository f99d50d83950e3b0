"""Enumerations: detect answers that hedge, with a gold among alternatives or in a list of other things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pytest_kbrel.judges.matching.claims import LEADING
from pytest_kbrel.judges.matching.parsing import Answer, Question, singular
from pytest_kbrel.judges.text.lexicon import (
    FRAMES,
    FUNCTION,
    NATIONS,
    NEGATIONS,
    PARTICLES,
    PERSONS,
    REGIONS,
    RELATIONS,
    SUFFIXES,
)
from pytest_kbrel.judges.text.tokens import read_words

Span = tuple[int, int]
# The places of an item, and whether "and" ties it to the others.
Item = tuple[range, bool]
_NEAR = 6
_LIST = 3
_OTHERS = 2
_ITEM = 5
_TRADES = ("occupation", "profession", "job", "career", "living")
_OF_UK = ("england", "scotland", "wales", "northern ireland")
_STROKES = re.compile(r"[/|]")


def is_trade(word: str) -> bool:
    """Return True if a word is an occupation: "a French biologist" is a biologist."""
    return word in PERSONS or word.endswith(("ist", "ian", "or", "man"))


def is_one_of_several(answer: Answer, span: Span, question: Question, spans: Sequence[Span]) -> bool:
    """Return True if the answer hedges between what stands at ``span`` and other things.

    ``spans`` are the places of all golds: an answer may name several golds, not a gold among other things.
    """
    start, end = span
    words, breaks = answer.words, answer.breaks
    begin = start
    while begin > 0 and breaks[begin] != ".":
        begin -= 1
    right = end
    while right < len(words) and breaks[right] != ".":
        right += 1
    if not question.has("or"):
        for index in range(max(begin, start - _NEAR), min(right, end + _NEAR)):
            if (
                words[index] == "or"
                and not (start <= index < end)
                and not _is_or_of_other(answer, span, index)
            ):
                sides = any(stop == index for _, stop in spans) and any(at == index + 1 for at, _ in spans)
                if not sides:
                    return True
    if _is_labelled(answer, span, begin) and right == end:
        return False
    if _are_asked_for(answer, span, question, spans):
        return False
    if answer.bare and _in_list(answer, span, question, spans):
        return True
    # People have several trades.
    if question.has(*_TRADES):
        return False
    return _said_again(answer, span, (begin, right), question, spans) or _among_others(
        answer, span, question, spans
    )


def _are_asked_for(answer: Answer, span: Span, question: Question, spans: Sequence[Span]) -> bool:
    """Return True if several things are asked for, and most of those listed are golds."""
    number = question.several
    if not number:
        return False
    held = _held(spans)
    golds = len({answer.words[slice(*other)] for other in spans})
    others = len(_behind(answer, span, held)) + len(_ahead(answer, span, held))
    return golds > max(1, others) and golds + others <= number


def _is_or_of_other(answer: Answer, span: Span, index: int) -> bool:
    """Return True if an "or" ties other things: "also known as X or Y", "the X or Y cycle is ..."."""
    words = answer.words
    if span[1] < index:
        between = words[span[1] : index]
        return ("known", "as") in pairwise(between)
    before = words[index - 1] if index else ""
    return index + 1 < span[0] and bool(before) and not answer.fresh[index - 1] and before not in FUNCTION


def _said_again(
    answer: Answer, span: Span, sentence: Span, question: Question, spans: Sequence[Span]
) -> bool:
    """Return True if another sentence says the same of another thing: "It is Paris. It is Lyon."

    ``sentence`` is the place of the one around ``span``. Both must begin alike up to the thing, or end alike.
    """
    words, held = answer.words, _held(spans)
    if not answer.cased or not any(answer.cases[index] for index in range(*span)):
        return False
    before, behind = words[sentence[0] : span[0]], words[span[1] : sentence[1]]
    own = set(words[span[0] : span[1]])
    for start, stop in _sentences(answer):
        if (start, stop) == sentence:
            continue
        item = range(0)
        if before and words[start : start + len(before)] == before:
            first = start + len(before)
            end = next((at for at in range(first, stop) if at > first and answer.breaks[at]), stop)
            item = range(first, end)
        elif not before and behind and words[stop - len(behind) : stop] == behind:
            item = range(start, stop - len(behind))
        named = words[item.start : item.stop]
        # A longer or shorter name of the same, where it lies, or of which nation somebody is.
        same = not own.isdisjoint(named) or bool(_level(named)) or " ".join(named) in NATIONS
        if same or not item or not held.isdisjoint(item) or (question.asks_person and len(item) < len(own)):
            continue
        if _is_item(answer, item, span):
            return True
    return False


def _sentences(answer: Answer) -> list[Span]:
    starts = [index for index in range(len(answer.words)) if not index or answer.breaks[index] == "."]
    return list(zip(starts, [*starts[1:], len(answer.words)], strict=True))


def _in_list(answer: Answer, span: Span, question: Question, spans: Sequence[Span]) -> bool:
    """A phrase that lists things: all must be golds where "and" or "/" joins them, the first where commas do.

    Behind a first one may stand where it lies, or what it is in small letters.
    """
    words, breaks = answer.words, answer.breaks
    held = _held(spans)
    items: list[list[int]] = [[]]
    joined = False
    for index, word in enumerate(words):
        conjunction = word in ("and", "or") and index not in held
        joined = joined or conjunction
        if conjunction or (
            breaks[index] in (",", ".") and index and not (index in held and index - 1 in held)
        ):
            items.append([])
        if not conjunction:
            items[-1].append(index)
        # "Paris. Lyon." hedges; a qualifier stands behind a comma.
        joined = joined or (breaks[index] == "." and index > 0 and answer.fresh[index])
    # "I think" and what the question says already are no items.
    fresh = {index for index, word in enumerate(words) if answer.fresh[index] and word not in FUNCTION}
    stated = held | fresh
    items = [item for item in items if not stated.isdisjoint(item) and not _is_no_thing(answer, item, held)]
    if len(items) < 2:
        return False
    if all(any(index in held for index in item) for item in items):
        return False
    if joined or _STROKES.search(answer.text):
        return True
    own = next(number for number, item in enumerate(items) if span[0] in item)
    if own == 0:
        if len(items) > (1 if question.asks_work else _LIST):
            return True
        last = _without_function(answer, items[-1])
        located = is_region(last) or (question.asks_place and len(items) < _LIST)
        if located:
            return False
        return any(held.isdisjoint(item) and _is_item(answer, item, span) for item in items[1:])
    # "Lyon, France" says where Lyon is, "Germany, France" hedges.
    named_last = " ".join(words[span[0] : span[1]])
    before = " ".join(words[item] for item in items[own - 1])
    region = NATIONS.get(named_last) == named_last or named_last in REGIONS
    within = (before not in NATIONS and before not in REGIONS) or (named_last == "uk" and before in _OF_UK)
    return not (region and within and len(items) <= _LIST)


def _is_no_thing(answer: Answer, item: Sequence[int], held: set[int]) -> bool:
    """Return True if words are denied ("not Lyon"), name who speaks ("as I know") or number a list."""
    words = [answer.words[index] for index in item]
    if not held.isdisjoint(item):
        return False
    if words[0] in NEGATIONS or "i" in words or "know" in words:
        return True
    if item[-1] < _label_end(answer) or LEADING.issuperset(words):
        return True
    return item[0] == 0 and len(words) == 1 and words[0].isdigit() and answer.breaks[1] == "."


def _label_end(answer: Answer) -> int:
    """Return how many words a label has that takes up the question: 3 in "Author of Hamlet: Shakespeare"."""
    label, colon, rest = answer.text.partition(":")
    size = len(read_words(label).words) if colon and rest.strip() else 0
    taken = any(not answer.fresh[at] and answer.words[at] not in FUNCTION for at in range(size))
    return size if taken and "." not in answer.breaks[1:size] else 0


def _is_labelled(answer: Answer, span: Span, begin: int) -> bool:
    """Return True if a line says by words of the question what it gives: "Capital: Paris"."""
    label = range(begin, span[0])
    return (
        answer.breaks[span[0]] == ","
        and all(not answer.fresh[index] or answer.words[index] in FUNCTION for index in label)
        and any(answer.words[index] not in FUNCTION for index in label)
    )


def _held(spans: Sequence[Span]) -> set[int]:
    return {index for start, end in spans for index in range(start, end)}


def _without_function(answer: Answer, item: Sequence[int]) -> str:
    return " ".join(answer.words[index] for index in item if answer.words[index] not in FUNCTION)


def is_region(words: str) -> bool:
    """Return True if words are a nation's or a region's own name, not what its people are called."""
    return NATIONS.get(words) == words or words in REGIONS


def _is_item(answer: Answer, item: Sequence[int], span: Span) -> bool:
    """Return True if words name another thing of the kind that stands at ``span`` and do not describe it."""
    words = [answer.words[index] for index in item]
    content = [index for index in item if answer.words[index] not in FUNCTION]
    if not content or len(item) > _ITEM or any(word[0].isdigit() for word in words):
        return False
    if not any(answer.fresh[index] for index in content) or SUFFIXES.issuperset(words):
        return False
    if answer.cased and any(answer.cases[index] for index in range(*span)):
        return all(answer.cases[index] or answer.words[index] in PARTICLES for index in item)
    # "A mammal", "the largest city": nobody names a trade of many by one alone.
    if span[1] - span[0] == 1 and is_trade(answer.words[span[0]]):
        return False
    return len(item) <= span[1] - span[0] + 1 and len(content) == len(item)


def _among_others(answer: Answer, span: Span, question: Question, spans: Sequence[Span]) -> bool:
    """Return True if a sentence lists what stands at ``span`` with others: "It is Rome, Paris, Oslo".

    The list is what stands around it up to a word that frames or describes. One other thing behind a comma
    may say where it lies or what it also is.
    """
    words, held = answer.words, _held(spans)
    behind, ahead = _behind(answer, span, held), _ahead(answer, span, held)
    counted = _beyond_address(answer, span, behind, ahead)
    others, joined = len(counted), any(conjunction for _, conjunction in counted)
    index = ahead[-1][0].start if ahead else span[0]
    # "One of Paris, Lyon"
    chosen = others > 0 and words[max(0, index - 2) : index] in (("1", "of"), ("either", "of"))
    # Of parents there are two.
    two = any(word != singular(word) and singular(word) in RELATIONS for word in question.words)
    if (two or question.has("and", "children")) and others < _OTHERS:
        return chosen
    return others >= _OTHERS or joined or chosen


def _behind(answer: Answer, span: Span, held: set[int]) -> list[Item]:
    words, index = answer.words, span[1]
    items: list[Item] = []
    while index < len(words):
        conjunction = words[index] == "and"
        if not (conjunction or answer.breaks[index] in (",", ".")):
            break
        # "Rome, and Oslo"
        index = stop = index + conjunction
        while stop < len(words) and not (stop > index and answer.breaks[stop]):
            if _ends_item(answer, stop, held):
                break
            stop += 1
        # "Paris, Rome says": a clause of its own.
        clause = stop < len(words) and not answer.breaks[stop] and words[stop] in FRAMES
        item = range(index, stop)
        if clause or not item or not (held.issuperset(item) or _is_item(answer, item, span)):
            break
        if not held.issuperset(item):
            items.append((item, conjunction))
        index = stop
    return items


def _ahead(answer: Answer, span: Span, held: set[int]) -> list[Item]:
    words, index = answer.words, span[0]
    items: list[Item] = []
    while index > 0:
        conjunction = words[index - 1] == "and" and index - 1 not in held
        if not (conjunction or answer.breaks[index] in (",", ".")):
            break
        start = stop = index - conjunction
        while start > 0 and not (start < stop and answer.breaks[start]):
            if _ends_item(answer, start - 1, held):
                break
            start -= 1
        item = range(start, stop)
        if not item or not (held.issuperset(item) or _is_item(answer, item, span)):
            break
        if not held.issuperset(item):
            items.append((item, conjunction))
        index = start
    return items


def _beyond_address(answer: Answer, span: Span, behind: list[Item], ahead: list[Item]) -> list[Item]:
    """Return the items that do not say where a place lies.

    Behind a place one region and one nation may stand, before a region or nation the places in it.
    """
    own = _level(answer.words[slice(*span)])
    seen = {own}
    items: list[Item] = []
    for item, conjunction in behind:
        level = _level(answer.words[item.start : item.stop])
        if conjunction or not level or level in seen or own == "nation":
            items.append((item, conjunction))
        seen.add(level)
    levels = [_level(answer.words[item.start : item.stop]) for item, _ in ahead]
    most = _LIST if "region" in levels else _OTHERS
    if not own or own in levels or len(ahead) > most or any(conjunction for _, conjunction in ahead):
        items += ahead
    return items


def _level(words: Sequence[str]) -> str:
    name = " ".join(words)
    return "nation" if NATIONS.get(name) == name else "region" if name in REGIONS else ""


def _ends_item(answer: Answer, index: int, held: set[int]) -> bool:
    word = answer.words[index]
    if index in held:
        return False
    # "One of Rome, Paris", not "City of Light"
    if word == "of" and not (index and answer.cases[index - 1]):
        return True
    # "The Bahamas"
    return word in FRAMES or (word in FUNCTION and word not in PARTICLES and word != "the")
