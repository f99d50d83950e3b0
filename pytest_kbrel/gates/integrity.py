"""Whether responses are any ground for a measurement: asked before anything is measured on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.gates.degenerate_answers import (
    UNPARSABLE,
    anchor_prob,
    below_random,
    constant,
    first_token,
    repeated,
)
from pytest_kbrel.gates.integrity_findings import ROUNDING, Finding, column, count, most, percent
from pytest_kbrel.judges.rules import strip_wrapping
from pytest_kbrel.records import Case, Integrity, Outcome, Share, Table, record

_SHOWN = 3
# The rule of outcomes that a model as judge decided.
_JUDGED = "judge"
# More tokens for the answer help nobody who does not come to it.
_ENDLESS = (
    "raise max_thinking_tokens of --kb-model-args, unless the thoughts end nowhere (the chat template does "
    "not suit the model)"
)


@record
class Soundness:
    """What was found of a case's responses: every share measured, and what forbids a measurement, in words.

    ``broken`` is empty when the responses are sound.
    """

    shares: tuple[Share, ...]
    broken: tuple[str, ...]


def integrity(case: Case, table: Table, errors: Sequence[str]) -> Soundness:
    """Hold a case's responses against its limits (``case.integrity``).

    ``errors`` are the facts without usable responses, one text a fact; the rows of ``table`` are the others.
    Whatever the limits are, there must be a fact, none twice, and no value that is no number.
    """
    limits, rows = case.integrity, table.rows
    asked = max(len(case.facts), len(rows) + len(errors))
    errored, answered = _errored(limits, asked, len(rows), errors), _answered(limits, asked, rows)
    found = list(_of_rows(case, table)) if rows else []
    broken = [errored.says] if errored.share.broken else []
    broken += _never(rows)
    broken += [finding.says for finding in found if finding.share.broken]
    # Where too many are empty or have no response, that has said it.
    told = {finding.share.name for finding in (errored, *found) if finding.share.broken}
    if rows and answered.share.broken and told.isdisjoint(("errored", "empty")):
        broken.append(answered.says)
    shares = tuple(finding.share for finding in (answered, errored, *found))
    return Soundness(shares=shares, broken=tuple(broken))


def truncated_in(table: Table) -> int:
    """Return how many answers were cut short."""
    return sum(row.truncated for row in table.rows)


def is_nan(values: Iterable[float]) -> bool:
    """Tell whether some value is no finite number."""
    return not all(map(math.isfinite, values))


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
    limits, rows = case.integrity, table.rows
    yield _empty(limits, rows)
    yield from _truncated(case, table)
    yield from _unparsable(limits, rows)
    yield from _unread(limits, table)
    yield repeated(limits, rows)
    yield from below_random(case, rows)
    yield from constant(limits, table)
    yield from anchor_prob(limits, table)
    yield from first_token(limits, table)


def _errored(limits: Integrity, asked: int, measured: int, errors: Sequence[str]) -> Finding:
    # A fact that is neither measured nor reported went missing on the way.
    lost = max(len(errors), asked - measured)
    shown = "; ".join(errors[:_SHOWN]) or "nothing is known of them"
    more = f"; and {lost - _SHOWN} more" if lost > _SHOWN and errors else ""
    return most(
        limits, "errored", lost, asked, f"{count(lost, 'fact')} without usable responses: {shown}{more}"
    )


def _empty(limits: Integrity, rows: Sequence[Outcome]) -> Finding:
    empty = [row for row in rows if _is_empty(row)]
    if marks := sum(bool(row.answer.strip()) for row in empty):
        told = f", {marks} of them but for thoughts or mark-up"
        remedy = (
            "the model thinks where it should answer, see enable_thinking and max_thinking_tokens of "
            "--kb-model-args, or writes mark-up alone"
        )
    elif cut := sum(row.truncated for row in empty):
        told, remedy = f", {cut} of them cut short before an answer", _ENDLESS
    else:
        told, remedy = "", "the model answers nothing, or its prompts or stop strings do not suit it"
    return most(
        limits,
        "empty",
        len(empty),
        len(rows),
        f"{len(empty)} of {len(rows)} answers are empty{told}",
        remedy,
    )


def _is_empty(row: Outcome) -> bool:
    # A thought is no answer, and "<think>" alone not even one.
    return not strip_wrapping(row.answer).strip()


def _answered(limits: Integrity, asked: int, rows: Sequence[Outcome]) -> Finding:
    answered = sum(not _is_empty(row) for row in rows)
    share = Share(
        name="answered",
        value=answered,
        total=asked,
        limit=limits.answered,
        broken=answered < limits.answered * asked - ROUNDING,
    )
    return Finding(
        share=share,
        says=f"{answered} of {count(asked, 'fact')} have an answer; allowed: at least "
        f"{percent(limits.answered)}: see what is empty and what has no usable response",
    )


def _truncated(case: Case, table: Table) -> Iterator[Finding]:
    if not PROBES[case.probe].brief_answers:
        truncated, n = truncated_in(table), len(table.rows)
        yield most(
            case.integrity,
            "truncated",
            truncated,
            n,
            f"{truncated} of {n} answers are cut short",
            "raise max_new_tokens in the suite, unless the model does not stop (its end token or prompts do "
            "not suit it)"
            if any(row.truncated and not _is_empty(row) for row in table.rows)
            else _ENDLESS,
        )


def _unparsable(limits: Integrity, rows: Sequence[Outcome]) -> Iterator[Finding]:
    # What a judge leaves undecided is missing from hallucination and wrong rate alike.
    asked = [row.rule for row in rows if row.rule in (_JUDGED, UNPARSABLE)]
    if asked:
        unread = asked.count(UNPARSABLE)
        yield most(
            limits,
            "unparsable",
            unread,
            len(asked),
            f"{unread} of {count(len(asked), 'reply', 'replies')} of the judge cannot be read",
            "this model cannot judge, or its chat template is missing",
        )


def _unread(limits: Integrity, table: Table) -> Iterator[Finding]:
    asked, unread = (
        round(sum(filter(math.isfinite, column(table, name)))) for name in ("choices", "choices_unread")
    )
    if asked:
        yield most(
            limits,
            "unread",
            unread,
            asked,
            f"{unread} of {asked} replies to multiple-choice questions pick no option",
            "nothing then tells whether the model keeps to its answers",
        )
