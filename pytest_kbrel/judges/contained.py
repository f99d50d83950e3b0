"""A gold inside a longer answer, and what forbids to count it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_kbrel.judges.nations import NATIONAL, NATIONS
from pytest_kbrel.judges.reading import Answer, Gold, Question
from pytest_kbrel.judges.tokens import STARTS, UPPER
from pytest_kbrel.judges.words import (
    BESIDE,
    DISTINGUISHING,
    FUNCTION,
    NEGATING_PAIRS,
    NEGATIONS,
    PARTICLES,
    PERSONS,
    PLACES,
    REGIONS,
    TITLES,
)

_NO_DENIAL = frozenset({"doubt", "only", "other"})
_NEAR = 6
_LIST = 3
_PHRASE = 4


def places(words: Sequence[str], sought: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield (start, end) wherever ``sought`` stands in ``words`` as whole words."""
    size = len(sought)
    if not size:
        return
    first = sought[0]
    for start in range(len(words) - size + 1):
        if words[start] == first and tuple(words[start : start + size]) == tuple(sought):
            yield start, start + size


def findable(answer: Answer, gold: Gold, start: int) -> bool:
    """Tell whether a gold can be found at a place: "IN" (India) is not the word "in"."""
    word = gold.words[0]
    if len(gold.words) > 1:
        return not FUNCTION.issuperset(gold.words)
    if word in FUNCTION:
        return False
    return len(word) > 2 or not word.isalpha() or answer.cases[start] == UPPER or len(answer.words) == 1


def is_negated(answer: Answer, span: tuple[int, int], question: Question) -> bool:
    """Tell whether the clause takes back what stands at ``span``."""
    start, end = span
    words, breaks = answer.words, answer.breaks
    first = start
    while first > 0 and not breaks[first] and words[first - 1] != "but":
        first -= 1
    if not question.has(*NEGATIONS):
        for place in range(first, start):
            after = words[place + 1]
            # "No. 5" is a number, "no doubt" the contrary of a denial.
            numbered = words[place] == "no" and after[0].isdigit()
            if words[place] in NEGATIONS and after not in _NO_DENIAL and not numbered:
                return True
        stop = end
        while stop < min(len(words), end + 3) and not breaks[stop]:
            if words[stop] in ("not", "never"):
                return True
            stop += 1
    return any(
        pair in NEGATING_PAIRS for pair in zip(words[first:start], words[first + 1 : start], strict=False)
    )


def is_beside(answer: Answer, span: tuple[int, int], question: Question) -> bool:
    """Tell whether a word before it puts it beside the answer ("..., featuring X")."""
    before = answer.words[max(0, span[0] - 2) : span[0]]
    return any(word in BESIDE and not question.has(word) for word in before)


def is_one_of_several(
    answer: Answer, span: tuple[int, int], question: Question, spans: Sequence[tuple[int, int]]
) -> bool:
    """Tell whether the answer hedges between what stands at ``span`` and other things.

    ``spans`` are the places of all golds: an answer may name several golds, not a gold among other things.
    """
    start, end = span
    words, breaks = answer.words, answer.breaks
    left = start
    while left > 0 and breaks[left] != ".":
        left -= 1
    right = end
    while right < len(words) and breaks[right] != ".":
        right += 1
    if not question.has("or"):
        for place in range(max(left, start - _NEAR), min(right, end + _NEAR)):
            if words[place] == "or" and not (start <= place < end):
                sides = any(stop == place for _, stop in spans) and any(at == place + 1 for at, _ in spans)
                if not sides:
                    return True
    return answer.bare and _in_list(answer, span, spans, 1 if question.asks_work else _LIST)


def _in_list(answer: Answer, span: tuple[int, int], spans: Sequence[tuple[int, int]], most: int) -> bool:
    """A phrase that lists things: all must be golds where "and" joins them, the first where commas do.

    Behind a first one may stand where it lies, ``most`` items in all; behind a film there stands another.
    """
    words, breaks = answer.words, answer.breaks
    held = {place for start, end in spans for place in range(start, end)}
    items: list[list[int]] = [[]]
    joined = False
    for place, word in enumerate(words):
        conjunction = word in ("and", "or") and place not in held
        joined = joined or conjunction
        if conjunction or (
            breaks[place] in (",", ".") and place and not (place in held and place - 1 in held)
        ):
            items.append([])
        if not conjunction:
            items[-1].append(place)
        # "Paris. Lyon." hedges; a qualifier stands behind a comma.
        joined = joined or (breaks[place] == "." and place > 0 and answer.fresh[place])
    # "I think" and what the question says already are no items.
    said = held | {place for place, word in enumerate(words) if answer.fresh[place] and word not in FUNCTION}
    items = [item for item in items if not said.isdisjoint(item)]
    if len(items) < 2:
        return False
    golden = [any(place in held for place in item) for item in items]
    if all(golden):
        return False
    if joined:
        return True
    own = next(number for number, item in enumerate(items) if span[0] in item)
    if own == 0:
        return len(items) > most
    # "Lyon, France" says where Lyon is, "Germany, France" hedges.
    named = " ".join(words[span[0] : span[1]])
    before = " ".join(words[item] for item in items[own - 1])
    region = NATIONS.get(named) == named or named in REGIONS
    return not (region and before not in NATIONS and before not in REGIONS and len(items) <= most)


def is_other_name(answer: Answer, span: tuple[int, int], gold: Gold) -> bool:
    """Tell whether the words around make it another's name: "Paris Hilton", "West Virginia", "Apollo 11"."""
    start, end = span
    words, breaks, size = answer.words, answer.breaks, len(answer.words)
    if start and not breaks[start]:
        before = words[start - 1]
        if before in DISTINGUISHING and answer.fresh[start - 1]:
            return True
        # "American ash" is another tree than "ash"; a longer name or a trade is the same in every nation.
        nation = before in NATIONAL and (len(gold.words) > 1 or _is_trade(gold.words[0]))
        # "West African" is no nation.
        nation = nation and not (start > 1 and words[start - 2] in DISTINGUISHING and not breaks[start - 1])
        harmless = before in TITLES or nation
        if not harmless and _extends(answer, start - 1, gold):
            return True
    if len(gold.words) == 1 and (_is_before(answer, start) or _is_behind(answer, end)):
        return True
    if end < size and not breaks[end]:
        after = words[end]
        if after[0].isdigit() and answer.fresh[end] and len(after) < 4 and gold.is_name:
            return True
        return _extends(answer, end, gold)
    return False


def _is_trade(word: str) -> bool:
    """Tell whether a word is what somebody is by trade: "a French biologist" is a biologist."""
    return word in PERSONS or word.endswith(("ist", "ian", "or", "man"))


def _is_before(answer: Answer, start: int) -> bool:
    """Tell whether "University of" and the like stand before; "City of" adds nothing."""
    if start < 2 or answer.words[start - 1] != "of" or answer.breaks[start] or answer.breaks[start - 1]:
        return False
    word = answer.words[start - 2]
    if word in PLACES and start > 2 and answer.words[start - 3] == "democratic":
        return True
    named = answer.cases[start - 2] > STARTS or (answer.cases[start - 2] == STARTS and answer.bare)
    return named and answer.fresh[start - 2] and word not in PLACES and word not in TITLES


def _is_behind(answer: Answer, end: int) -> bool:
    """Tell whether "of Scotland" and the like stand behind and make it the name of one of many."""
    if end + 1 >= len(answer.words) or answer.words[end] != "of" or answer.breaks[end]:
        return False
    return answer.cases[end + 1] >= STARTS and answer.fresh[end + 1] and bool(answer.cases[end - 1])


def _extends(answer: Answer, place: int, gold: Gold) -> bool:
    word = answer.words[place]
    if word in FUNCTION or not answer.fresh[place] or not word[0].isalpha():
        return word in PARTICLES - FUNCTION and place == 0
    if not any(gold.cases):
        return False
    if answer.cased:
        # A sentence begins with a capital whatever its first word is.
        return answer.cases[place] > STARTS or (answer.cases[place] == STARTS and len(gold.words) == 1)
    return len(answer.words) <= _PHRASE
