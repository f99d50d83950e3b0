"""Plots over models: two figures against each other with their correlation, and a figure against the size."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from pytest_kbrel.reports import comparison as side_by_side
from pytest_kbrel.reports import view
from pytest_kbrel.reports.comparison import Comparison, Scatter, Side
from pytest_kbrel.reports.formatting import metric_title, number, p_value
from pytest_kbrel.reports.html.svg import (
    WIDTH,
    Drawing,
    Plot,
    Scale,
    cut,
    label_spots,
    scale_over,
    spread,
)

# So many plots of each kind are drawn: those over all slices come first.
MOST = 12
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, WIDTH - 12, 24, 262
_LABEL = 124
# So many points have a model's name; more have its number alone, which finds a place.
_MOST_NAMES = 10
# The labels of families to the right of a drawing: their room, the height of one, and kinds of lines.
_FAMILY, _LINE, _KINDS = 104, 12, 5
_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def scatter_plots(comparison: Comparison) -> list[Plot]:
    """Return plots of the first :data:`MOST` pairs that could be correlated, those over all slices first."""
    drawn = [one for one in comparison.scatters if one.pearson.r is not None]
    drawn.sort(key=lambda one: not one.whole)
    return [_scatter(comparison, one, at) for at, one in enumerate(drawn[:MOST])]


def _scatter(comparison: Comparison, scatter: Scatter, at: int) -> Plot:
    names = [metric_title(name) for name in (scatter.pearson.x, scatter.pearson.y)]
    across = scale_over([x for _, x, _ in scatter.points], _LEFT, _RIGHT)
    up = scale_over([y for *_, y in scatter.points], _BOTTOM, _TOP)
    drawing = Drawing(
        296,
        f"{names[1]} against {names[0]} of {len(scatter.points)} models in {scatter.within}",
    )
    drawing.x_axis(across, _TOP, _BOTTOM, names[0])
    drawing.y_axis(up, _LEFT, _RIGHT, names[1])
    labels: dict[tuple[float, float], list[tuple[int, str]]] = {}
    for of, x, y in scatter.points:
        side = comparison.sides[of - 1]
        spot = across(x), up(y)
        drawing.circle(
            *spot,
            4.5,
            f"point {_tone(side, scatter.nodeid)}",
            f"{side.short}: {number(x)}, {number(y)}",
        )
        labels.setdefault(spot, []).append((of, side.short))
    brief = len(scatter.points) > _MOST_NAMES
    for x, y, label, ends in label_spots(
        [(*spot, _label(of, brief)) for spot, of in labels.items()], (), 4.5
    ):
        drawing.text(x, y, label, "end" if ends else "")
    words = [
        f"{method} {number(one.r)} ({p_value(one.p)})"
        for method, one in (
            ("Pearson", scatter.pearson),
            ("Spearman", scatter.spearman),
        )
    ]
    colour = ", its colour the verdict on the case" if scatter.nodeid else ""
    note = f" {scatter.pearson.note}." if scatter.pearson.note else ""
    note += " Numbers are those of the models above." if brief else ""
    return Plot(
        name=f"scatter-{at + 1}",
        title=f"{names[0]} and {names[1]}, {scatter.within}",
        note=f"A point is a model{colour}. {', '.join(words)}, n = {scatter.pearson.n}.{note}",
        drawing=drawing.markup(),
        heads=("model", *names),
        rows=tuple(
            (f"{of} {comparison.sides[of - 1].short}", number(x), number(y))
            for of, x, y in scatter.points
        ),
    )


def _label(models: list[tuple[int, str]], brief: bool) -> str:
    """Return the label of the models at one point: ``2 int4``, or of several their numbers."""
    if len(models) == 1 and not brief:
        return cut(f"{models[0][0]} {models[0][1]}", _LABEL)
    return cut(", ".join(str(number) for number, _ in models), _LABEL)


def _tone(side: Side, nodeid: str) -> str:
    return (
        side_by_side.word(side, nodeid).replace(" ", "-")
        if nodeid in side.results
        else ""
    )


def scale_plots(comparison: Comparison) -> list[Plot]:
    """Return key metrics against the number of parameters, a line for each family of several sizes.

    Those over all slices come first, at most :data:`MOST`. Without two models of different known sizes there
    is none.
    """
    sides = [side for side in comparison.sides if side.parameters and not side.same_as]
    plots: list[Plot] = []
    for group in side_by_side.groups(comparison):
        for case, label in group.labelled:
            for name in group.metrics:
                points = list(_values(sides, case.nodeid, name))
                if len({side.parameters for side, _ in points}) < 2:
                    continue
                where = (
                    f"{group.title}, {label}" if len(group.cases) > 1 else group.title
                )
                plots.append(_scale(points, name, where, case.nodeid, len(plots)))
                if len(plots) == MOST:
                    return plots
    return plots


def _values(sides: list[Side], nodeid: str, name: str) -> Iterator[tuple[Side, float]]:
    for side in sides:
        value = (
            view.metric(side.results[nodeid], name) if nodeid in side.results else None
        )
        if value is not None and value.value is not None and math.isfinite(value.value):
            yield side, value.value


def _scale(
    points: list[tuple[Side, float]], name: str, where: str, nodeid: str, at: int
) -> Plot:
    title = metric_title(name)
    sizes = [math.log10(side.parameters) for side, _ in points]
    across = scale_over(sizes, _LEFT, _RIGHT - _FAMILY)
    up = scale_over([value for _, value in points], _BOTTOM, _TOP)
    drawing = Drawing(
        296,
        f"{title} against the number of parameters of {len(points)} models, {where}",
    )
    drawing.y_axis(up, _LEFT, _RIGHT - _FAMILY, title)
    _size_axis(drawing, across)
    families: dict[str, list[tuple[float, float]]] = {}
    for side, value in sorted(
        points, key=lambda point: (point[0].parameters, point[0].number)
    ):
        families.setdefault(side.family, []).append(
            (across(math.log10(side.parameters)), up(value))
        )
    curves = {
        name: spots
        for name, spots in families.items()
        if len({x for x, _ in spots}) > 1
    }
    for kind, curve in enumerate(curves.values()):
        drawing.path(curve, f"trace t{kind % _KINDS}")
    _name_families(drawing, families, [*curves])
    for side, value in points:
        spot = across(math.log10(side.parameters)), up(value)
        drawing.circle(
            *spot, 4, f"point {_tone(side, nodeid)}", f"{side.short}: {number(value)}"
        )
    return Plot(
        name=f"scale-{at + 1}",
        title=f"{title} by size, {where}",
        note=f"A point is one of {len(points)} models, a line a family in several sizes. The number of "
        "parameters is the recorded one; of a paper's models, that of the name.",
        drawing=drawing.markup(),
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


def _name_families(
    drawing: Drawing,
    families: Mapping[str, Sequence[tuple[float, float]]],
    curves: Sequence[str],
) -> None:
    """Write the families beside the drawing, each joined with its largest model.

    Where not all find a place, those of one size are left out first.
    """
    most = int((_BOTTOM - _TOP) / _LINE) + 1
    named = sorted(
        [*curves, *(name for name in families if name not in curves)][:most],
        key=lambda name: families[name][-1][1],
    )
    left = _RIGHT - _FAMILY
    places = spread([families[name][-1][1] for name in named], _LINE, _TOP, _BOTTOM)
    for name, y in zip(named, places, strict=True):
        drawing.path([families[name][-1], (left + 4, y), (left + 14, y)], "lead")
        kind = f"trace t{curves.index(name) % _KINDS}" if name in curves else ""
        if kind:
            drawing.line(left + 4, y, left + 24, y, kind)
        drawing.text(left + 28, y + 4, cut(name, _FAMILY - 16))


def _size_axis(drawing: Drawing, across: Scale) -> None:
    """Draw the marks of a logarithmic axis: powers of ten, and 2 and 5 times these where they are few."""
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9)):
        values = [
            step * 10.0**power
            for power in range(math.floor(across.low), math.ceil(across.high) + 1)
            for step in steps
            if across.low <= math.log10(step * 10.0**power) <= across.high
        ]
        if len(values) > 2:
            break
    for value in values[:: -(-len(values) // 8) or 1]:
        spot = across(math.log10(value))
        drawing.line(spot, _TOP, spot, _BOTTOM, "grid")
        drawing.text(spot, _BOTTOM + 13, size_text(value), "middle")
    drawing.text((across.start + across.end) / 2, _BOTTOM + 28, "parameters", "middle")


def size_text(parameters: float) -> str:
    """Return a number of parameters as names of models have it: ``7B``, ``1.66M``."""
    for size, unit in _UNITS:
        if parameters >= size:
            return f"{parameters / size:.3g}{unit}"
    return "0"
