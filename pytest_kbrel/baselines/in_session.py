"""A baseline that no file holds: the answers of a model that was asked in the same session."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_kbrel.baselines.base import Baseline, BaselineCase
from pytest_kbrel.baselines.format import case_key
from pytest_kbrel.records import Fingerprint, Table

# A case's suite, id, outcomes and settings.
Answered = tuple[str, str, Table, tuple[tuple[str, str], ...]]


def session_baseline(
    model: Fingerprint, cases: Iterable[Answered], *, judge: str, helpers: Iterable[Fingerprint] = ()
) -> Baseline:
    """Return what ``model`` answered in these cases, as if it had been blessed.

    ``judge`` is who judges the answers of both models in this session; ``helpers`` are the models that judge
    or write distractors.
    """
    found = {
        case_key(suite, case_id): BaselineCase(
            key=case_key(suite, case_id), table=table, metrics=(), settings=settings
        )
        for suite, case_id, table, settings in cases
    }
    return Baseline(
        path=Path(),
        kbrel_version="",
        created="",
        reason="",
        commit="",
        versions=(),
        model=model,
        settings=(("judge", judge),),
        cases=found,
        helpers=tuple(helpers),
    )
