"""Integrity checks: whether responses are sound enough for a measurement, case by case and over a suite.

Majority answers and chance are no measurement of knowledge: ParaRel's majority baseline is perfectly
consistent (Elazar et al., "Measuring and Improving Consistency in Pretrained Language Models",
arXiv 2102.01017). Over a whole suite, a model that answers nothing but "unsure" has no wrong answer and no
hallucination, although no single case is unsound (:func:`unsound_suites`).
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pytest_kbrel import stats
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.judges.words import strip_wrapping
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import (
    UNINFORMATIVE,
    Case,
    CaseResult,
    Fact,
    Integrity,
    Outcome,
    Share,
    Table,
    record,
)

# A share that is exactly the limit is within it, whatever the product of limit and total rounds to.
ROUNDING = 1e-9

# Of fewer facts an honest model may well say one thing, or have one probability.
FEWEST = 10

# The share of answers that are nearly all.
_NEARLY = 0.9

# Probabilities p that differ by less, in units of p (1 - p), differ by rounding.
_STILL = 1e-4

# The rule of outcomes that a model as judge left undecided.
UNPARSABLE = "unparsable"

# The rule of outcomes that a model as judge decided.
_JUDGED = "judge"
_SHOWN = 3
_LONGEST_SHOWN = 60

# Drawing from fewer is no draw.
_FEWEST_OBJECTS = 2

# More tokens for the answer help nobody who does not come to it.
_ENDLESS = (
    "raise max_thinking_tokens of --kb-model-args, unless the thoughts end nowhere (the chat template does "
    "not suit the model)"
)


@record
class Soundness:
    """Integrity of a case's responses: every share measured, and what forbids a measurement, in words.

    ``broken`` is empty when the responses are sound.
    """

    shares: tuple[Share, ...]
    broken: tuple[str, ...]


@record
class Finding:
    """A share, and what is said of it where it is beyond its limit."""

    share: Share
    says: str


def check_integrity(case: Case, table: Table, errors: Sequence[str]) -> Soundness:
    """Return the shares measured of a case's responses, and which are beyond its limits (``case.integrity``).

    ``errors`` are the facts without usable responses, one text a fact; the rows of ``table`` are the others.
    Whatever the limits are, there must be a fact, none twice, and no value that is no number.
    """
    limits, rows = case.integrity, table.rows
    total = max(len(case.facts), len(rows) + len(errors))
    errored, answered = (
        _errored(limits, total, len(rows), errors),
        _answered(limits, total, rows),
    )
    findings = list(_of_rows(case, table)) if rows else []
    broken = [errored.says] if errored.share.broken else []
    broken += _never(rows)
    broken += [finding.says for finding in findings if finding.share.broken]
    # Where too many are empty or have no response, that has said it.
    reported = {
        finding.share.name for finding in (errored, *findings) if finding.share.broken
    }
    if rows and answered.share.broken and reported.isdisjoint(("errored", "empty")):
        broken.append(answered.says)
    shares = tuple(finding.share for finding in (answered, errored, *findings))
    return Soundness(shares=shares, broken=tuple(broken))


def unsound_suites(results: Iterable[CaseResult]) -> Iterator[str]:
    """Yield what to say of each suite whose sound cases, taken together, are no measurement.

    No answer of theirs says anything, to :data:`FEWEST` questions that have one or more; or MONITOR scores
    other tokens than the model writes (:func:`first_token`), or that it gives next to nothing
    (:func:`anchor_prob`), or whatever the prompt is (:func:`unmoved`), which cases of few facts do not show.
    """
    rows: dict[str, list[Outcome]] = {}
    scored: dict[str, list[Share]] = {}
    for result in results:
        if result.verdict != "invalid":
            rows.setdefault(result.suite, []).extend(result.table.rows)
            scored.setdefault(result.suite, []).extend(result.integrity)
    for suite, shares in sorted(scored.items()):
        for name, says, sign in (
            ("first_token", _unwritten, 1),
            ("anchor_prob", _improbable, 1),
            ("unmoved", _unmoved, -1),
        ):
            named = [share for share in shares if share.name == name]
            n, total = (
                sum(of.total for of in named),
                math.fsum(of.value for of in named),
            )
            allowed = math.fsum(of.limit * of.total for of in named)
            if n >= FEWEST and sign * (allowed - total) > ROUNDING:
                why = says(total, n, allowed / n)
                yield f"{suite}: MONITOR does not measure this model: {why}"
    for suite, answers in sorted(rows.items()):
        answerable = sum(bool(row.expected) for row in answers)
        if answerable >= FEWEST and not any(map(is_informative, answers_in(answers))):
            counts = Counter(normalise(row.answer) for row in answers)
            answer, times = max(counts.items(), key=lambda item: item[1])
            yield (
                f"{suite}: the model says nothing: none of {count(len(answers), 'answer')} is informative "
                f"({times} times {answer[:_LONGEST_SHOWN]!r}), although {answerable} of the questions have "
                "an answer; allowed: at least one: prompts, chat template or max_new_tokens do not suit the "
                "model, or it does not answer questions"
            )


def truncated_in(table: Table) -> int:
    """Return how many answers were cut short."""
    return sum(row.truncated for row in answers_in(table.rows))


def answers_in(rows: Sequence[Outcome]) -> Sequence[Outcome]:
    """Return a row for each answer: as many of a fact as it was asked in wordings."""
    if not any(row.others for row in rows):
        return rows
    return [
        dataclasses.replace(
            row,
            answer=of.answer,
            label=of.label,
            rule=of.rule,
            truncated=of.truncated,
            others=(),
        )
        for row in rows
        for of in row.replies
    ]


def is_nan(values: Iterable[float]) -> bool:
    """Return True if some value is no finite number."""
    return not all(map(math.isfinite, values))


def is_informative(row: Outcome) -> bool:
    """Return True if an answer is right or wrong, and not one that says nothing or was not judged."""
    # What a judge did not decide is neither right nor wrong; MONITOR's published variant has no third label.
    return row.label != "uninformative" and row.rule not in (*UNINFORMATIVE, UNPARSABLE)


def percent(share: float) -> str:
    """Return a share (0..1) in percent, to three digits."""
    return f"{100 * share:.3g}%"


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def _never(rows: Sequence[Outcome]) -> Iterator[str]:
    """Yield what no suite can allow."""
    if not rows:
        yield "no fact was measured: zero outcomes are no measurement; allowed: at least one fact"
    if twice := len(rows) - len({row.fact_id for row in rows}):
        yield f"{count(twice, 'fact')} measured more than once: fact ids must differ"
    if nans := [row.fact_id for row in rows if is_nan(row.values)]:
        yield (
            f"values that are no number for {len(nans)} of {len(rows)} facts (first: {nans[0]}); "
            "allowed: none"
        )


def _of_rows(case: Case, table: Table) -> Iterator[Finding]:
    limits, answers = case.integrity, answers_in(table.rows)
    yield _empty(limits, answers)
    yield from _truncated(case, answers)
    yield from _unparsable(limits, answers)
    yield from _unread(case, table)
    yield repeated(limits, answers)
    yield from below_random(case, table.rows)
    yield from anchor_prob(limits, table)
    yield from first_token(limits, table)
    yield from unmoved(limits, table)


def _errored(
    limits: Integrity, total: int, measured: int, errors: Sequence[str]
) -> Finding:
    # A fact that is neither measured nor reported went missing on the way.
    lost = max(len(errors), total - measured)
    shown = "; ".join(errors[:_SHOWN]) or "nothing is known of them"
    more = f"; and {lost - _SHOWN} more" if lost > _SHOWN and errors else ""
    return check_at_most(
        limits,
        "errored",
        lost,
        total,
        f"{count(lost, 'fact')} without usable responses: {shown}{more}",
    )


def _empty(limits: Integrity, rows: Sequence[Outcome]) -> Finding:
    empty = [row for row in rows if is_empty(row)]
    if marks := sum(bool(row.answer.strip()) for row in empty):
        detail = f", {marks} of them but for thoughts or mark-up"
        remedy = (
            "the model thinks where it should answer, see enable_thinking and max_thinking_tokens of "
            "--kb-model-args, or writes mark-up alone"
        )
    elif cut := sum(row.truncated for row in empty):
        detail, remedy = f", {cut} of them cut short before an answer", _ENDLESS
    else:
        detail, remedy = (
            "",
            "the model answers nothing, or its prompts or stop strings do not suit it",
        )
    return check_at_most(
        limits,
        "empty",
        len(empty),
        len(rows),
        f"{len(empty)} of {len(rows)} answers are empty{detail}",
        remedy,
    )


def is_empty(row: Outcome) -> bool:
    """Return True if the answer to one of the wordings is blank."""
    return any(is_blank(reply.answer) for reply in row.replies)


def is_blank(answer: str) -> bool:
    """Return True if an answer is empty, or a thought alone, which is none: not even "<think>" is."""
    return not strip_wrapping(answer).strip()


def _answered(limits: Integrity, asked: int, rows: Sequence[Outcome]) -> Finding:
    answered = sum(not is_empty(row) for row in rows)
    return _finding(
        "answered",
        answered,
        asked,
        limits.answered,
        answered < limits.answered * asked - ROUNDING,
        f"{answered} of {count(asked, 'fact')} have an answer; allowed: at least "
        f"{percent(limits.answered)}: see what is empty and what has no usable response",
    )


def _truncated(case: Case, rows: Sequence[Outcome]) -> Iterator[Finding]:
    if not PROBES[case.probe].brief_answers:
        truncated, n = sum(row.truncated for row in rows), len(rows)
        yield check_at_most(
            case.integrity,
            "truncated",
            truncated,
            n,
            f"{truncated} of {n} answers are cut short",
            "raise max_new_tokens in the suite, unless the model does not stop (its end token or prompts do "
            "not suit it)"
            if any(row.truncated and not is_empty(row) for row in rows)
            else _ENDLESS,
        )


def _unparsable(limits: Integrity, rows: Sequence[Outcome]) -> Iterator[Finding]:
    # What a judge leaves undecided is missing from hallucination and wrong rate alike.
    judged = [row.rule for row in rows if row.rule in (_JUDGED, UNPARSABLE)]
    if judged:
        unread = judged.count(UNPARSABLE)
        yield check_at_most(
            limits,
            "unparsable",
            unread,
            len(judged),
            f"{unread} of {count(len(judged), 'reply', 'replies')} of the judge cannot be read",
            "this model cannot judge, or its chat template is missing",
        )


def _unread(case: Case, table: Table) -> Iterator[Finding]:
    kind = PROBES[case.probe].kind(case.slice)
    remedy = "nothing then tells whether the model keeps to its answers"
    if getattr(case.settings, "prompt", "") == "zero-shot":
        remedy += f"; the slices {kind} and {kind}-few-shot show solved ones first"
    total, unread = (
        round(sum(filter(math.isfinite, column(table, name))))
        for name in ("choices", "choices_unread")
    )
    if total:
        yield check_at_most(
            case.integrity,
            "unread",
            unread,
            total,
            f"{unread} of {total} replies to multiple-choice questions pick no option",
            remedy,
        )


def repeated(limits: Integrity, rows: Sequence[Outcome]) -> Finding:
    """Count the wrong ones among the occurrences of the answer that is wrong most often; a row an answer.

    Where it is right it is explained by the facts, and saying "unsure" again and again is honest.
    """
    counts = Counter(
        normalise(row.answer)
        for row in rows
        if is_informative(row) and row.label == "wrong"
    )
    answer, times = max(counts.items(), key=lambda item: item[1], default=("", 0))
    return check_at_most(
        limits,
        "repeated",
        times,
        len(rows),
        f"{times} of {len(rows)} facts get the same wrong answer, {answer[:_LONGEST_SHOWN]!r}",
        "the model does not answer the question, or its prompts or chat template do not suit it; an answer "
        "that says nothing belongs into the suite's 'uninformative' file",
        fewest=FEWEST,
    )


def below_random(case: Case, rows: Sequence[Outcome]) -> Iterator[Finding]:
    """Compare with a random other object of each fact's relation, over informative answers (Wilson)."""
    chance = _chances(case.facts)
    compared = [row for row in rows if is_informative(row) and row.fact_id in chance]
    n, right = len(compared), sum(row.label == "correct" for row in compared)
    control = math.fsum(chance[row.fact_id] for row in compared) / n if n else 0.0
    if control:
        high = stats.wilson(right, n)[1]
        below = n >= FEWEST and high < control
        yield _finding(
            "below_random",
            right,
            n,
            control,
            below and case.integrity.below_random == "invalid",
            f"{right} of {n} informative answers are right (at most {percent(high)}, Wilson's "
            f"interval); allowed: at least the {percent(control)} that random objects of the relation are: "
            "the accepted answers, the judge or the prompts do not suit the model",
        )


def anchor_prob(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Yield the mean probability of MONITOR's primary anchors, which eq. 3 divides by, against its least.

    MONITOR of a model that gives every right answer next to nothing is a quotient of two figures near 0: it
    says nothing about the model, and may look better than that of one which knows the facts. A fact that the
    published variant drops, because its right answer was not written, counts as one without probability;
    where it drops all, no limit lets it pass. Of fewer than :data:`FEWEST` facts the suite is asked.
    """
    anchors = column(table, "anchor")
    if not anchors or not all(map(math.isfinite, anchors)):
        return
    n_kept, n = sum(map(bool, column(table, "kept"))), len(anchors)
    total = math.fsum(anchors)
    dropped = f", {n - n_kept} of which were dropped" if n_kept < n else ""
    problem = (
        f"the right answer gets no probability behind the prompt that states it (mean {total / n:.2g} over "
        f"{count(n, 'fact')}{dropped}); allowed: a mean of at least {limits.anchor_prob:g}"
        if n_kept
        else f"the right answer is written behind the prompt that states it for none of {count(n, 'fact')}, "
        "so that none is left to measure; allowed: at least one"
    )
    yield _finding(
        "anchor_prob",
        total,
        n,
        limits.anchor_prob,
        not n_kept or (n >= FEWEST and total < limits.anchor_prob * n - ROUNDING),
        f"{problem}: the chat template or the tokenizer does not suit the model, or it knows nothing of "
        "this",
    )


def _unwritten(written: float, n: int, least: float) -> str:
    return (
        f"{written:.0f} of {n} answers begin with the token that is scored; allowed: at least "
        f"{percent(least)}: the model writes its answers otherwise (in sentences, or behind a line break): "
        "a 'lead' of each relation, or a chat template, may help"
    )


def _unmoved(still: float, n: int, most: float) -> str:
    return (
        f"{still:.0f} of {n} right answers have one and the same probability behind all of their prompts; "
        f"allowed: at most {percent(most)}: the prompts do not reach the model whole, or its scores do not "
        "depend on them"
    )


def _improbable(total: float, n: int, least: float) -> str:
    return (
        "the right answers get no probability behind the prompts that state them (mean "
        f"{total / n:.2g} over {count(n, 'fact')}); allowed: a mean of at least {least:g}: the chat template "
        "or the tokenizer does not suit the model"
    )


def first_token(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Count, of the facts that the model answers right, those whose scored first token it wrote first.

    MONITOR scores the accepted answer right behind the prompt, or behind the relation's lead. A model that
    writes its answers otherwise (in a sentence, behind a line break, with another blank) is not measured by
    it. Wrong answers count where nearly all begin with one word: so many are sentences. Single relations
    have few right answers: the limit holds over all of a suite too.
    """
    first, right = column(table, "first_token"), column(table, "cell:none:0")
    opening = _opening(table.rows)
    # Runs of older versions have no such column.
    held = [
        bool(written)
        for written, is_right, row in zip(first, right, table.rows, strict=False)
        if is_right or (opening and _first_word(row.answer) == opening)
    ]
    if held:
        n, least = len(held), limits.first_token
        sure = n >= FEWEST and stats.wilson(sum(held), n)[1] < least
        says = f"MONITOR does not measure this model: {_unwritten(sum(held), n, least)}"
        yield _finding("first_token", sum(held), n, least, sure, says)


def _opening(rows: Sequence[Outcome]) -> str:
    """Return the word that nearly all of many different answers begin with and right ones do not; else ``""``."""
    said = {row.answer.casefold() for row in rows if is_informative(row)}
    words = Counter(map(_first_word, said))
    word, times = max(words.items(), key=lambda item: item[1], default=("", 0))
    expected = sum(_first_word(row.expected) == word for row in rows)
    many = max(FEWEST, len(rows)) / 2
    nearly = _NEARLY * len(said)
    alike = len(said) >= many and times >= nearly
    return word if alike and expected <= (1 - _NEARLY) * len(rows) else ""


def _first_word(text: str) -> str:
    return (text.casefold().split() or [""])[0]


def unmoved(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Count the facts of MONITOR whose right answer has one probability (0..1) behind all prompts.

    Nothing moves them where the head of each prompt is lost on the way, and MONITOR, which measures how far
    they move, is then 0, its best. Those that are nearly 1 differ in the last digits.
    """
    terms, anchors = column(table, "term"), column(table, "anchor")
    still = [
        term <= _STILL * anchor * (1 - anchor)
        for term, anchor, is_kept in zip(
            terms, anchors, column(table, "kept"), strict=False
        )
        if is_kept
    ]
    if still:
        n, of, most = sum(still), len(still), limits.unmoved
        broken = of >= FEWEST and n > most * of + ROUNDING
        yield _finding("unmoved", n, of, most, broken, _unmoved(n, of, most))


def _chances(facts: Sequence[Fact]) -> dict[str, float]:
    """Return, by fact id, the chance (0..1) that a random object of the same relation answers the fact.

    Drawn is one of the different objects of the relation's *other* facts among ``facts``: leaving the fact's
    own out keeps a handful of facts with an object each from looking like a guess among few. Where these have
    fewer than two objects, the chance is 0. Facts without an answer (unseen knowledge) have none.
    """
    objects: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        if fact.object is not None and (name := normalise(fact.object)):
            objects[fact.relation][name] += 1
    return {
        fact.id: _chance(fact, objects[fact.relation])
        for fact in facts
        if fact.object is not None
    }


def _chance(fact: Fact, objects: Counter[str]) -> float:
    assert fact.object is not None
    own = normalise(fact.object)
    different = len(objects) - (objects[own] == 1)
    if different < _FEWEST_OBJECTS:
        return 0.0
    accepted = {normalise(name) for name in fact.accepted}
    return sum(objects[name] - (name == own) > 0 for name in accepted) / different


def check_at_most(
    limits: Integrity,
    name: str,
    value: int,
    total: int,
    problem: str,
    remedy: str = "",
    *,
    fewest: int = 0,
) -> Finding:
    """Return a share against the limit ``name``, above which it breaks unless of fewer than ``fewest``."""
    limit: float = getattr(limits, name)
    broken = total >= fewest and value > limit * total + ROUNDING
    allowed = f"at most {percent(limit)}" if limit else "none"
    says = ": ".join(filter(None, (f"{problem}; allowed: {allowed}", remedy)))
    return _finding(name, value, total, limit, broken, says)


def _finding(
    name: str, value: float, total: int, limit: float, broken: bool, says: str
) -> Finding:
    share = Share(name=name, value=value, total=total, limit=limit, broken=broken)
    return Finding(share=share, says=says)


def column(table: Table, name: str) -> list[float]:
    """Return the values of one column, one a fact; none where the table lacks it."""
    if name not in table.columns:
        return []
    index = table.columns.index(name)
    return [row.values[index] for row in table.rows]
