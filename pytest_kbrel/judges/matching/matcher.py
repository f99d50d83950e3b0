"""Matcher of an answer against all accepted answers: the rules in their order, and what rules them out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, product

from pytest_kbrel.judges.matching.containment import (
    is_city_named_so,
    is_other_name,
    may_stand_at,
    short_forms,
)
from pytest_kbrel.judges.matching.enumerations import is_one_of_several, is_region
from pytest_kbrel.judges.matching.negation import is_aside, is_negated, points_elsewhere
from pytest_kbrel.judges.matching.numbers import (
    contradicts_dates,
    date_rule,
    period_rule,
    quantity_rule,
    rank_rule,
)
from pytest_kbrel.judges.matching.parsing import (
    Answer,
    Gold,
    Question,
    Span,
    candidate_spans,
    find_spans,
    indices_of,
    read_gold,
    singular,
    unasked_spans,
)
from pytest_kbrel.judges.matching.variants import (
    LOOSE,
    STRICT,
    list_items,
    swap_ordinal,
    without_parentheses,
)
from pytest_kbrel.judges.text.dates import dates_in
from pytest_kbrel.judges.text.lexicon import FUNCTION, GIVEN
from pytest_kbrel.judges.text.tokens import read_words

# Another clause may speak of the other.
_PARTING = ("while", "whereas", "but")
_YES_NO = (("yes",), ("no",))


def compare(
    answer: Answer, accepted: Sequence[str], question: Question
) -> tuple[str, bool]:
    """Return (rule, whether right): the first rule that matches, what ruled a match out, or "no rule"."""
    golds = [gold for gold in map(read_gold, _with_shorter(accepted)) if gold.words]
    if not answer.words or not golds:
        return "no rule", False
    contradicted = contradicts_dates(answer, golds, question)
    for gold in golds:
        # "Late 1968" is no date, but has the year of one.
        rule = (
            ""
            if contradicted and gold.words not in _YES_NO
            else _figure(answer, gold, question)
        )
        if rule:
            return rule, True
    texts = [gold for gold in golds if gold.is_text and gold.words not in _YES_NO]
    gold_spans = [
        span
        for gold in texts
        for span in find_spans(answer.words, gold.words)
        if may_stand_at(answer, gold, span[0])
    ]
    refused = ""
    given = set(accepted)
    for rule, span in _matches(answer, texts, question, given):
        reason = _refused(answer, span, question, gold_spans)
        if reason == "several" and not refused:
            # What names other golds, in whatever writing, is no alternative.
            matched = {at for _, at in _matches(answer, texts, question, given)}
            gold_spans = [
                *gold_spans,
                *matched.difference(gold_spans, {(0, len(answer.words))}),
            ]
            reason = _refused(answer, span, question, gold_spans)
        if not reason:
            return rule, True
        refused = refused or reason
    for rule, reason in _contained(answer, texts, question, gold_spans, given):
        if not reason:
            return rule, True
        refused = refused or reason
    if not refused and any(_lists_all(answer, gold, question) for gold in texts):
        return "list", True
    return refused or "no rule", False


def _with_shorter(accepted: Sequence[str]) -> Iterable[str]:
    shorter = (
        (gold, without_parentheses(gold), *short_forms(gold)) for gold in accepted
    )
    return dict.fromkeys(chain.from_iterable(shorter))


def _figure(answer: Answer, gold: Gold, question: Question) -> str:
    if gold.words in _YES_NO:
        return "yes or no" if answer.words[:1] == gold.words else ""
    if gold.period is not None:
        return period_rule(answer, gold)
    rule = rank_rule(answer, gold, question)
    if rule:
        return rule
    if gold.is_text:
        # "2004 NBA Finals" answers "When" by its year.
        dates = dates_in(gold.text) if question.has("when", "year") else ()
        return (
            date_rule(answer, dates, question)
            if len(dates) == 1 and dates[0].year
            else ""
        )
    if gold.number is not None:
        return quantity_rule(answer, gold, question)
    # "12th", asked for a century
    asked_word = answer.words == gold.words[:-1] and question.has(gold.words[-1])
    return date_rule(answer, gold.dates, question) or (
        "question's word" if asked_word else ""
    )


def _matches(
    answer: Answer, golds: Sequence[Gold], question: Question, accepted: Collection[str]
) -> Iterator[tuple[str, Span]]:
    """Yield (rule, span) of all that is a gold written in another way."""
    whole = (0, len(answer.words))
    # Hundreds of aliases are usual, and most share nothing with the answer.
    golds = [gold for gold in golds if not answer.keys.isdisjoint(gold.keys)]
    if not golds:
        return
    spans = list(candidate_spans(answer))
    meant = unasked_spans(answer)
    own = {whole, *meant}
    # "The playwright Shakespeare" is one stretch with a name in it.
    loosely = spans if len(meant) == 1 else [whole]
    for variants, where in ((STRICT, spans), (LOOSE, loosely)):
        for variant, span in product(variants, where):
            words = answer.part(*span)
            for gold in golds:
                rule = variant(words, gold, question)
                if not rule or _is_namesake(answer, span, gold, accepted, question):
                    continue
                if rule == "given name" and _is_named_in_full(gold, golds, given=True):
                    continue
                if rule == "surname" and _has_given_name(answer, span[0]):
                    continue
                if rule == "full name" and _is_named_in_full(gold, golds):
                    continue
                if span not in own and len(gold.words[0]) < 3 and len(gold.words) == 1:
                    # "Vitamin C" is not "C".
                    continue
                if rule == "spelling":
                    shortened = gold.text not in accepted
                    yield (
                        "qualifier"
                        if shortened
                        else "contained"
                        if span != whole
                        else rule,
                        span,
                    )
                elif rule != "qualifier" or not _is_elsewhere(answer, span, gold):
                    yield rule, span


def _has_given_name(answer: Answer, start: int) -> bool:
    """Return True if a given name that is a tying word as well stands before a surname: "Will Smith"."""
    if not start or answer.breaks[start] or answer.words[start - 1] not in GIVEN:
        return False
    return bool(answer.cases[start - 1]) or not answer.cased


def _is_named_in_full(
    name: Gold, golds: Sequence[Gold], *, given: bool = False
) -> bool:
    """Return True if another gold says which person of that surname, or ``given`` name, is meant."""
    return len(name.words) == 1 and any(
        len(gold.words) > 1
        and gold.words[0 if given else -1] == name.words[0]
        and gold.is_name
        and FUNCTION.isdisjoint(gold.words)
        for gold in golds
    )


def _is_elsewhere(answer: Answer, span: Span, gold: Gold) -> bool:
    """Return True if the answer goes on with another qualifier: "Paris, France" for "Paris, Texas"."""
    end = span[1]
    if answer.at(end) == "in" and answer.at(end + 1):
        end += 1
        named = bool(answer.cases[end])
    elif end < len(answer.words) and answer.breaks[end]:
        following = " ".join(answer.words[end : answer.next_break(end + 1)])
        named = bool(answer.cases[end]) or (not answer.cased and is_region(following))
    else:
        return False
    return named and answer.fresh[end] and answer.words[end] not in gold.words


def _is_namesake(
    answer: Answer,
    span: Span,
    gold: Gold,
    accepted: Collection[str],
    question: Question,
) -> bool:
    """Return True if the answer qualifies otherwise what the gold qualifies in parentheses or by a byname."""
    end = span[1]
    if gold.text in accepted or end >= len(answer.words):
        return False
    if (
        gold.words[-1].isdigit()
        and answer.words[end] == "of"
        and not answer.breaks[end]
    ):
        # "Philip II of Spain" is not Philip II the Bold.
        realm = answer.words[end + 1 : end + 2]
        return _words_of(accepted).isdisjoint(realm) and not question.has(*realm)
    first = end + (answer.words[end] == "in")
    if (
        first >= len(answer.words)
        or answer.breaks[end] == "."
        or (first == end and not answer.breaks[end])
    ):
        return False
    words = answer.words[first : answer.next_break(first + 1)]
    if words[0] in FUNCTION or not answer.fresh[first] or not words[0].isalpha():
        return False
    if not answer.cases[first] and (answer.cased or len(words) > 3):
        return False
    longer = [text for text in accepted if without_parentheses(text) == gold.text]
    return bool(longer) and _words_of(longer).isdisjoint(words)


def _words_of(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in read_words(text).words}


def _refused(
    answer: Answer, span: Span, question: Question, gold_spans: Sequence[Span]
) -> str:
    if is_negated(answer, span, question):
        return "negated"
    if is_one_of_several(answer, span, question, [*gold_spans, span]):
        return "several"
    if is_city_named_so(answer, span):
        return "other name"
    if points_elsewhere(answer, span, question):
        return "beside"
    return "aside" if is_aside(answer, span, question, gold_spans) else ""


def _contained(
    answer: Answer,
    golds: Sequence[Gold],
    question: Question,
    gold_spans: Sequence[Span],
    accepted: Collection[str],
) -> Iterator[tuple[str, str]]:
    """Yield (rule, what forbids it or "") for every gold that stands in the answer, then for plurals."""
    for gold in golds:
        spans = [
            span
            for words in (gold.words, swap_ordinal(gold.words))
            for span in find_spans(answer.words, words)
            if may_stand_at(answer, gold, span[0])
            and not _is_namesake(answer, span, gold, accepted, question)
        ]
        if spans:
            in_question = len(list(find_spans(question.words, gold.words)))
            yield (
                "contained",
                _why_not(answer, gold, spans, in_question, question, gold_spans),
            )
    answer_words, question_words = (
        tuple(map(singular, answer.words)),
        tuple(map(singular, question.words)),
    )
    for gold in golds:
        singulars = tuple(map(singular, gold.words))
        named = gold.is_name and (question.asks_person or question.asks_work)
        if named or len(singulars[-1]) < 4:
            continue
        spans = [
            span
            for span in find_spans(answer_words, singulars)
            if not (answer.cases[span[1] - 1] and gold.cases[-1])
            and not _is_namesake(answer, span, gold, accepted, question)
        ]
        if spans:
            in_question = len(list(find_spans(question_words, singulars)))
            yield (
                "plural",
                _why_not(
                    answer, gold, spans, in_question, question, [*gold_spans, *spans]
                ),
            )


def _why_not(
    answer: Answer,
    gold: Gold,
    spans: Sequence[Span],
    in_question: int,
    question: Question,
    gold_spans: Sequence[Span],
) -> str:
    """Return what forbids a gold that stands at ``spans`` and ``in_question`` times in the question."""
    reasons = [
        _refused(answer, span, question, gold_spans)
        or ("other name" if is_other_name(answer, span, gold, question) else "")
        for span in spans
    ]
    free = reasons.count("")
    if not free:
        return reasons[0]
    held = indices_of(spans)
    # "It is the cell" says nothing else.
    nothing_else = all(
        word in FUNCTION or index in held for index, word in enumerate(answer.words)
    )
    return (
        ""
        if free > in_question or nothing_else or _is_choice(answer, gold, question)
        else "echo"
    )


def _is_choice(answer: Answer, gold: Gold, question: Question) -> bool:
    """Return True if the question lets choose ("Vogue or Elle?") and the answer has only the gold."""
    for start, end in find_spans(question.words, gold.words):
        before = question.at(start - 2) if question.at(start - 1) == "or" else ""
        first = question.at(end) == "or"
        after = question.at(end + 1) if first else ""
        lead = question.words[: start if first else max(0, start - 1 - len(gold.words))]
        if _takes_up_choice(answer, gold, after if first else before, lead):
            return True
        # "Vogue, not Elle"
        others = [
            index for index, word in enumerate(answer.words) if word in (before, after)
        ]
        if (before or after) and all(
            is_negated(answer, (at, at + 1), question) for at in others
        ):
            return True
    return False


def _takes_up_choice(
    answer: Answer, gold: Gold, other: str, lead: Sequence[str]
) -> bool:
    """Return True if the first clause answers a choice: "Ann came first" to "Who came first, Ann or Bo?".

    The clause has the gold and all words before the choice, ``lead``, and not the other.
    """
    parting = (
        index for index, word in enumerate(answer.words) if index and word in _PARTING
    )
    clause = answer.words[: min(answer.next_break(1), next(parting, len(answer.words)))]
    content = {word for word in lead if word not in FUNCTION}.difference(gold.words)
    if not other or other in clause or not content or not content.issubset(clause):
        return False
    return any(find_spans(clause, gold.words))


def _lists_all(answer: Answer, gold: Gold, question: Question) -> bool:
    """Return True if an answer has all items of a gold that is a list, in any order and near each other."""
    items = list_items(gold.text)
    spans = [next(find_spans(answer.words, words), None) for words in items]
    placed = [span for span in spans if span is not None]
    if (
        len(items) < 2
        or len(placed) < len(items)
        or any(map(FUNCTION.issuperset, items))
    ):
        return False
    whole = min(start for start, _ in placed), max(end for _, end in placed)
    if whole[1] - whole[0] > 2 * len(gold.words) + 2 or all(
        map(question.has, chain.from_iterable(items))
    ):
        return False
    return not is_negated(answer, whole, question) and not is_one_of_several(
        answer, whole, question, [whole]
    )
