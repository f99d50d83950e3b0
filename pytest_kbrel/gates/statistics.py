"""Figures: metrics as statistics over the tables of one case or of several."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal

from pytest_kbrel import stats
from pytest_kbrel.metrics import MetricFormula
from pytest_kbrel.records import Table, record

_fact_of = operator.attrgetter("fact_id")


@record
class Figure:
    """A metric of one case, or one over several cases ("members").

    ``columns`` has (member number, column names) for each member concerned; ``statistic`` takes their
    (totals, n) in this order. The other fields are those of :class:`pytest_kbrel.metrics.Metric`.
    """

    name: str
    better: Literal["higher", "lower"]
    columns: tuple[tuple[int, tuple[str, ...]], ...]
    statistic: stats.Statistic
    bounds: tuple[float, float] = (0.0, 1.0)
    rate: bool = False
    over: str = ""
    undefined: str = "no fact"
    vacuous: bool = False

    def count(self, tables: Sequence[Table]) -> int:
        """Return the number of facts the figure is over, all members together, each once."""
        counts, facts = 0.0, set()
        for member, _ in self.columns:
            table = tables[member]
            if self.over in table.columns:
                column = table.columns.index(self.over)
                counts += sum(row.values[column] for row in table.rows)
            else:
                facts |= {row.fact_id for row in table.rows}
        return round(counts) + len(facts)

    def weight(self, tables: Sequence[Table]) -> int:
        """Return of how many facts, at least, one is: no fact moves the figure by more than that share."""
        counts = []
        for member, _ in self.columns:
            table = tables[member]
            if self.over in table.columns:
                column = table.columns.index(self.over)
                counts.append(round(sum(row.values[column] for row in table.rows)))
            else:
                counts.append(len(table.rows))
        facts = {row.fact_id for member, _ in self.columns for row in tables[member].rows}
        return max(min(len(counts) * min(counts), len(facts)), 1)

    def lacking(self, tables: Sequence[Table]) -> tuple[str, ...]:
        """Return the columns the figure needs and the tables do not have."""
        return tuple(
            f"{name!r}"
            for member, names in self.columns
            for name in names
            if name not in tables[member].columns
        )

    def sample(self, tables: Sequence[Table]) -> stats.Sample:
        """Return the figure's columns of its members, rows in the order of fact ids."""
        values, facts = [], []
        for member, names in self.columns:
            table = tables[member]
            places = [table.columns.index(name) for name in names]
            rows = sorted(table.rows, key=_fact_of)
            values.append([[row.values[place] for place in places] for row in rows])
            facts.append(tuple(map(_fact_of, rows)))
        return stats.sample(values, facts, [len(names) for _, names in self.columns])

    def value(self, tables: Sequence[Table]) -> float | None:
        """Return the figure itself; ``None`` where it is undefined."""
        found = float(self.statistic(self.sample(tables).totals))
        return None if found != found else found

    def estimate(self, tables: Sequence[Table]) -> stats.Estimate:
        """Return the figure with its interval."""
        return stats.estimate(
            self.sample(tables),
            self.statistic,
            bounds=self.bounds,
            rate=self.rate,
            facts=self.weight(tables),
        )


def figures_of(metrics: Sequence[MetricFormula]) -> tuple[Figure, ...]:
    """Return metrics as figures of a single case."""
    return tuple(figure_of(metric) for metric in metrics)


def figure_of(metric: MetricFormula) -> Figure:
    """Return a metric as the figure of a single case."""
    return Figure(
        name=metric.name,
        better=metric.better,
        columns=((0, metric.columns),),
        statistic=lambda parts: metric.formula(*parts[0]),
        bounds=metric.bounds,
        rate=metric.rate,
        over=metric.over,
        undefined=metric.undefined,
        vacuous=metric.vacuous,
    )
