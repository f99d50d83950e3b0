"""Comparisons of models made by hand: the first model is the baseline of the others' recorded differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pytest_kbrel.baselines import case_key
from pytest_kbrel.cli.compare.recorded import case_rows, correlated
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports.comparison import Side, SideBySide


def side_of(name: str, run: Run) -> Side:
    results = {case_key(case.suite, case.id): case for case in run.cases}
    spec = run.model.spec if run.model else "base"
    size = run.model.parameters if run.model else 0
    about = "made by hand"
    return Side(
        name=name, about=about, spec=spec, parameters=size, results=results, run=run
    )


def before(case: CaseResult) -> CaseResult:
    """Return a case with the figures that the baseline had."""
    values = (
        replace(of, value=of.value if of.baseline is None else of.baseline)
        for of in case.metrics
    )
    return replace(case, metrics=tuple(values), gates=(), lost=(), gained=())


def comparison_of(candidates: Mapping[str, Run], *, first: str = "base") -> SideBySide:
    """Return the comparison of candidates, by name, with the baseline of the first of them."""
    run = next(iter(candidates.values()))
    base = replace(run, cases=tuple(map(before, run.cases)), model=None)
    sides = (
        replace(side_of(first, base), run=None),
        *(side_of(name, of) for name, of in candidates.items()),
    )
    rows = case_rows(sides)
    return SideBySide(sides=sides, rows=rows, scatters=correlated(sides, rows))
