"""Negation, redirection and asides: "not Paris", "the wife of Bill Gates", "Lyon, larger than Paris"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pytest_kbrel.judges.matching.parsing import (
    Answer,
    Question,
    Span,
    indices_of,
    singular,
)
from pytest_kbrel.judges.text.lexicon import (
    AWAY,
    BESIDE,
    CORRECTING,
    DIRECTIONS,
    FALSE,
    FRAMES,
    FUNCTION,
    NEGATIONS,
    OPENERS,
    PARTICLES,
    PLACES,
    RELATED,
    RELATIONS,
    SURROUNDINGS,
    TITLES,
    UNIT_NAMES,
    UNITS,
    WORKS,
    word_set,
)

_NO_DENIAL = word_set("doubt only other")
_DENYING = word_set("not never")
_TYING = word_set("is was are were would seems")
_REFERRING = word_set("it that this he she")
_NEGATING_PAIRS = frozenset(
    {("rather", "than"), ("instead", "of"), ("other", "than"), ("apart", "from")}
)
_EXCEPTING_PAIRS = frozenset(
    {("anything", "but"), ("everything", "but"), ("all", "but"), ("far", "from")}
)
# So many words at most stand in brackets or between commas.
_ASIDE = 6
_ASIDES = 3
_COMPARING = word_set(
    "surpassing beating overtaking outselling outnumbering exceeding defeating"
)
_COMPARED = frozenset(
    {("followed", "by"), ("ahead", "of"), ("compared", "to"), ("compared", "with")}
)
# Who is asked for may be the one behind.
_RANKED = word_set("next after second third last behind beat lose lost")
_STEM = 5
_POSSESSIVE = re.compile(r"(\w+)(?:'s|(?<=s)')\s+(\w+)")
_OF_NAME = word_set(
    "former formerly old original originally previously was were called named"
)
_COPULAS = word_set("is was are were be been being would called named")
_LOCATING = word_set("in at on to from near into along within")
# A clause of its own begins with one of them.
_OPPOSING = word_set("but although though while whereas unlike")
_OPENING = _OPPOSING | {"which", "than", "like"}
_ALIAS = word_set(
    "name named called aka alias pseudonym nickname nicknamed born real titled meaning stage pen"
)
_LYING = PLACES | word_set(
    "country nation part located situated lies lying belongs area constituent"
)
_INCLUDING = word_set(
    "including includes included particularly especially specifically mainly"
)
_FORMERLY = word_set("once formerly previously before until")
_ONCE = _FORMERLY | word_set("was were had used ago")
_ASKING = word_set("what which who whom whose where when how")
_LONGEST_NAME = 5


def is_negated(answer: Answer, span: Span, question: Question) -> bool:
    """Return True if the clause negates what stands at ``span``, or the next sentence corrects it."""
    start, end = span
    words = answer.words
    first = start
    while first > 0 and not answer.breaks[first] and words[first - 1] != "but":
        first -= 1
    if not question.has(*NEGATIONS):
        for word, after in zip(words[first:start], words[first + 1 :], strict=False):
            # "No. 5" is a number, "no doubt" the contrary of a denial.
            if (
                word in NEGATIONS
                and after not in _NO_DENIAL
                and not (word == "no" and after[0].isdigit())
            ):
                return True
        if not _DENYING.isdisjoint(words[end : min(answer.next_break(end), end + 3)]):
            return True
        if _is_denied_across(answer, first, start) or _is_denied_behind(
            answer, span, question
        ):
            return True
    return (
        not _NEGATING_PAIRS.isdisjoint(pairwise(words[first:start]))
        or words[max(0, start - 2) : start] in _EXCEPTING_PAIRS
        or _is_called_false(words, first, span, question)
        or _is_corrected(answer, end)
    )


def _is_denied_across(answer: Answer, first: int, start: int) -> bool:
    """Return True if a mark parts a denial from what stands at ``start``: "not, in fact, Paris".

    ``first`` is where the clause of ``start`` begins.
    """
    words, breaks = answer.words, answer.breaks
    if breaks[start] == '"':
        # What stands in brackets or quotation marks belongs to the clause around it.
        index = start - 1
        while index >= 0 and words[index] != "but":
            # "Never Let Me Go" is a title.
            if words[index] in _DENYING and (
                not answer.cases[index] or index == start - 1
            ):
                return True
            if breaks[index]:
                return False
            index -= 1
        return False
    if first != start or breaks[start] != ",":
        return False
    index = max(answer.last_break(start - 1), start - 1 - _ASIDE, 0)
    # Either the mark is a colon, or it ends what the mark behind "not" began.
    denial = (
        start - 1
        if words[start - 1] in _DENYING
        else index - 1
        if breaks[index] == ","
        else start
    )
    return words[denial] in _DENYING


def _is_denied_behind(answer: Answer, span: Span, question: Question) -> bool:
    """Return True if what follows takes it back: "Burma (Asia) is not it", "Burma: wrong"."""
    words, breaks, size = answer.words, answer.breaks, len(answer.words)
    false = frozenset() if question.has(*FALSE) else FALSE
    for at in _goes_on_at(answer, span):
        if breaks[at] == "." and words[at] in _REFERRING:
            at += 1
        elif breaks[at] and (words[at] in _DENYING or words[at] in false):
            if _denies_what_is_asked(answer, at + 1, question, verbless=True):
                return True
            continue
        if at + 1 >= size or words[at] not in _TYING:
            continue
        at += 1
        if breaks[at] == ",":
            # "Is, in fact, not"
            behind = answer.next_break(at + 1)
            at = behind if behind < min(size, at + _ASIDE) else at
        if words[at] in false or (
            words[at] in _DENYING and _denies_what_is_asked(answer, at + 1, question)
        ):
            return True
    return False


def _goes_on_at(answer: Answer, span: Span) -> Iterator[int]:
    """Yield where the sentence goes on behind what stands at ``span``, and behind asides about it."""
    start, index = span
    size = len(answer.words)
    # Only of what a sentence begins with it goes on to say something.
    leads = FRAMES.isdisjoint(answer.words[answer.last_break(start, ".") : start])
    for _ in range(_ASIDES):
        if index >= size:
            return
        yield index
        if not leads or answer.breaks[index] not in (",", '"'):
            break
        index = answer.next_break(index + 1)
    index = answer.next_break(index, ".")
    if index < size:
        yield index


def _denies_what_is_asked(
    answer: Answer, index: int, question: Question, *, verbless: bool = False
) -> bool:
    """Return True if the clause from ``index`` on, behind "not", names only what is asked for: "the capital".

    Of "not Europe" the question may hold all, too; so the word that it asks for must be there.
    """
    words = answer.words
    first_word = next((word for word in question.words if word not in FUNCTION), "")
    # 'Not "Quito"'
    stop = answer.next_break(index + (answer.breaks[index : index + 1] == ('"',)))
    rest = [other for other in range(index, stop) if words[other] not in FUNCTION]
    if verbless or not rest:
        return [words[other] for other in rest] in ([], [first_word])
    return first_word in words[index:stop] and not any(
        answer.fresh[other] for other in rest
    )


def _is_called_false(
    words: Sequence[str], first: int, span: Span, question: Question
) -> bool:
    """Return True if it says "Paris is wrong", "it is false that ... Paris" or "I doubt that ... Paris"."""
    start, end = span
    if not question.has(*FALSE):
        # "Paris is not wrong" denies the denial.
        following = words[end + 1 : end + 3]
        copula = not _TYING.isdisjoint(words[end : end + 1])
        if copula and "not" not in following and not FALSE.isdisjoint(following):
            return True
        for index in range(first, start - 1):
            if words[index] in FALSE and words[index + 1] in ("that", "to"):
                return "not" not in words[max(first, index - 2) : index]
    # "I do not doubt" has "do not" before it.
    return any(
        words[index] == "doubt"
        and not {"i", "we"}.isdisjoint(words[max(first, index - 2) : index])
        for index in range(first, start)
    )


def _is_corrected(answer: Answer, end: int) -> bool:
    """Return True if what follows begins anew: "Paris? No, it is Lyon.", "Paris. Actually, it is Lyon."."""
    words, breaks = answer.words, answer.breaks
    stop = answer.next_break(end, ".")
    for index in range(end, min(stop + 1, len(words) - 1)):
        if breaks[index] and words[index] == "no" and breaks[index + 1]:
            return True
    return answer.at(stop) in CORRECTING and any(
        answer.fresh[index]
        and words[index] not in FUNCTION
        and (answer.cases[index] or not answer.cased)
        for index in range(stop + 1, len(words))
    )


def points_elsewhere(answer: Answer, span: Span, question: Question) -> bool:
    """Return True if ``span`` only points to the answer: "featuring X", "near X", "X's wife"."""
    start, end = span
    before = answer.words[max(0, start - 2) : start]
    if any(word in BESIDE and not question.has(word) for word in before):
        return True
    if _is_compared(before, question) or _is_from(answer, start, question):
        return True
    if question.has(*RELATED) or question.has(*RELATIONS):
        return False
    if before[-1:] == ("of",) and before[0] in RELATIONS:
        return True
    if answer.ends(end):
        return False
    return answer.words[end] in RELATIONS or (
        question.asks_person and _owns(answer, end)
    )


def _is_compared(before: tuple[str, ...], question: Question) -> bool:
    """Return True if something else is set before it: "ahead of Paris", "followed by Paris"."""
    compared = (
        before
        if before in _COMPARED
        else before[-1:]
        if _COMPARING.issuperset(before[-1:])
        else ()
    )
    if not compared or question.has(*_RANKED):
        return False
    return not any(word[:_STEM] == compared[0][:_STEM] for word in question.words)


def _is_from(answer: Answer, start: int, question: Question) -> bool:
    """Return True if a place or a likeness is told from it: "north of Paris", "20 km from Paris"."""
    last, earlier = answer.at(start - 1), answer.at(start - 2)
    if not start or answer.breaks[start] not in ("", '"'):
        return False
    if last in AWAY:
        return not question.has(last)
    if last == "formerly":
        return not question.has(*_OF_NAME)
    if last == "to":
        return earlier in ("similar", "close", "next", "adjacent") and not question.has(
            earlier
        )
    if last not in ("of", "from") or question.has(earlier):
        return False
    if earlier in DIRECTIONS:
        # "In the north of France" is in France.
        return answer.at(start - 3) not in ("in", "to")
    if last == "of":
        return earlier in SURROUNDINGS
    return earlier in UNIT_NAMES or earlier in UNITS or earlier in ("away", "far")


def _owns(answer: Answer, end: int) -> bool:
    """Return True if something of a person's is named, other than a work: "Bill Gates's lawyer"."""
    owner, owned = answer.words[end - 1], answer.words[end]
    if answer.cases[end] or not answer.fresh[end] or owned in FUNCTION:
        return False
    return WORKS.isdisjoint(answer.words[end : end + 3]) and any(
        match[1].lower() == owner and match[2].lower() == owned
        for match in _POSSESSIVE.finditer(answer.text)
    )


def is_aside(
    answer: Answer, span: Span, question: Question, gold_spans: Sequence[Span]
) -> bool:
    """Return True if the answer states another thing as the answer and only mentions what stands at ``span``.

    "It is Lyon, which is larger than Paris." states Lyon. ``gold_spans`` are where all golds stand. Only
    names are told apart, since nothing tells where another common noun begins and ends.
    """
    if not answer.cased or not any(answer.cases[slice(*span)]):
        return False
    clauses = list(_clauses(answer))
    held = indices_of([*gold_spans, span])
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
    inner = [
        index
        for index in range(1, len(answer.words))
        if answer.breaks[index] in (",", ".") or answer.words[index] in _OPENING
    ]
    return pairwise((0, *inner, len(answer.words)))


@lru_cache(maxsize=4096)
def _claim_words(question: Question) -> tuple[frozenset[str], str]:
    """Return the words that a claim takes up, and X of "What is the X of ...", which is enough of them."""
    words = question.words
    content = [word for word in words if word not in FUNCTION]
    index = next(
        (index for index, word in enumerate(words) if word in _ASKING), len(words)
    )
    following = words[index + 1 : index + 2]
    head = ""
    if words[index : index + 1] in (("what",), ("which",)) and not FUNCTION.issuperset(
        following
    ):
        # "Which country is it in?": an answer need not say that it is a country.
        content = [word for word in content if word not in following]
    elif not _COPULAS.isdisjoint(following) and "of" in words[index + 3 :]:
        head = words[words.index("of", index + 3) - 1]
    return frozenset(map(singular, content)), head


def _stated(answer: Answer, clause: Span, question: Question) -> Iterator[Span]:
    """Yield the names that a clause puts in the place of what is asked for.

    The clause takes up the question, or consists of the name and words that tie ("It is Lyon").
    """
    start, end = clause
    claimed, head = _claim_words(question)
    words = answer.words
    if not _FORMERLY.isdisjoint(words[start:end]) and not question.has(*_FORMERLY):
        return
    taken = claimed.intersection(map(singular, words[start:end]))
    begins, ends = (
        answer.breaks[start] == ".",
        end == len(words) or answer.breaks[end] == ".",
    )
    for first, last in _names(answer, clause):
        before = words[first - 1] if first > start else ""
        after = words[last] if last < end else ""
        bare = FUNCTION.issuperset((*words[start:first], *words[last:end]))
        if bare and begins and (ends or before in _COPULAS):
            yield first, last
            continue
        passive = (
            question.asks_person
            and before == "by"
            and not _COPULAS.isdisjoint(words[start : first - 1])
            and _is_asked(words[first - 2], claimed)
        )
        full = claimed and (
            taken == claimed or (passive and 2 * len(taken) >= len(claimed) - 1)
        )
        if not full and (
            head not in words[start:end] or _COPULAS.isdisjoint((before, after))
        ):
            continue
        leading = (
            first == start and after and (after in _COPULAS or not answer.fresh[last])
        )
        located = question.asks_place and before in _LOCATING
        closing = (
            last == end
            and before
            and not answer.fresh[first - 1]
            and before not in FUNCTION
        )
        if passive or before in _COPULAS or leading or located or closing:
            yield first, last


def _is_asked(verb: str, claimed: frozenset[str]) -> bool:
    """Return True if a participle may be of a verb of the question ("written" of "wrote")."""
    return any(
        verb[:2] == word[:2] or (verb[0], verb[-1]) == (word[0], word[-1])
        for word in claimed
    )


def _names(answer: Answer, clause: Span) -> Iterator[Span]:
    """Yield the runs of capitals in a clause that the question does not hold, without titles."""
    index, end = clause
    words, cases = answer.words, answer.cases
    while index < end:
        if (
            not cases[index]
            or not answer.fresh[index]
            or words[index] in FUNCTION | OPENERS
        ):
            index += 1
            continue
        stop = index + 1
        while (
            stop < end
            and not answer.breaks[stop]
            and (cases[stop] or words[stop] in PARTICLES)
        ):
            stop += 1
        first, index = index, stop
        while not cases[stop - 1]:
            stop -= 1
        while first < stop - 1 and words[first] in TITLES:
            first += 1
        if stop - first <= _LONGEST_NAME:
            yield first, stop


def _resemble(answer: Answer, one: Span, other: Span) -> bool:
    """Return True if two stretches have a word in common, as far as its first letters."""
    first, second = (
        {word[:_STEM] for word in answer.words[slice(*span)]} for span in (one, other)
    )
    return not first.isdisjoint(second)


def _goes_on(
    answer: Answer, claim: Span, own: Span, span: Span, question: Question
) -> bool:
    """Return True if a later clause only says more of what was claimed: where it lies, another name of it."""
    words = answer.words
    clause = words[slice(*own)]
    if not _ALIAS.isdisjoint(clause) or ("known", "as") in pairwise(clause):
        return True
    if "." in answer.breaks[claim[1] : span[0] + 1]:
        return False
    between = words[claim[1] : span[0]]
    # "It is Lyon, and Paris is larger."
    if (
        span[1] < own[1]
        and words[span[1]] in _COPULAS
        and FUNCTION.issuperset(words[own[0] : span[0]])
    ):
        return False
    content = [
        word
        for word, case in zip(between, answer.cases[claim[1] :], strict=False)
        if not case and word not in FUNCTION
    ]
    if not question.asks_place:
        return not content
    if not _ONCE.isdisjoint(between) or not _OPPOSING.isdisjoint(between):
        return False
    located = words[span[0] - 1] in _LOCATING - {"from", "to"}
    return located or not _INCLUDING.isdisjoint(between) or _LYING.issuperset(content)
