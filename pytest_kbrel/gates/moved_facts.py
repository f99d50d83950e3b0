"""The facts that moved MONITOR's figures most, each in the frame or context in which that is seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.records import CaseResult, MovedCells, MovedFact, Place, Table

# The figures that come from probabilities. The column in which a fact of MONITOR is seen depends on the fact.
_COLUMNS = {"monitor": "", "pfd": "pfd", "ird": "ird", "anchor_prob": "anchor"}


def with_moved_facts(
    result: CaseResult,
    cells: Sequence[MovedCells],
    baseline: BaselineCase | None,
    prompt: Callable[[str, str], str],
) -> CaseResult:
    """Return a decided case of MONITOR with the fact that moved each of its figures most.

    Against a blessed run it is the fact that made the figure worse most; without one, the fact that is worst.
    Facts that were not compared are left out. ``prompt(fact_id, cell)`` is what a fact was asked in a cell.
    """
    seen = {of.fact_id: of for of in cells}
    now = _values(result.table)
    old = {} if baseline is None else _values(baseline.table)
    of_case = result.unmatched
    alone = {*of_case.added, *of_case.waived, *of_case.unanswered}
    facts = [
        fact
        for fact in now
        if fact in seen and fact not in alone and (not old or fact in old)
    ]
    if not facts:
        return result
    terms, anchors = (
        sum((old or now)[fact][column] for fact in facts)
        for column in ("term", "anchor")
    )
    monitor = terms / anchors if anchors else 0.0
    expected = {row.fact_id: row.expected for row in result.table.rows}

    def change(fact: str, column: str) -> float:
        return now[fact][column] - (old[fact][column] if old else 0.0)

    def harm(fact: str, metric: str) -> float:
        """Return by how much the fact makes the figure worse, but for a factor that all facts share."""
        if metric == "monitor":
            return change(fact, "term") - monitor * change(fact, "anchor")
        return (
            -change(fact, "anchor") if metric == "anchor_prob" else change(fact, metric)
        )

    moved = []
    for metric, name in _COLUMNS.items():
        fact = max(facts, key=lambda one: (harm(one, metric), one))
        column = name or max(("pfd", "ird"), key=lambda one: change(fact, one))
        of = seen[fact]
        cell = {"pfd": of.frame, "ird": of.context, "anchor": of.anchor}[column]
        moved.append(
            MovedFact(
                metric=metric,
                place=Place(
                    fact_id=fact,
                    cell=cell.cell,
                    prompt=prompt(fact, cell.cell),
                    answer=cell.answer,
                    probability=cell.probability,
                ),
                expected=expected[fact],
                column=column,
                now=now[fact][column],
                before=old[fact][column] if old else None,
                anchor=of.anchor.probability,
            )
        )
    return dataclasses.replace(result, moved=tuple(moved))


def _values(table: Table) -> dict[str, dict[str, float]]:
    """Return the values of the facts that MONITOR counts, by fact."""
    rows = {
        row.fact_id: dict(zip(table.columns, row.values, strict=True))
        for row in table.rows
    }
    return {
        fact: values
        for fact, values in rows.items()
        if values.get("kept") and "term" in values
    }
