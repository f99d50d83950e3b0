"""Comparisons of models made by hand: the first model is the baseline of the others' recorded differences."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from pytest_kbrel.cli.compare.models import (
    ComparedModel,
    case_of,
    correlated_points,
    figure_tables,
)
from pytest_kbrel.cli.compare.pairing import PairedRun
from pytest_kbrel.cli.compare.side_by_side import side_by_side
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports.comparison import Comparison


def key(case: CaseResult) -> tuple[str, str]:
    return PurePath(case.suite).name, case.id


def model_of(name: str, run: Run, *, baseline: bool = False) -> ComparedModel:
    """Return the model of a run, or that of the run's baseline."""
    cases = {}
    for case in run.cases:
        figures = {
            value.name: value.baseline
            if baseline and value.baseline is not None
            else value.value
            for value in case.metrics
        }
        invalid = case.verdict == "invalid"
        cases[key(case)] = case_of(
            key(case), figures, n=case.n, invalid=invalid, label=case.label
        )
    return ComparedModel(
        name=name,
        about="made by hand",
        cases=cases,
        spec=run.model.spec if run.model and not baseline else "base",
        parameters=run.model.parameters if run.model else 0,
        family="made",
    )


def comparison_of(candidates: Mapping[str, Run], *, first: str = "base") -> Comparison:
    """Return the comparison of candidates, by name, with the baseline of the first of them."""
    baseline = model_of(first, next(iter(candidates.values())), baseline=True)
    models = [baseline, *(model_of(name, run) for name, run in candidates.items())]
    paired = {
        number: PairedRun(number=number, name=name, run=run, p_holm={}, obstacles={})
        for number, (name, run) in enumerate(candidates.items(), start=2)
    }
    return side_by_side(
        models, figure_tables(models), correlated_points(models), paired, {}
    )
