"""Claims of a chatty answer: what it states as the answer, and what it only mentions in an aside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pytest_kbrel.judges.matching.parsing import Answer, Question, singular
from pytest_kbrel.judges.text.lexicon import FUNCTION, PARTICLES, PLACES, TITLES, word_set

Span = tuple[int, int]
_COPULAS = word_set("is was are were be been would called named")
_LOCATING = word_set("in at on to from near into along within")
# A clause of its own begins with one of them.
_OPPOSING = word_set("but although though while whereas unlike")
_OPENING = _OPPOSING | {"which", "than", "like"}
_ALIAS = word_set(
    "name named called aka alias pseudonym nickname nicknamed born real titled meaning stage pen"
)
_LYING = PLACES | word_set("country nation part located situated lies lying belongs area constituent")
_INCLUDING = word_set("including includes included particularly especially specifically mainly")
_FORMERLY = word_set("once formerly previously before until")
_ONCE = _FORMERLY | word_set("was were had used ago")
_ASKING = word_set("what which who whom whose where when how")
# With a capital at the beginning, and no names.
LEADING = word_set(
    "sure yes no hello hi hey okay ok great thanks absolutely indeed right exactly well "
    "several many some most one two all each every another other"
)
_MOST = 5
_STEM = 5


def is_aside(answer: Answer, span: Span, question: Question, gold_spans: Sequence[Span]) -> bool:
    """Return True if the answer states another thing as the answer and only mentions what stands at ``span``.

    "It is Lyon, which is larger than Paris." states Lyon. ``gold_spans`` are where all golds stand. Only
    names are told apart, since nothing tells where another common noun begins and ends.
    """
    if not answer.cased or not any(answer.cases[slice(*span)]):
        return False
    clauses = list(_clauses(answer))
    held = {index for start, end in [*gold_spans, span] for index in range(start, end)}
    stating: list[Span] = []
    for clause in clauses:
        for name in _stated(answer, clause, question):
            if not held.isdisjoint(range(*name)) or _resemble(answer, name, span):
                return False
            stating.append(clause)
    own = next(clause for clause in clauses if clause[0] <= span[0] < clause[1])
    for clause in stating:
        if own[0] < clause[0]:
            # "Many think that it is Paris, but it is Lyon."
            if answer.words[clause[0]] == "but" and clause[0] >= span[1]:
                return True
        elif clause != own and not _goes_on(answer, clause, own, span, question):
            return True
    return False


def _clauses(answer: Answer) -> Iterator[Span]:
    """Yield the (start, end) of the stretches between marks and words that begin a clause."""
    start = 0
    for index in range(1, len(answer.words)):
        if answer.breaks[index] in (",", ".") or answer.words[index] in _OPENING:
            yield start, index
            start = index
    yield start, len(answer.words)


@lru_cache(maxsize=4096)
def _asked(question: Question) -> tuple[frozenset[str], str]:
    """Return the words that a claim takes up, and X of "What is the X of ...", which is enough of them."""
    words = question.words
    content = [word for word in words if word not in FUNCTION]
    index = next((index for index, word in enumerate(words) if word in _ASKING), len(words))
    head = ""
    if words[index : index + 1] in (("what",), ("which",)) and not FUNCTION.issuperset(
        words[index + 1 :][:1]
    ):
        # "Which country is it in?": an answer need not say that it is a country.
        content = [word for word in content if word != words[index + 1]]
    elif words[index + 1 : index + 2] and words[index + 1] in _COPULAS and "of" in words[index + 3 :]:
        head = words[words.index("of", index + 3) - 1]
    return frozenset(map(singular, content)), head


def _stated(answer: Answer, clause: Span, question: Question) -> Iterator[Span]:
    """Yield the names that a clause puts in the place of what is asked for.

    The clause takes up the question, or consists of the name and words that tie ("It is Lyon").
    """
    start, end = clause
    asked_words, head = _asked(question)
    words = answer.words
    taken = asked_words.intersection(map(singular, words[start:end]))
    if not _FORMERLY.isdisjoint(words[start:end]) and not question.has(*_FORMERLY):
        return
    begins, ends = answer.breaks[start] == ".", end == len(words) or answer.breaks[end] == "."
    for first, last in _names(answer, clause):
        before = words[first - 1] if first > start else ""
        after = words[last] if last < end else ""
        bare = FUNCTION.issuperset((*words[start:first], *words[last:end]))
        if bare and begins and (ends or before in _COPULAS):
            yield first, last
            continue
        passive = (
            question.asks_person and before == "by" and not _COPULAS.isdisjoint(words[start : first - 1])
        )
        passive = passive and _is_asked(words[first - 2], asked_words)
        full = asked_words and (taken == asked_words or (passive and 2 * len(taken) >= len(asked_words) - 1))
        headed = head in words[start:end] and not _COPULAS.isdisjoint((before, after))
        if not full and not headed:
            continue
        leading = first == start and after and (after in _COPULAS or not answer.fresh[last])
        located = question.asks_place and before in _LOCATING
        closing = last == end and before and not answer.fresh[first - 1] and before not in FUNCTION
        if passive or before in _COPULAS or leading or located or closing:
            yield first, last


def _is_asked(verb: str, asked_words: frozenset[str]) -> bool:
    """Return True if a participle may be of a verb of the question ("written" of "wrote")."""
    return any(verb[:2] == word[:2] or (verb[0], verb[-1]) == (word[0], word[-1]) for word in asked_words)


def _names(answer: Answer, clause: Span) -> Iterator[Span]:
    """Yield the runs of capitals in a clause that the question does not hold, without titles."""
    start, end = clause
    words, cases = answer.words, answer.cases
    index = start
    while index < end:
        if not cases[index] or not answer.fresh[index] or words[index] in FUNCTION | LEADING:
            index += 1
            continue
        stop = index + 1
        while stop < end and not answer.breaks[stop] and (cases[stop] or words[stop] in PARTICLES):
            stop += 1
        while not cases[stop - 1]:
            stop -= 1
        first = index
        while first < stop - 1 and words[first] in TITLES:
            first += 1
        if stop - first <= _MOST:
            yield first, stop
        index = stop


def _resemble(answer: Answer, one: Span, other: Span) -> bool:
    """Return True if two stretches have a word in common, as far as its first letters."""
    first, second = ({word[:_STEM] for word in answer.words[slice(*span)]} for span in (one, other))
    return not first.isdisjoint(second)


def _goes_on(answer: Answer, claim: Span, own: Span, span: Span, question: Question) -> bool:
    """Return True if a later clause only says more of what was claimed: where it lies, another name of it."""
    words = answer.words
    clause = words[slice(*own)]
    if not _ALIAS.isdisjoint(clause) or ("known", "as") in pairwise(clause):
        return True
    if any(answer.breaks[index] == "." for index in range(claim[1], span[0] + 1)):
        return False
    between = words[claim[1] : span[0]]
    # "It is Lyon, and Paris is larger."
    if span[1] < own[1] and words[span[1]] in _COPULAS and FUNCTION.issuperset(words[own[0] : span[0]]):
        return False
    content = [
        words[index]
        for index in range(claim[1], span[0])
        if not answer.cases[index] and words[index] not in FUNCTION
    ]
    if not question.asks_place:
        return not content
    if not _ONCE.isdisjoint(between) or not _OPPOSING.isdisjoint(between):
        return False
    last = words[span[0] - 1]
    return (
        last in _LOCATING - {"from", "to"} or not _INCLUDING.isdisjoint(between) or _LYING.issuperset(content)
    )
