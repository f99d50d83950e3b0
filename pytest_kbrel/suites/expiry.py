"""Unseen questions whose answers have come to exist: they are left out, and the user is warned."""

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
    """Return the cases without unseen questions that may have an answer by now, and warnings about these.

    No other question replaces them, so that a run stays comparable with earlier ones. Examples answered
    "unsure" are left out in the same way; a question that was shown one is then shown another. Raises
    ``SuiteError`` where a case has no question left, or fewer such examples than it shows.
    """
    valid: list[Case] = []
    dropped: dict[str, Fact] = {}
    examples: dict[str, Shot] = {}
    lines: list[int] = []
    for case in cases:
        gone = {fact.id: fact for fact in case.facts if _expired(fact, today)}
        dropped.update(gone)
        facts = tuple(fact for fact in case.facts if fact.id not in gone)
        if not facts:
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
        valid.append(dataclasses.replace(case, facts=facts, repository=shots))
    counts = Counter((fact.relation, fact.valid_until) for fact in dropped.values())
    prefix = f"{path}:{min(lines, default=1)}"
    warnings = [
        f"{prefix}: left out {_since(count, 'question', f' of the kind {kind}', day)}"
        for (kind, day), count in sorted(counts.items())
    ]
    days = Counter(shot.valid_until for shot in examples.values())
    warnings += [
        f"{prefix}: left out {_since(count, 'example', _UNSURE, day)}" for day, count in sorted(days.items())
    ]
    return tuple(valid), tuple(warnings)


def expiry_warnings(written: WrittenSuite, today: datetime.date) -> tuple[str, ...]:
    """Return a warning for each probe whose unseen questions have expired, or are made for a later day."""
    warnings = []
    for probe in written.probes:
        unseen, path = probe.unseen, probe.entry.node.path
        if unseen is not None and today > unseen.expires:
            warnings.append(
                f"{path}:{unseen.expires_line}: the unseen questions expired on {unseen.expires}: a newer "
                "model may know their answers; move 'as_of' and 'expires' on and bless a new baseline"
            )
        if unseen is not None and today < unseen.as_of:
            warnings.append(
                f"{path}:{unseen.as_of_line}: as_of {unseen.as_of} is after today ({today}): the unseen "
                "questions are made for a later day"
            )
    return tuple(warnings)


def _valid_shots(case: Case, path: Path, today: datetime.date) -> tuple[Shot, ...]:
    wanted = case.settings.shown[1]
    if not wanted:
        return case.repository
    valid = tuple(shot for shot in case.repository if not _has_come(shot.valid_until, today))
    unsure = sum(shot.answer is None for shot in valid)
    if len(valid) < len(case.repository) and unsure < wanted:
        raise SuiteError(
            f"{case.id} shows {wanted} examples{_UNSURE}, and {unsure} of those under "
            "'shots' have no answer by now; allowed: some that have none, or a later 'expires'",
            path,
            case.line,
        )
    return valid


def _since(count: int, noun: str, sort: str, day: str) -> str:
    word, they = (noun, "it") if count == 1 else (f"{noun}s", "they")
    return f"{count} {word}{sort}: since {day} {they} may have an answer"


def _expired(fact: Fact, today: datetime.date) -> bool:
    return fact.object is None and _has_come(fact.valid_until, today)


def _has_come(day: str, today: datetime.date) -> bool:
    return day != "" and today >= datetime.date.fromisoformat(day)
