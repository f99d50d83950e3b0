"""Integrity checks: whether responses are sound enough for a measurement, case by case and over a suite.

Majority answers and chance are no measurement of knowledge: ParaRel's majority baseline is perfectly
consistent (Elazar et al., "Measuring and Improving Consistency in Pretrained Language Models",
arXiv 2102.01017). Over a whole suite, a model that answers nothing but "unsure" has no wrong answer and no
hallucination, although no single case is unsound (:func:`unsound_suites`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pytest_kbrel import stats
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import count
from pytest_kbrel.judges.words import strip_wrapping
from pytest_kbrel.metrics.text import normalise
from pytest_kbrel.records import (
    UNINFORMATIVE,
    Case,
    CaseResult,
    Fact,
    Integrity,
    Outcome,
    Reply,
    Share,
    Table,
    record,
)

# A share that is exactly the limit is within it, whatever the product of limit and total rounds to.
ROUNDING = 1e-9

# Of fewer facts an honest model may well say one thing, or have one probability.
FEWEST = 10

# Of so many answers that begin alike it is said that all do.
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


_LONGER = (
    "raise max_new_tokens in the suite, unless the model does not stop (its end token or prompts do not suit "
    "it)"
)
_OFF = (
    "the model does not answer the question, or its prompts or chat template do not suit it; an answer that "
    "says nothing belongs into the suite's 'uninformative' file"
)


@record
class Soundness:
    """Integrity of a case's responses: every share measured, and what forbids a measurement, in words.

    ``broken`` is empty when the responses are sound.
    """

    shares: tuple[Share, ...]
    broken: tuple[str, ...]


# A share, and what is said of it where it is beyond its limit.
Finding = tuple[Share, str]


def check_integrity(case: Case, table: Table, errors: Sequence[str]) -> Soundness:
    """Return the shares measured of a case's responses, and which are beyond its limits (``case.integrity``).

    ``errors`` are the facts without usable responses, one text a fact; the rows of ``table`` are the others.
    Whatever the limits are, there must be a fact, none twice, and no value that is no number.
    """
    limits, rows = case.integrity, table.rows
    asked = max(len(case.facts), len(rows) + len(errors))
    n = sum(not is_empty(row) for row in rows)
    answered = _finding(
        "answered",
        n,
        asked,
        limits.answered,
        n < limits.answered * asked - ROUNDING,
        f"{n} of {count(asked, 'fact')} have an answer; allowed: at least {percent(limits.answered)}: see what "
        "is empty and what has no usable response",
    )
    # A fact that is neither measured nor reported went missing on the way.
    lost = asked - len(rows)
    shown = "; ".join(errors[:_SHOWN]) or "nothing is known of them"
    more = f"; and {lost - _SHOWN} more" if lost > _SHOWN and errors else ""
    problem = f"{count(lost, 'fact')} without usable responses: {shown}{more}"
    findings = [check_at_most(limits, "errored", lost, asked, problem)]
    if rows:
        findings += _of_answers(case, table)
        findings += below_random(case, rows)
        findings += _of_monitor(limits, table)
    broken = {share.name: says for share, says in findings if share.broken}
    said = [*broken.values()]
    at = int("errored" in broken)
    said[at:at] = _never(rows)
    # Where too many are empty or have no response, that has said it.
    if rows and answered[0].broken and not {"errored", "empty"} & broken.keys():
        said.append(answered[1])
    shares = tuple(share for share, _ in (answered, *findings))
    return Soundness(shares=shares, broken=tuple(said))


def unsound_suites(results: Iterable[CaseResult]) -> Iterator[str]:
    """Yield what to say of each suite whose sound cases, taken together, are no measurement.

    No answer of theirs says anything, to :data:`FEWEST` questions that have one or more; or MONITOR scores
    other tokens than the model writes, or that it gives next to nothing, or whatever the prompt is, which
    cases of few facts do not show.
    """
    suites: dict[str, list[CaseResult]] = {}
    for result in results:
        if result.verdict != "invalid":
            suites.setdefault(result.suite, []).append(result)
    ordered = sorted(suites.items())
    for suite, cases in ordered:
        for name, (says, sign) in _OF_MONITOR.items():
            named = [of for case in cases for of in case.integrity if of.name == name]
            n, total = sum(of.total for of in named), sum(of.value for of in named)
            allowed = math.fsum(of.limit * of.total for of in named)
            if n >= FEWEST and sign * (allowed - total) > ROUNDING:
                yield f"{suite}: {_UNMEASURED}: {says(total, n, allowed / n)}"
    for suite, cases in ordered:
        rows = [row for case in cases for row in case.table.rows]
        answerable = sum(bool(row.expected) for row in rows)
        if answerable >= FEWEST and not any(map(is_informative, answers_in(rows))):
            counts = Counter(normalise(row.answer) for row in rows)
            ((answer, times),) = counts.most_common(1)
            yield (
                f"{suite}: the model says nothing: none of {count(len(rows), 'answer')} is informative "
                f"({times} times {answer[:_LONGEST_SHOWN]!r}), although {answerable} of the questions have "
                "an answer; allowed: at least one: prompts, chat template or max_new_tokens do not suit the "
                "model, or it does not answer questions"
            )


def truncated_in(table: Table) -> int:
    """Return how many answers were cut short."""
    return sum(answer.truncated for answer in answers_in(table.rows))


def answers_in(rows: Sequence[Outcome]) -> list[Reply]:
    """Return all answers: as many to a fact as it was asked in wordings."""
    return [answer for row in rows for answer in row.replies]


def is_nan(values: Iterable[float]) -> bool:
    """Return True if some value is no finite number."""
    return not all(map(math.isfinite, values))


def is_informative(answer: Outcome | Reply) -> bool:
    """Return True if an answer is right or wrong, and not one that says nothing or was not judged."""
    # What a judge did not decide is neither right nor wrong; MONITOR's published variant has no third label.
    undecided = (*UNINFORMATIVE, UNPARSABLE)
    return answer.label != "uninformative" and answer.rule not in undecided


def percent(share: float) -> str:
    """Return a share (0..1) in percent, to three digits."""
    return f"{100 * share:.3g}%"


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


def _of_answers(case: Case, table: Table) -> Iterator[Finding]:
    """Yield what is counted of the answers, whatever they are about."""
    limits, answers = case.integrity, answers_in(table.rows)
    n = len(answers)
    blank = [answer for answer in answers if is_blank(answer.answer)]
    cut = sum(answer.truncated for answer in answers)
    blank_cut = sum(answer.truncated for answer in blank)
    detail = ""
    remedy = "the model answers nothing, or its prompts or stop strings do not suit it"
    if marks := sum(bool(answer.answer.strip()) for answer in blank):
        detail = f", {marks} of them but for thoughts or mark-up"
        remedy = (
            "the model thinks where it should answer, see enable_thinking and max_thinking_tokens of "
            "--kb-model-args, or writes mark-up alone"
        )
    elif blank_cut:
        detail, remedy = f", {blank_cut} of them cut short before an answer", _ENDLESS
    problem = f"{len(blank)} of {n} answers are empty{detail}"
    yield check_at_most(limits, "empty", len(blank), n, problem, remedy)
    if not PROBES[case.probe].brief_answers:
        problem = f"{cut} of {n} answers are cut short"
        remedy = _LONGER if cut > blank_cut else _ENDLESS
        yield check_at_most(limits, "truncated", cut, n, problem, remedy)
    # What a judge leaves undecided is missing from hallucination and wrong rate alike.
    judged = [of.rule for of in answers if of.rule in (_JUDGED, UNPARSABLE)]
    if judged:
        unread = judged.count(UNPARSABLE)
        problem = f"{unread} of {count(len(judged), 'reply', 'replies')} of the judge cannot be read"
        remedy = "this model cannot judge, or its chat template is missing"
        yield check_at_most(limits, "unparsable", unread, len(judged), problem, remedy)
    total, unread = (
        round(sum(filter(math.isfinite, column(table, name))))
        for name in ("choices", "choices_unread")
    )
    if total:
        kind = PROBES[case.probe].kind(case.slice)
        problem = (
            f"{unread} of {total} replies to multiple-choice questions pick no option"
        )
        remedy = "nothing then tells whether the model keeps to its answers"
        if getattr(case.settings, "prompt", "") == "zero-shot":
            remedy += f"; the slices {kind} and {kind}-few-shot show solved ones first"
        yield check_at_most(limits, "unread", unread, total, problem, remedy)
    # Where it is right it is explained by the facts, and saying "unsure" again and again is honest.
    wrong = (of for of in answers if of.label == "wrong" and is_informative(of))
    counts = Counter(normalise(of.answer) for of in wrong)
    answer, times = next(iter(counts.most_common(1)), ("", 0))
    problem = (
        f"{times} of {n} facts get the same wrong answer, {answer[:_LONGEST_SHOWN]!r}"
    )
    yield check_at_most(limits, "repeated", times, n, problem, _OFF, fewest=FEWEST)


def is_empty(row: Outcome) -> bool:
    """Return True if the answer to one of the wordings is blank."""
    return any(is_blank(reply.answer) for reply in row.replies)


def is_blank(answer: str) -> bool:
    """Return True if an answer is empty, or a thought alone, which is none: not even "<think>" is."""
    return not strip_wrapping(answer).strip()


def below_random(case: Case, rows: Sequence[Outcome]) -> Iterator[Finding]:
    """Compare with a random other object of each fact's relation, over informative answers (Wilson)."""
    chance = _chances(case.facts)
    compared = [
        row
        for row in rows
        if is_informative(row) and row.label != "outdated" and row.fact_id in chance
    ]
    n, right = len(compared), sum(row.label == "correct" for row in compared)
    control = math.fsum(chance[row.fact_id] for row in compared) / n if n else 0.0
    if control:
        high = stats.wilson(right, n)[1]
        yield _finding(
            "below_random",
            right,
            n,
            control,
            n >= FEWEST and high < control and case.integrity.below_random == "invalid",
            f"{right} of {n} informative answers are right (at most {percent(high)}, Wilson's "
            f"interval); allowed: at least the {percent(control)} that random objects of the relation are: "
            "the accepted answers, the judge or the prompts do not suit the model",
        )


def _of_monitor(limits: Integrity, table: Table) -> Iterator[Finding]:
    """Yield what tells whether MONITOR measures the model: what it scores must be likely, written, and moved.

    MONITOR of a model that gives every right answer next to nothing is a quotient of two figures near 0
    (eq. 3), and may look better than that of one which knows the facts. A fact that the published variant
    drops, because its right answer was not written, counts as one without probability; where it drops all,
    no limit lets it pass. MONITOR scores the accepted answer right behind the prompt, or the relation's lead:
    a model that writes its answers otherwise is not measured by it. Nothing moves the probabilities where the
    head of each prompt is lost on the way, and MONITOR is then 0, its best; those that are nearly 1 differ in
    the last digits. What few facts do not show is asked of the suite. Wrong answers that are sentences tell
    how answers are written as right ones do.
    """
    anchors, kept = column(table, "anchor"), column(table, "kept")
    n, n_kept, total = len(anchors), sum(map(bool, kept)), math.fsum(anchors)
    if anchors and math.isfinite(total):
        dropped = f", {n - n_kept} of which were dropped" if n_kept < n else ""
        problem = (
            f"the right answer gets no probability behind the prompt that states it (mean {total / n:.2g} over "
            f"{count(n, 'fact')}{dropped}); allowed: a mean of at least {limits.anchor_prob:g}"
            if n_kept
            else f"the right answer is written behind the prompt that states it for none of {count(n, 'fact')}, "
            "so that none is left to measure; allowed: at least one"
        )
        low = n >= FEWEST and total < limits.anchor_prob * n - ROUNDING
        yield _finding(
            "anchor_prob",
            total,
            n,
            limits.anchor_prob,
            not n_kept or low,
            f"{problem}: the chat template or the tokenizer does not suit the model, or it knows nothing of "
            "this",
        )
    opening = _opening(table.rows)
    # Runs of older versions have no such column.
    scored = zip(
        column(table, "first_token"),
        column(table, "cell:none:0"),
        table.rows,
        strict=False,
    )
    held = [
        bool(written)
        for written, is_right, row in scored
        if is_right or (opening and _first_word(row.answer) == opening)
    ]
    if held:
        n, least, written = len(held), limits.first_token, sum(held)
        sure = n >= FEWEST and stats.wilson(written, n)[1] < least
        says = f"{_UNMEASURED}: {_unwritten(written, n, least)}"
        yield _finding("first_token", written, n, least, sure, says)
    moves = zip(column(table, "term"), anchors, kept, strict=False)
    still = [term <= _STILL * of * (1 - of) for term, of, is_kept in moves if is_kept]
    if still:
        n, most = len(still), limits.unmoved
        broken = n >= FEWEST and sum(still) > most * n + ROUNDING
        says = _unmoved(sum(still), n, most)
        yield _finding("unmoved", sum(still), n, most, broken, says)


def _opening(rows: Sequence[Outcome]) -> str:
    """Return the word that nearly all of many different answers begin with and right ones do not; else ``""``."""
    said = {row.answer.casefold() for row in rows if is_informative(row)}
    words = Counter(map(_first_word, said))
    word, times = next(iter(words.most_common(1)), ("", 0))
    expected = sum(_first_word(row.expected) == word for row in rows)
    many = len(said) >= max(FEWEST, len(rows)) / 2
    alike = times >= _NEARLY * len(said) and expected <= (1 - _NEARLY) * len(rows)
    return word if many and alike else ""


def _first_word(text: str) -> str:
    return (text.casefold().split() or [""])[0]


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


_UNMEASURED = "MONITOR does not measure this model"
# What is held against a limit over a suite too: in words, and 1 where the limit is the least.
_OF_MONITOR = {
    "first_token": (_unwritten, 1),
    "anchor_prob": (_improbable, 1),
    "unmoved": (_unmoved, -1),
}


def _chances(facts: Sequence[Fact]) -> dict[str, float]:
    """Return, by fact id, the chance (0..1) that a random object of the same relation answers the fact.

    Drawn is one of the different objects of the relation's *other* facts among ``facts``: leaving the fact's
    own out keeps a handful of facts with an object each from looking like a guess among few. Where these have
    fewer than two objects, the chance is 0. Facts without an answer (unseen knowledge) have none.
    """
    own = {fact.id: normalise(fact.object) for fact in facts if fact.object is not None}
    objects: dict[str, Counter[str]] = defaultdict(Counter)
    for fact in facts:
        if own.get(fact.id):
            objects[fact.relation][own[fact.id]] += 1
    chances = {}
    for fact in facts:
        if fact.id in own:
            counts, name = objects[fact.relation], own[fact.id]
            different = len(counts) - (counts[name] == 1)
            accepted = {normalise(answer) for answer in fact.accepted}
            right = sum(counts[answer] > (answer == name) for answer in accepted)
            is_draw = different >= _FEWEST_OBJECTS
            chances[fact.id] = right / different if is_draw else 0.0
    return chances


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
    return share, says


def column(table: Table, name: str) -> list[float]:
    """Return the values of one column, one a fact; none where the table lacks it."""
    if name not in table.columns:
        return []
    index = table.columns.index(name)
    return [row.values[index] for row in table.rows]
