"""The page of ``kbrel compare``: what its template is filled with, and its plots over models."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pytest_kbrel.records import CaseResult, GateResult, MetricValue
from pytest_kbrel.reports import comparison as side_by_side
from pytest_kbrel.reports import view
from pytest_kbrel.reports.cases import metric
from pytest_kbrel.reports.comparison import Comparison, Scatter, Side
from pytest_kbrel.reports.formatting import count, metric_title, number
from pytest_kbrel.reports.html.page import anchors, fitted, script
from pytest_kbrel.reports.html.svg import Marks, Plot, Point, Spot
from pytest_kbrel.reports.phrases import correlation_text
from pytest_kbrel.reports.view import Group

# So many models have a column.
MOST_MODELS = 100
# So many plots of each kind are drawn: those over all slices come first.
_MOST = 12
_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def comparison_html(comparison: Comparison) -> str:
    """Return the page of ``comparison``, self-contained and below 3 MB; everything a file says is escaped."""
    return fitted("compare", _data(comparison))


def _data(comparison: Comparison) -> dict[str, Any]:
    groups = side_by_side.groups(comparison)
    columns = [side for side in comparison.sides if not side.same_as]
    words = {
        case.nodeid: side_by_side.worst_word(comparison, case.nodeid)
        for case in comparison.cases.cases
    }
    return {
        "script": script(),
        "comparison": comparison,
        "columns": columns[:MOST_MODELS],
        "more_columns": len(columns) - MOST_MODELS,
        "title": f"Comparison of {count(len(comparison.sides), 'model')}",
        "anchors": anchors(comparison.cases),
        "groups": [
            (
                group,
                list(_rows(comparison, group)),
                view.better(group.cases, group.metrics[0] if group.metrics else ""),
            )
            for group in groups
        ],
        "words": sorted(
            {*words.values()} - {""},
            key=lambda word: (side_by_side.severity(word), word),
        ),
        "worst": words,
        "side_by_side": side_by_side,
        "unasked": partial(side_by_side.unasked_count, comparison),
        "values_of": _values,
        "judged_of": _judged,
        "size": size_text,
        "scatters": _scatter_plots(comparison),
        "scales": _scale_plots(comparison),
        "most_plots": _MOST,
        "why_unpaired": {side.unpaired for side in comparison.sides if side.unpaired},
        "correlated": [one for one in comparison.scatters if one.pearson.r is not None],
        "too_few": sum(one.pearson.r is None for one in comparison.scatters),
    }


def _rows(comparison: Comparison, group: Group) -> Iterator[tuple[CaseResult, str]]:
    """Yield the cases of a table with their names, those that failed in any model first."""
    labelled = {case.nodeid: (case, label) for case, label in group.labelled}
    for nodeid in side_by_side.failed_first(comparison, labelled):
        yield labelled[nodeid]


def _values(case: CaseResult, group: Group) -> list[MetricValue]:
    """Return the key metrics of a model in a case, those it has."""
    values = (metric(case, name) for name in group.metrics)
    return [value for value in values if value is not None]


def _judged(side: Side, nodeid: str) -> tuple[GateResult, ...]:
    """Return the gates of a model that did not pass in a case."""
    gates = side.results[nodeid].gates if side.run and nodeid in side.results else ()
    return tuple(gate for gate in gates if gate.verdict != "pass")


def _scatter_plots(comparison: Comparison) -> list[Plot]:
    """Return plots of the first :data:`_MOST` pairs that could be correlated, those over all slices first."""
    drawn = [one for one in comparison.scatters if one.pearson.r is not None]
    drawn.sort(key=lambda one: not one.whole)
    return [_scatter(comparison, one, at) for at, one in enumerate(drawn[:_MOST])]


def _scatter(comparison: Comparison, pair: Scatter, at: int) -> Plot:
    x, y = metric_title(pair.pearson.x), metric_title(pair.pearson.y)
    points = [
        _point(comparison.sides[number - 1], at, pair.nodeid)
        for number, *at in pair.points
    ]
    colour = ", its colour the verdict on the case" if pair.nodeid else ""
    note = f" {pair.pearson.note}." if pair.pearson.note else ""
    return Plot(
        name=f"scatter-{at + 1}",
        title=f"{x} and {y}, {pair.within}",
        note=f"A point is a model with its number in the table of models{colour}. "
        f"{correlation_text(pair.pearson, pair.spearman)}.{note}",
        about=f"{y} against {x} of {len(points)} models in {pair.within}",
        x=x,
        y=y,
        points=points,
        heads=("model", x, y),
    )


def _point(side: Side, at: Sequence[float], nodeid: str) -> Point:
    """Return the point of a model, in the colour of its verdict on a case."""
    tone = side_by_side.word(side, nodeid) if nodeid in side.results else ""
    name = f"{side.number} {side.short}"
    return Point((at[0], at[1]), name, tone, str(side.number))


def _scale_plots(comparison: Comparison) -> list[Plot]:
    """Return key metrics against the number of parameters, a line for each family of several sizes.

    Those over all slices come first, at most :data:`_MOST`. Without two models of different known sizes there
    is none.
    """
    sides = [side for side in comparison.sides if side.parameters and not side.same_as]
    plots: list[Plot] = []
    for group in side_by_side.groups(comparison):
        for case, label in group.labelled:
            for name in group.metrics:
                points = list(_at_sizes(sides, case.nodeid, name))
                if len({side.parameters for side, _ in points}) < 2:
                    continue
                where = group.title + (f", {label}" if group.cases[1:] else "")
                plots.append(_size_plot(points, name, where, case.nodeid, len(plots)))
                if len(plots) == _MOST:
                    return plots
    return plots


def _at_sizes(
    sides: list[Side], nodeid: str, name: str
) -> Iterator[tuple[Side, float]]:
    for side in sides:
        case = side.results.get(nodeid)
        value = metric(case, name) if case is not None else None
        if value is not None and value.value is not None and math.isfinite(value.value):
            yield side, value.value


def _size_plot(
    points: list[tuple[Side, float]], name: str, where: str, nodeid: str, at: int
) -> Plot:
    title = metric_title(name)
    families: dict[str, list[Spot]] = {}
    drawn: list[Point] = []
    for side, value in points:
        spot = math.log10(side.parameters), value
        families.setdefault(side.family, []).append(spot)
        drawn.append(_point(side, spot, nodeid))
    sizes = [point.at[0] for point in drawn]
    return Plot(
        name=f"scale-{at + 1}",
        title=f"{title} by size, {where}",
        note=f"A point is one of {len(points)} models with its number in the table of models, a line a family "
        "in several sizes. The number of parameters is the recorded one; of a paper's models, that of the name.",
        about=f"{title} against the number of parameters of {len(points)} models, {where}",
        x="parameters",
        y=title,
        points=drawn,
        lines=[
            ("trace", sorted(line, key=lambda spot: spot[0]))
            for line in families.values()
            if len(dict(line)) > 1
        ],
        marks=_size_marks(min(sizes), max(sizes)),
        heads=("model", "family", "parameters", title),
        rows=tuple(
            (
                f"{side.number} {side.short}",
                side.family,
                f"{side.parameters:,}",
                number(value),
            )
            for side, value in points
        ),
    )


def _size_marks(low: float, high: float) -> Marks:
    """Return the marks of a logarithmic axis: powers of ten, or its ends where there are too few of these."""
    powers = range(math.ceil(low), math.floor(high) + 1)
    ends = sorted({low, high})
    return [(at, size_text(10**at)) for at in (powers if len(powers) > 1 else ends)]


def size_text(parameters: float) -> str:
    """Return a number of parameters as names of models have it: ``7B``, ``1.66M``."""
    for size, unit in _UNITS:
        if parameters >= size:
            return f"{parameters / size:.3g}{unit}"
    return "0"
