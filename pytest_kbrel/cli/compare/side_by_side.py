"""Recorded models as one comparison: every case of any of them, with the result of each model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from pytest_kbrel.cli.compare.models import (
    ComparedModel,
    FigureTable,
    Key,
    case_names,
    run_settings,
    twins,
)
from pytest_kbrel.cli.compare.pairing import PairedRun, bare_run
from pytest_kbrel.records import CaseResult
from pytest_kbrel.reports.comparison import Comparison, Scatter, Side


def side_by_side(
    models: Sequence[ComparedModel],
    tables: Sequence[FigureTable],
    correlated: Sequence[Scatter],
    paired: Mapping[int, PairedRun],
    unpaired: Mapping[int, str],
) -> Comparison:
    """Return what the terminal and the page show of ``models``.

    ``paired`` are the candidates compared fact by fact, ``unpaired`` the reasons why others were not, both by
    the number of the model from 1.
    """
    names = case_names(models)
    first = {name: key for key, name in reversed(names.items()) if key[0]}
    keys = {name: first.get(name, key) for key, name in names.items()}
    nodeids = {key: "::".join(keys[name]) for key, name in names.items()}
    results = [
        _results(model, nodeids, paired.get(at))
        for at, model in enumerate(models, start=1)
    ]
    cases = (
        _united(
            suite,
            [of[nodeid] for of in results if (nodeid := f"{suite}::{case_id}") in of],
        )
        for suite, case_id in keys.values()
    )
    return Comparison(
        sides=_sides(models, results, paired, unpaired),
        cases=bare_run(models[0].name, cases),
        scatters=tuple(
            dataclasses.replace(one, nodeid="::".join(keys.get(one.within, ())))
            for one in correlated
        ),
        differing={
            "::".join(keys[table.case]): table.differing
            for table in tables
            if table.differing
        },
    )


def _sides(
    models: Sequence[ComparedModel],
    results: Sequence[Mapping[str, CaseResult]],
    paired: Mapping[int, PairedRun],
    unpaired: Mapping[int, str],
) -> tuple[Side, ...]:
    sides = []
    settings_of: dict[str, set[str]] = {}
    for model in models:
        settings_of.setdefault(model.spec, set()).add(model.setting)
    for at, (model, settings, twin) in enumerate(
        zip(models, run_settings(models), twins(models), strict=True)
    ):
        pair = paired.get(at + 1)
        other = paired.get(twin)
        # Of the same figures other answers may be lost, and other gates fail.
        if (pair and pair.run.cases) != (other and other.run.cases):
            twin = 0
        side = Side(
            number=at + 1,
            name=model.name,
            spec=model.spec,
            about=model.about,
            results=results[at],
            parameters=model.parameters,
            family=f"{model.family}, {model.setting}"
            if len(settings_of[model.spec]) > 1
            else model.family,
            settings=settings,
            unpaired=unpaired.get(at + 1, ""),
            same_as=twin,
        )
        if pair is not None:
            side = dataclasses.replace(
                side, run=pair.run, p_holm=pair.p_holm, obstacles=pair.obstacles
            )
        sides.append(side)
    return _titled(sides)


def _titled(sides: Sequence[Side]) -> tuple[Side, ...]:
    """Return models of which those with the same short name are called by their specs, where these differ."""
    times = Counter(side.short for side in sides)
    specs = Counter(side.spec for side in sides)
    return tuple(
        dataclasses.replace(side, title=side.spec)
        if times[side.short] > 1 and side.spec and specs[side.spec] == 1
        else side
        for side in sides
    )


def _results(
    model: ComparedModel, nodeids: Mapping[Key, str], pair: PairedRun | None
) -> dict[str, CaseResult]:
    """Return the results of a model by node id: those that were decided anew, else its recorded figures."""
    decided = {}
    if pair is not None:
        decided = {
            (PurePath(case.suite).name, case.id): case for case in pair.run.cases
        }
    results = {nodeids[key]: case for key, case in decided.items() if key in nodeids}
    own = {nodeids[key]: decided.get(key) or case for key, case in model.cases.items()}
    return results | own


def _united(suite: str, results: Sequence[CaseResult]) -> CaseResult:
    """Return one case with all metrics and gates that any model has in it."""
    metrics = {value.name: value for case in results for value in case.metrics}
    gates = {gate.metric: gate for case in results for gate in case.gates}
    return dataclasses.replace(
        results[0],
        suite=suite,
        n=max(case.n for case in results),
        label=next((case.label for case in results if case.label), ""),
        metrics=tuple(metrics.values()),
        gates=tuple(gates.values()),
    )
