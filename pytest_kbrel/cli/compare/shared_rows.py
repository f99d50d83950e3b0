"""The rows that two runs of another tool share: those that are paired, and what of the baseline's was lost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from statistics import mode

from pytest_kbrel.foreign import SCORE, ScoredCase, is_unbounded
from pytest_kbrel.gates.figures import Figure, mean_figure
from pytest_kbrel.gates.measurement import Obstacle, Pairing, pair
from pytest_kbrel.records import Table, record

# The share of the baseline's rows that a candidate may have no score for.
_MOST_LOST = 0.01
_NAMED = 3


@record
class Shared:
    """A metric in both runs: its ``tables``, the baseline's first, and the rows that are paired.

    ``figure`` is what the scores that are there may be. ``lost`` has the rows of the baseline whose score is not sure: the candidate has no such row, or none with
    a score, or was asked otherwise, or has the row another number of times than most. Each has the number of
    scores there should be, and of those there are; ``total`` are those there should be of all rows.
    ``higher`` is None where nothing says which way is better.
    """

    figure: Figure
    tables: tuple[Table, Table]
    pairing: Pairing
    lost: Mapping[str, tuple[int, int]]
    total: int
    higher: bool | None

    @property
    def obstacle(self) -> Obstacle | None:
        """Why the metric cannot be judged."""
        metric = self.figure.name
        counts = {id_: abs(due - there) for id_, (due, there) in self.lost.items()}
        allowed = f"of {self.total} rows of {metric}; allowed: at most {_MOST_LOST:.0%}"
        if (
            count := sum(map(counts.__getitem__, self.missing))
        ) > _MOST_LOST * self.total:
            why = (
                "have no score in the candidate alone, or stand more often than others"
            )
            return "invalid", f"{count} {why} ({first_of(self.missing)}), {allowed}"
        if (count := sum(counts.values())) > _MOST_LOST * self.total:
            return "not comparable", f"{count} were asked otherwise, {allowed}"
        if not self.tables[0].rows:
            return "not comparable", f"the baseline has no row with {metric}"
        most = [
            max((row.values[0] for row in of.rows), default=0.0) for of in self.tables
        ]
        if min(most) <= 1 < max(most) and not is_unbounded(metric):
            return "not comparable", (
                f"{metric} is at most {most[0]:g} in the baseline and {most[1]:g} in the candidate; "
                "allowed: one scale, such as shares or percent"
            )
        return None

    @property
    def missing(self) -> list[str]:
        """The rows lost that were not asked otherwise."""
        return sorted(self.lost.keys() - set(self.pairing.differing))

    def completed(self, end: int | None) -> Pairing:
        """Return the rows paired, with those lost at an end of the bounds where that is finite."""
        bounds = self.figure.bounds
        if not self.lost or end is None or math.isinf(bounds[end]):
            return self.pairing
        ours = {row.fact_id: row for row in self.pairing.candidate.rows}
        rows = []
        for row in self.tables[0].rows:
            own = ours.get(row.fact_id)
            if row.fact_id in self.lost:
                due, there = self.lost[row.fact_id]
                # Of rows too many, any may be the ones that should not be there.
                missing = bounds[end if there < due else 1 - end] * (due - there)
                total = (own.values[0] * there if own else 0.0) + missing
                value = min(max(total / due, bounds[0]), bounds[1])
                own = dataclasses.replace(
                    own or row, values=(value,), answer="(no score)"
                )
            rows.append(own or row)
        table = Table(columns=(SCORE,), rows=tuple(rows))
        return pair(table, self.tables[0], exact=True)


def shared_rows(metric: str, before: ScoredCase, after: ScoredCase) -> Shared:
    """Return the rows that both runs have of a metric, and which of the baseline's the candidate lost."""
    tables = before.tables[metric], after.tables[metric]
    pairing = pair(tables[1], tables[0], exact=True)
    had, has = (case.repeated.get(metric, {}) for case in (before, after))
    usual = mode([has.get(row.fact_id, 1) for row in tables[1].rows] or [1])
    ours = {row.fact_id: row.values[0] for row in pairing.candidate.rows}
    lost, total = {}, 0
    for row in tables[0].rows:
        id_ = row.fact_id
        due = max(had.get(id_, 1), usual)
        total += due
        there = has.get(id_, 1) if id_ in ours else 0
        # However often a row stands that is wholly right or wrong each time, it is that.
        if there < due or (there > due and ours[id_] not in (0.0, 1.0)):
            lost[id_] = due, there
    said = {case.higher.get(metric) for case in (before, after)} - {None}
    return Shared(
        figure=mean_figure(metric, SCORE, tables),
        tables=tables,
        pairing=pairing,
        lost=lost,
        total=total,
        higher=said.pop() if len(said) == 1 else None,
    )


def first_of(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    return ", ".join(listed[:_NAMED]) + (
        f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    )
