"""Enumerations: detect answers that hedge, with a gold among alternatives or in a list of other things."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from pytest_kbrel.judges.matching.parsing import (
    Answer,
    Question,
    Span,
    indices_of,
    singular,
)
from pytest_kbrel.judges.text.lexicon import (
    FRAMES,
    FUNCTION,
    NATIONS,
    NEGATIONS,
    OPENERS,
    PARTICLES,
    PERSONS,
    REGIONS,
    RELATIONS,
    SUFFIXES,
)
from pytest_kbrel.judges.text.tokens import read_words

# Indices of an item, and whether "and" ties it to the others.
_Item = tuple[range, bool]
_NEAR = 6
_LIST = 3
_OTHERS = 2
_LONGEST_ITEM = 5
_TRADES = ("occupation", "profession", "job", "career", "living")
_OF_UK = ("england", "scotland", "wales", "northern ireland")
_STROKES = re.compile(r"[/|]")


def is_trade(word: str) -> bool:
    """Return True if a word is an occupation: "a French biologist" is a biologist."""
    return word in PERSONS or word.endswith(("ist", "ian", "or", "man"))


def is_region(name: str) -> bool:
    """Return True if words are a nation's or a region's own name, not what its people are called."""
    return NATIONS.get(name) == name or name in REGIONS


def is_one_of_several(
    answer: Answer, span: Span, question: Question, spans: Sequence[Span]
) -> bool:
    """Return True if the answer hedges between what stands at ``span`` and other things.

    ``spans`` are those of all golds: an answer may name several golds, not a gold among other things.
    """
    start, end = span
    begin, stop = answer.last_break(start, "."), answer.next_break(end, ".")
    held = indices_of(spans)
    if not question.has("or"):
        for index in range(max(begin, start - _NEAR), min(stop, end + _NEAR)):
            if (
                answer.words[index] != "or"
                or start <= index < end
                or _is_or_of_other(answer, span, index)
            ):
                continue
            if not (
                any(last == index for _, last in spans)
                and any(at == index + 1 for at, _ in spans)
            ):
                return True
    if end == stop and _is_labelled(answer, begin, start):
        return False
    behind, ahead = _behind(answer, span, held), _ahead(answer, span, held)
    if question.several:
        golds, others = (
            len({answer.words[slice(*other)] for other in spans}),
            len(behind) + len(ahead),
        )
        if golds > max(1, others) and golds + others <= question.several:
            return False
    if answer.bare and _in_list(answer, span, question, held):
        return True
    # People have several trades.
    if question.has(*_TRADES):
        return False
    return _is_said_of_another(
        answer, span, (begin, stop), question, held
    ) or _is_among_others(answer, span, question, behind, ahead)


def _is_or_of_other(answer: Answer, span: Span, index: int) -> bool:
    """Return True if an "or" ties other things: "also known as X or Y", "the X or Y cycle is ..."."""
    words = answer.words
    if span[1] < index:
        return ("known", "as") in pairwise(words[span[1] : index])
    return (
        0 < index < span[0] - 1
        and not answer.fresh[index - 1]
        and words[index - 1] not in FUNCTION
    )


def _is_labelled(answer: Answer, begin: int, start: int) -> bool:
    """Return True if a line says by words of the question what it gives: "Capital: Paris"."""
    content = [
        index for index in range(begin, start) if answer.words[index] not in FUNCTION
    ]
    return (
        answer.breaks[start] == ","
        and content != []
        and not any(answer.fresh[at] for at in content)
    )


def _is_said_of_another(
    answer: Answer, span: Span, sentence: Span, question: Question, held: set[int]
) -> bool:
    """Return True if another sentence says the same of another thing: "It is Paris. It is Lyon."

    ``sentence`` is the one around ``span``. Both must begin alike up to the thing, or end alike.
    """
    words = answer.words
    if not answer.cased or not any(answer.cases[slice(*span)]):
        return False
    before, behind = words[sentence[0] : span[0]], words[span[1] : sentence[1]]
    own = set(words[slice(*span)])
    starts = [index for index in range(1, len(words)) if answer.breaks[index] == "."]
    for start, stop in pairwise((0, *starts, len(words))):
        item = range(0)
        if (start, stop) == sentence:
            continue
        if before and words[start : start + len(before)] == before:
            first = start + len(before)
            item = range(first, min(answer.next_break(first + 1), stop))
        elif not before and behind and words[stop - len(behind) : stop] == behind:
            item = range(start, stop - len(behind))
        named = words[item.start : item.stop]
        # A longer or shorter name of the same, where it lies, or of which nation somebody is.
        same = (
            not own.isdisjoint(named)
            or bool(_level(named))
            or " ".join(named) in NATIONS
        )
        if (
            same
            or not item
            or not held.isdisjoint(item)
            or (question.asks_person and len(item) < len(own))
        ):
            continue
        if _is_item(answer, item, span):
            return True
    return False


def _in_list(answer: Answer, span: Span, question: Question, held: set[int]) -> bool:
    """Return True if a phrase lists things, and not all are golds, or the first where only commas join them.

    Behind a first one may stand where it lies, or what it is in small letters.
    """
    words, breaks = answer.words, answer.breaks
    items: list[list[int]] = [[]]
    joined = False
    for index, word in enumerate(words):
        conjunction = word in ("and", "or") and index not in held
        parted = (
            index
            and breaks[index] in (",", ".")
            and not held.issuperset((index - 1, index))
        )
        if conjunction or parted:
            items.append([])
        if not conjunction:
            items[-1].append(index)
        # "Paris. Lyon." hedges; a qualifier stands behind a comma.
        joined = (
            joined
            or conjunction
            or (breaks[index] == "." and index > 0 and answer.fresh[index])
        )
    # "I think" and what the question says already are no items.
    stated = held | {
        index
        for index, word in enumerate(words)
        if answer.fresh[index] and word not in FUNCTION
    }
    items = [
        item
        for item in items
        if not stated.isdisjoint(item) and not _is_no_thing(answer, item, held)
    ]
    if len(items) < 2 or not any(held.isdisjoint(item) for item in items):
        return False
    if joined or _STROKES.search(answer.text):
        return True
    own = next(number for number, item in enumerate(items) if span[0] in item)
    if own == 0:
        if len(items) > (1 if question.asks_work else _LIST):
            return True
        last = " ".join(
            words[index] for index in items[-1] if words[index] not in FUNCTION
        )
        if is_region(last) or (question.asks_place and len(items) < _LIST):
            return False
        return any(
            held.isdisjoint(item) and _is_item(answer, item, span) for item in items[1:]
        )
    # "Lyon, France" says where Lyon is, "Germany, France" hedges.
    named_last = " ".join(words[slice(*span)])
    before = " ".join(words[item] for item in items[own - 1])
    within = (before not in NATIONS and before not in REGIONS) or (
        named_last == "uk" and before in _OF_UK
    )
    return not (is_region(named_last) and within and len(items) <= _LIST)


def _is_no_thing(answer: Answer, item: Sequence[int], held: set[int]) -> bool:
    """Return True if words are denied ("not Lyon"), name who speaks ("as I know") or number a list."""
    words = [answer.words[index] for index in item]
    if not held.isdisjoint(item):
        return False
    if words[0] in NEGATIONS or "i" in words or "know" in words:
        return True
    if item[-1] < _label_end(answer) or OPENERS.issuperset(words):
        return True
    return (
        item[0] == 0
        and len(words) == 1
        and words[0].isdigit()
        and answer.breaks[1] == "."
    )


def _label_end(answer: Answer) -> int:
    """Return how many words a label has that takes up the question: 3 in "Author of Hamlet: Shakespeare"."""
    label, colon, rest = answer.text.partition(":")
    size = len(read_words(label).words) if colon and rest.strip() else 0
    taken = any(
        not answer.fresh[at] and answer.words[at] not in FUNCTION for at in range(size)
    )
    return size if taken and "." not in answer.breaks[1:size] else 0


def _is_item(answer: Answer, item: Sequence[int], span: Span) -> bool:
    """Return True if words name another thing of the kind that stands at ``span`` and do not describe it."""
    words = [answer.words[index] for index in item]
    content = [index for index in item if answer.words[index] not in FUNCTION]
    if len(item) > _LONGEST_ITEM or any(word[0].isdigit() for word in words):
        return False
    if not any(answer.fresh[index] for index in content) or SUFFIXES.issuperset(words):
        return False
    if answer.cased and any(answer.cases[slice(*span)]):
        return all(
            answer.cases[index] or answer.words[index] in PARTICLES for index in item
        )
    # "A mammal", "the largest city": nobody names a trade of many by one alone.
    if span[1] - span[0] == 1 and is_trade(answer.words[span[0]]):
        return False
    return len(item) <= span[1] - span[0] + 1 and len(content) == len(item)


def _is_among_others(
    answer: Answer,
    span: Span,
    question: Question,
    behind: list[_Item],
    ahead: list[_Item],
) -> bool:
    """Return True if a sentence lists what stands at ``span`` with others: "It is Rome, Paris, Oslo".

    The list is what stands around it up to a word that frames or describes. One other thing behind a comma
    may say where it lies or what it also is.
    """
    counted = _beyond_address(answer, span, behind, ahead)
    index = ahead[-1][0].start if ahead else span[0]
    # "One of Paris, Lyon"
    chosen = bool(counted) and answer.words[max(0, index - 2) : index] in (
        ("1", "of"),
        ("either", "of"),
    )
    # Of parents there are two.
    two = any(
        word != singular(word) and singular(word) in RELATIONS
        for word in question.words
    )
    if (two or question.has("and", "children")) and len(counted) < _OTHERS:
        return chosen
    return (
        len(counted) >= _OTHERS
        or any(conjunction for _, conjunction in counted)
        or chosen
    )


def _behind(answer: Answer, span: Span, held: set[int]) -> list[_Item]:
    words, index = answer.words, span[1]
    items: list[_Item] = []
    while index < len(words):
        conjunction = words[index] == "and"
        if not (conjunction or answer.breaks[index] in (",", ".")):
            break
        # "Rome, and Oslo"
        start = stop = index + conjunction
        while stop < len(words) and (stop == start or not answer.breaks[stop]):
            if _ends_item(answer, stop, held):
                break
            stop += 1
        # "Paris, Rome says": a clause of its own.
        clause = not answer.ends(stop) and words[stop] in FRAMES
        item = range(start, stop)
        if (
            clause
            or not item
            or not (held.issuperset(item) or _is_item(answer, item, span))
        ):
            break
        if not held.issuperset(item):
            items.append((item, conjunction))
        index = stop
    return items


def _ahead(answer: Answer, span: Span, held: set[int]) -> list[_Item]:
    words, index = answer.words, span[0]
    items: list[_Item] = []
    while index > 0:
        conjunction = words[index - 1] == "and" and index - 1 not in held
        if not (conjunction or answer.breaks[index] in (",", ".")):
            break
        start = stop = index - conjunction
        while start > 0 and (start == stop or not answer.breaks[start]):
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


def _beyond_address(
    answer: Answer, span: Span, behind: list[_Item], ahead: list[_Item]
) -> list[_Item]:
    """Return the items that do not say where a place lies.

    Behind a place one region and one nation may stand, before a region or nation the places in it.
    """
    own = _level(answer.words[slice(*span)])
    seen = {own}
    items: list[_Item] = []
    for item, conjunction in behind:
        level = _level(answer.words[item.start : item.stop])
        if conjunction or not level or level in seen or own == "nation":
            items.append((item, conjunction))
        seen.add(level)
    levels = [_level(answer.words[item.start : item.stop]) for item, _ in ahead]
    most = _LIST if "region" in levels else _OTHERS
    if (
        not own
        or own in levels
        or len(ahead) > most
        or any(conjunction for _, conjunction in ahead)
    ):
        items += ahead
    return items


def _level(words: Sequence[str]) -> str:
    name = " ".join(words)
    return (
        "nation" if NATIONS.get(name) == name else "region" if name in REGIONS else ""
    )


def _ends_item(answer: Answer, index: int, held: set[int]) -> bool:
    word = answer.words[index]
    if index in held:
        return False
    # "One of Rome, Paris", not "City of Light"
    if word == "of" and not (index and answer.cases[index - 1]):
        return True
    # "The Bahamas"
    return word in FRAMES or (
        word in FUNCTION and word not in PARTICLES and word != "the"
    )
