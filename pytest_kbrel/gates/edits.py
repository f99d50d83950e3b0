"""Edits against a baseline: what it knew says which facts count as tests, and the others are counted."""

from __future__ import annotations

import dataclasses

from pytest_kbrel.catalogue.probes import EDITS
from pytest_kbrel.gates.figures import values_of
from pytest_kbrel.gates.measurement import Pairing
from pytest_kbrel.records import CaseResult

# Why a fact is no test, by the kind of its slice.
_NOT_TESTED = {
    "keep": "contained: the baseline did not have them right",
    "follow": "followed: the baseline did not have right what they need",
    "forget": "forgotten: the baseline did not know them",
}


def forgets(result: CaseResult) -> bool:
    """Return True for a case in which a fact that is not known any more is no loss."""
    return result.probe == EDITS.name and EDITS.kind(result.slice) == "forget"


def held_against(
    result: CaseResult, pairing: Pairing | None
) -> tuple[CaseResult, tuple[str, ...]]:
    """Return a case of edits whose table tells of each fact whether it ``counted`` and ``passed``.

    It counts where its condition held in the baseline. Of the others the notes, which come second, say how many
    there are. Other cases, and those without a baseline, are returned as they are.
    """
    kind = EDITS.kind(result.slice) if result.probe == EDITS.name else None
    if pairing is None or kind not in _NOT_TESTED:
        return result, ()
    known = {
        old.fact_id: values_of(pairing.baseline, old).get("condition", 0.0)
        for _, old in pairing.rows
    }
    rows = []
    for row in result.table.rows:
        counted = known.get(row.fact_id, 0.0)
        passed = counted * values_of(result.table, row)["right"]
        values = (*row.values, counted, passed)
        rows.append(dataclasses.replace(row, values=values))
    columns = (*result.table.columns, "counted", "passed")
    table = dataclasses.replace(result.table, columns=columns, rows=tuple(rows))
    out = len(known) - round(sum(known.values()))
    told = f"{out} of {len(known)} facts left out of {_NOT_TESTED[kind]}"
    return dataclasses.replace(result, table=table), (told,) if out else ()
