"""The noise floor: how far a model's figures move when the same model is asked again (A/A)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import Figure, figures_of
from pytest_kbrel.gates.measurement import Measurement, pair
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, MetricValue, Table


def noise_floors(
    figures: Sequence[Figure], tables: Sequence[Table], again: Sequence[Table]
) -> dict[str, float]:
    """Return by name how far each figure moves by what changed from ``tables`` to ``again``.

    It is the sum over the facts of how far the figure moves, up or down, when that fact's answers alone are
    those of the second time: for a rate the share of facts whose value changed. Changes that cancel each
    other out this time need not do so the next. Figures that are undefined are left out.
    """
    pairings = [pair(first, second) for first, second in zip(tables, again, strict=True)]
    floors = {}
    for figure in figures:
        before = figure.sample([pairing.candidate for pairing in pairings])
        after = figure.sample([pairing.baseline for pairing in pairings])
        floor = _floor(figure, before, after)
        if math.isfinite(floor):
            floors[figure.name] = floor
    return floors


def with_noise(measurement: Measurement, noise: Iterable[tuple[str, float]]) -> Measurement:
    """Return a measurement whose figures that are compared with a baseline know their noise floor."""
    floors = dict(noise)
    return dataclasses.replace(
        measurement,
        figures=tuple(
            dataclasses.replace(one, value=dataclasses.replace(one.value, noise=floors[one.value.name]))
            if one.value.name in floors and one.value.baseline is not None
            else one
            for one in measurement.figures
        ),
    )


def add_noise_floors(result: CaseResult, again: Table) -> CaseResult:
    """Return a decided case with the outcomes of the second time, and the floors these make as its noise."""
    figures = figures_of(metrics_for(result.probe, result.slice, result.table.columns))
    floors = noise_floors(figures, [result.table], [again])
    return dataclasses.replace(result, again=again, metrics=with_own_noise(result.metrics, floors))


def with_own_noise(metrics: Iterable[MetricValue], floors: Mapping[str, float]) -> tuple[MetricValue, ...]:
    """Return metrics with the noise of this run's own model in place of a baseline's."""
    return tuple(dataclasses.replace(value, noise=floors.get(value.name)) for value in metrics)


def _floor(figure: Figure, before: stats.Sample, after: stats.Sample) -> float:
    import numpy as np

    value = figure.statistic(before.totals)
    # No sum hides it: of an undefined figure there is nothing to say, also where no answer changed.
    floor = 0.0 * float(value)
    for number, (first, second) in enumerate(zip(before.values, after.values, strict=True)):
        changed = (first != second).any(axis=1)
        if not changed.any():
            continue
        parts = list(before.totals)
        totals, n = parts[number]
        parts[number] = (totals - first[changed] + second[changed], np.full(int(changed.sum()), n))
        floor += float(np.abs(figure.statistic(parts) - value).sum())
    return floor
