"""Questions that nobody could answer when they were made, and that somebody can answer now."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from pathlib import Path

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.records import Case, Fact


def without_expired(
    cases: Sequence[Case], path: Path, today: datetime.date
) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Leave out unseen questions whose event has come, and say in warnings which, how many and since when.

    What is left is what would have been asked before: nothing comes in their place, so that a run stays
    comparable with earlier ones. Raises ``SuiteError`` when a case has no question left.
    """
    kept: list[Case] = []
    dropped: dict[str, Fact] = {}
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
        kept.append(dataclasses.replace(case, facts=left) if gone else case)
    counts: dict[tuple[str, str], int] = {}
    for fact in dropped.values():
        key = (fact.relation, fact.valid_until)
        counts[key] = counts.get(key, 0) + 1
    return tuple(kept), tuple(
        f"{path}: left out {count} question{'' if count == 1 else 's'} of the kind {kind}: "
        f"since {day} {'it' if count == 1 else 'they'} may have an answer"
        for (kind, day), count in sorted(counts.items())
    )


def _expired(fact: Fact, today: datetime.date) -> bool:
    return (
        fact.object is None
        and fact.valid_until != ""
        and today >= datetime.date.fromisoformat(fact.valid_until)
    )
