"""The noise floor: how far a model's figures may move when the same model is asked again (A/A)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from pytest_kbrel import stats
from pytest_kbrel.gates.figures import Figure, figures_of
from pytest_kbrel.gates.measurement import Measurement, comparison_of, pair
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, MetricValue, Table


def noise_floors(
    figures: Sequence[Figure], tables: Sequence[Table], again: Sequence[Table]
) -> dict[str, float]:
    """Return by name how far each figure may differ between ``tables`` and ``again``, asked of one model.

    It is the farther end of the 95 % interval of their difference, and 0 where no fact of the figure changed:
    answers that changed both ways cancel each other out in a candidate's figure as well. Figures that are
    undefined, and those without an interval, are left out.
    """
    pairings = [
        pair(second, first) for first, second in zip(tables, again, strict=True)
    ]
    floors = {}
    for figure in figures:
        if figure.of_rows or figure.lacking(
            [pairing.candidate for pairing in pairings]
        ):
            continue
        estimate = comparison_of(figure, pairings)(1.0).estimate
        if estimate.note == stats.UNCHANGED:
            floors[figure.name] = 0.0
        elif estimate.low is not None and estimate.high is not None:
            floors[figure.name] = max(abs(estimate.low), abs(estimate.high))
    return floors


def with_noise(
    measurement: Measurement, noise: Iterable[tuple[str, float]]
) -> Measurement:
    """Return a measurement whose figures that are compared with a baseline know their noise floor."""
    floors = dict(noise)
    return dataclasses.replace(
        measurement,
        figures=tuple(
            dataclasses.replace(
                one, value=dataclasses.replace(one.value, noise=floors[one.value.name])
            )
            if one.value.name in floors and one.value.baseline is not None
            else one
            for one in measurement.figures
        ),
    )


def add_noise_floors(result: CaseResult, again: Table) -> CaseResult:
    """Return a decided case with the outcomes of the second time, and the floors these make as its noise."""
    figures = figures_of(metrics_for(result.probe, result.slice, result.table.columns))
    floors = noise_floors(figures, [result.table], [again])
    return dataclasses.replace(
        result, again=again, metrics=with_own_noise(result.metrics, floors)
    )


def with_own_noise(
    metrics: Iterable[MetricValue], floors: Mapping[str, float]
) -> tuple[MetricValue, ...]:
    """Return metrics with the noise of this run's own model in place of a baseline's."""
    return tuple(
        dataclasses.replace(value, noise=floors.get(value.name)) for value in metrics
    )
