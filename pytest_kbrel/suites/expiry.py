"""Dates of a suite: unseen questions that may have an answer by the day of a run, and waivers that end."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel.bounds import shown
from pytest_kbrel.errors import SuiteError, nearest
from pytest_kbrel.facts.located import unknown
from pytest_kbrel.records import AggregateCase, Case, Shot, Waiver
from pytest_kbrel.suites.parse import WrittenSuite

_UNSURE = ' answered "unsure"'


def without_expired(
    cases: Sequence[Case], path: Path, today: datetime.date
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases without unseen questions that may have an answer by now, and warnings about these.

    No other question replaces them, so that a run stays comparable with earlier ones. Examples answered
    "unsure" are left out in the same way; a question that was shown one is then shown another. Raises
    ``SuiteError`` where a case has no question left, or fewer such examples than it shows.
    """
    now = today.isoformat()
    valid: list[Case] = []
    # By the fact's id, or the example's question: noun, sort and day.
    dropped: dict[str, tuple[str, str, str]] = {}
    lines: list[int] = []
    for case in cases:
        gone = {
            fact.id: ("question", f" of the kind {fact.relation}", fact.valid_until)
            for fact in case.facts
            if fact.object is None and "" < fact.valid_until <= now
        }
        facts, expired = tuple(f for f in case.facts if f.id not in gone), tuple(gone)
        if not facts:
            first = min(day for *_, day in gone.values())
            raise SuiteError(
                f"all {len(gone)} questions of {case.id} may have an answer by now (the first since {first});"
                " allowed: some that have none: move 'as_of' and 'expires' on and bless a new baseline",
                path,
                case.line,
            )
        shots = _valid_shots(case, path, now)
        gone |= {
            shot.question: ("example", _UNSURE, shot.valid_until)
            for shot in case.repository
            if shot not in shots
        }
        if gone:
            lines.append(case.line)
        dropped |= gone
        valid.append(
            dataclasses.replace(case, facts=facts, repository=shots, expired=expired)
        )
    prefix = f"{path}:{min(lines, default=1)}"
    warnings = []
    for (noun, sort, day), count in sorted(Counter(dropped.values()).items()):
        word, they = (noun, "it") if count == 1 else (f"{noun}s", "they")
        warnings.append(
            f"{prefix}: left out {count} {word}{sort}: since {day} {they} may have an answer"
        )
    return tuple(valid), tuple(warnings)


def expiry_warnings(written: WrittenSuite, today: datetime.date) -> tuple[str, ...]:
    """Return a warning for each probe whose unseen questions have expired, or are made for a later day."""
    warnings = []
    for probe in written.probes:
        unseen = probe.unseen
        if unseen is None:
            continue
        place = f"{probe.entry.path}:{unseen.line}"
        if today > unseen.expires:
            warnings.append(
                f"{place}: the unseen questions expired on {unseen.expires}: a newer "
                "model may know their answers; move 'as_of' and 'expires' on and bless a new baseline"
            )
        if today < unseen.as_of:
            warnings.append(
                f"{place}: as_of {unseen.as_of} is after today ({today}): the unseen "
                "questions are made for a later day"
            )
    return tuple(warnings)


def with_waivers(
    waivers: Sequence[Waiver],
    cases: Sequence[Case],
    aggregates: Sequence[AggregateCase],
    *,
    path: Path,
    today: datetime.date,
    facts: set[str],
) -> tuple[tuple[Case, ...], tuple[AggregateCase, ...]]:
    """Return the cases with their waivers: their own, and those of the facts they ask.

    ``facts`` are the ids of the suite's facts, also of those that a limit leaves out today; of made questions
    any id will do. Raises ``SuiteError`` on a waiver of what the suite does not have.
    """
    ids = [*(case.id for case in cases), *(case.id for case in aggregates)]
    dated = []
    for waiver in waivers:
        fault = ""
        if waiver.case and waiver.case not in ids:
            fault = unknown("slice", waiver.case, ids, where="waivers")
        elif waiver.fact and not (
            waiver.fact in facts or waiver.fact.startswith("unseen-")
        ):
            fault = (
                f"unknown fact {shown(waiver.fact)} in waivers; allowed: the id of one of the suite's "
                f"{len(facts)} facts{nearest(waiver.fact, sorted(facts))}"
            )
        if fault:
            raise SuiteError(fault, path, waiver.line)
        expired = today.isoformat() > waiver.expires
        dated.append(dataclasses.replace(waiver, expired=expired))

    def own(case: Case | AggregateCase) -> tuple[Waiver, ...]:
        asked = {fact.id for fact in case.facts} if isinstance(case, Case) else ()
        return tuple(
            waiver for waiver in dated if waiver.case == case.id or waiver.fact in asked
        )

    return (
        tuple(dataclasses.replace(case, waivers=own(case)) for case in cases),
        tuple(dataclasses.replace(case, waivers=own(case)) for case in aggregates),
    )


def _valid_shots(case: Case, path: Path, now: str) -> tuple[Shot, ...]:
    wanted = case.settings.shown[1]
    if not wanted:
        return case.repository
    valid = tuple(shot for shot in case.repository if not "" < shot.valid_until <= now)
    unsure = sum(shot.answer is None for shot in valid)
    if len(valid) < len(case.repository) and unsure < wanted:
        raise SuiteError(
            f"{case.id} shows {wanted} examples{_UNSURE}, and {unsure} of those under "
            "'shots' have no answer by now; allowed: some that have none, or a later 'expires'",
            path,
            case.line,
        )
    return valid
