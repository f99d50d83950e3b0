"""Waivers: facts left out of comparisons, failures let pass, and failures once expired."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from pytest_kbrel.records import CaseResult, Table, Waiver


def waived_facts(waivers: Iterable[Waiver]) -> tuple[str, ...]:
    """Return the ids of the facts that waivers in force leave out of comparisons, sorted."""
    return tuple(
        sorted(waiver.fact for waiver in waivers if waiver.fact and not waiver.expired)
    )


def without(table: Table, facts: Collection[str]) -> Table:
    """Return the table without the rows about ``facts``."""
    if not facts:
        return table
    return Table(
        columns=table.columns,
        rows=tuple(row for row in table.rows if row.fact_id not in facts),
    )


def under_waivers(result: CaseResult, waivers: Iterable[Waiver]) -> CaseResult:
    """Return the result with the waiver it stands under; expired ones fail it, whatever its gates say.

    A case whose responses are unsound stays ``invalid``.
    """
    waivers = tuple(waivers)
    expired = tuple(waiver for waiver in waivers if waiver.expired)
    own = tuple(waiver for waiver in waivers if waiver.case)
    return dataclasses.replace(
        result,
        verdict="fail" if expired and result.verdict != "invalid" else result.verdict,
        waiver=next(iter(expired or own), None),
        expired=expired,
    )
