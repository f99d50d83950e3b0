"""Samples of a case: a few of its facts, asked as in the whole case, with a few examples to choose from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel.errors import SuiteError
from pytest_kbrel.probes import part_of
from pytest_kbrel.probes.reliability.shots import with_shots
from pytest_kbrel.records import Case

# Examples of each kind that stand for the whole repository: all are about as long.
_EXAMPLES = 32


def sample_of(case: Case, count: int) -> Case:
    """Return the case with ``count`` of its facts, spread over all of them; raises as ``part_of`` does."""
    total = len(case.facts)
    if not total:
        return case
    facts = case.facts
    if count < total:
        facts = tuple(
            case.facts[(2 * number + 1) * total // (2 * count)]
            for number in range(count)
        )
    return with_some_shots(part_of(case, facts))


def with_some_shots(case: Case) -> Case:
    """Return the case with examples for each of its facts, as many as in a run but not the nearest ones.

    Raises ``SuiteError`` where the case has too few.
    """
    if not sum(case.settings.shown):
        return case
    answered = [shot for shot in case.repository if shot.answer is not None][:_EXAMPLES]
    others = [shot for shot in case.repository if shot.answer is None][:_EXAMPLES]
    try:
        return with_shots(
            dataclasses.replace(case, repository=(*answered, *others)), _equally_alike
        )
    except SuiteError:
        # These examples may all be about the fact's own answer.
        return with_shots(case, _equally_alike)


def _equally_alike(
    questions: Sequence[str], examples: Sequence[str]
) -> list[list[float]]:
    return [[0.0] * len(examples) for _ in questions]
