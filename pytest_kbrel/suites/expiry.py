"""Questions that nobody could answer when they were made, and that somebody can answer now."""

from __future__ import annotations

import dataclasses
import datetime
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Case, Fact, Shot
from pytest_kbrel.suites.parse import WrittenSuite

_UNSURE = ' answered "unsure"'


def without_expired(
    cases: Sequence[Case], path: Path, today: datetime.date
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Leave out unseen questions whose event has come, and say in warnings which, how many and since when.

    What is left is what would have been asked before: nothing comes in their place, so that a run stays
    comparable with earlier ones. Examples answered "unsure" are left out in the same way; a question that
    was shown one is then shown another. Raises ``SuiteError`` when a case has no question left, or fewer
    such examples than it shows.
    """
    kept: list[Case] = []
    dropped: dict[str, Fact] = {}
    examples: dict[str, Shot] = {}
    lines: list[int] = []
    for case in cases:
        gone = {fact.id: fact for fact in case.facts if _expired(fact, today)}
        dropped.update(gone)
        left = tuple(fact for fact in case.facts if fact.id not in gone)
        if not left:
            first = min(fact.valid_until for fact in gone.values())
            raise SuiteError(
                f"all {len(gone)} questions of {case.id} may have an answer by now (the first since {first});"
                " allowed: some that have none: move 'as_of' and 'expires' on and bless a new baseline",
                path,
                case.line,
            )
        shots = _valid_shots(case, path, today)
        if gone or len(shots) < len(case.repository):
            lines.append(case.line)
        if len(shots) < len(case.repository):
            examples |= {shot.question: shot for shot in case.repository if shot not in shots}
        kept.append(dataclasses.replace(case, facts=left, repository=shots))
    counts: dict[tuple[str, str], int] = {}
    for fact in dropped.values():
        key = (fact.relation, fact.valid_until)
        counts[key] = counts.get(key, 0) + 1
    place = f"{path}:{min(lines, default=1)}"
    warnings = [
        f"{place}: left out {_since(count, 'question', f' of the kind {kind}', day)}"
        for (kind, day), count in sorted(counts.items())
    ]
    days = Counter(shot.valid_until for shot in examples.values())
    warnings += [
        f"{place}: left out {_since(count, 'example', _UNSURE, day)}" for day, count in sorted(days.items())
    ]
    return tuple(kept), tuple(warnings)


def dated_warnings(written: WrittenSuite, today: datetime.date) -> tuple[str, ...]:
    """Say when the unseen questions of the suite are no longer, or not yet, what they were meant to be."""
    warnings = []
    for probe in written.probes:
        unseen, place = probe.unseen, probe.entry.node.path
        if unseen is not None and today > unseen.expires:
            warnings.append(
                f"{place}:{unseen.expires_line}: the unseen questions expired on {unseen.expires}: a newer "
                "model may know their answers; move 'as_of' and 'expires' on and bless a new baseline"
            )
        if unseen is not None and today < unseen.as_of:
            warnings.append(
                f"{place}:{unseen.as_of_line}: as_of {unseen.as_of} is after today ({today}): the unseen "
                "questions are made for a later day"
            )
    return tuple(warnings)


def _valid_shots(case: Case, path: Path, today: datetime.date) -> tuple[Shot, ...]:
    wanted = case.settings.shown[1]
    if not wanted:
        return case.repository
    left = tuple(shot for shot in case.repository if not _has_come(shot.valid_until, today))
    unsure = sum(shot.answer is None for shot in left)
    if len(left) < len(case.repository) and unsure < wanted:
        raise SuiteError(
            f"{case.id} shows {wanted} examples{_UNSURE}, and {unsure} of those under "
            "'shots' have no answer by now; allowed: some that have none, or a later 'expires'",
            path,
            case.line,
        )
    return left


def _since(count: int, noun: str, sort: str, day: str) -> str:
    word, they = (noun, "it") if count == 1 else (f"{noun}s", "they")
    return f"{count} {word}{sort}: since {day} {they} may have an answer"


def _expired(fact: Fact, today: datetime.date) -> bool:
    return fact.object is None and _has_come(fact.valid_until, today)


def _has_come(day: str, today: datetime.date) -> bool:
    return day != "" and today >= datetime.date.fromisoformat(day)
