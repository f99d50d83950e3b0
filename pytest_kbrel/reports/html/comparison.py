"""The page of ``kbrel compare``: what its template is filled with, and its two plots over models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Any

from pytest_kbrel.reports import view
from pytest_kbrel.reports.comparison import CaseRow, SideBySide, severity
from pytest_kbrel.reports.formatting import count, end_of, metric_title, number
from pytest_kbrel.reports.html.page import fitted, script
from pytest_kbrel.reports.html.svg import Plot, Point, Spot
from pytest_kbrel.reports.phrases import correlation_text

# So many models have a column.
MOST_MODELS = 100
_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"))


def comparison_html(models: SideBySide) -> str:
    """Return the page of ``models``, self-contained and below 3 MB; everything a file says is escaped."""
    words = {models.worst(row) for row in models.rows} - {""}
    data: dict[str, Any] = {
        "script": script(),
        "models": models,
        "columns": models.numbered[:MOST_MODELS],
        "title": f"Comparison of {count(len(models.sides), 'model')}",
        "groups": [
            (title, _metrics(rows), rows) for title, rows in models.groups().items()
        ],
        "ids": {row.name: at for at, row in enumerate(models.rows, start=1)},
        "words": sorted(words, key=lambda word: (severity(word), word)),
        "size": size_text,
        "plots": [*_scatter(models), *_by_size(models)],
        "why_unpaired": {side.unpaired for side in models.sides if side.unpaired},
        "correlated": [one for one in models.scatters if one.pearson.r is not None],
    }
    return fitted("compare", data)


def _metrics(rows: list[CaseRow]) -> list[str]:
    """Return the key metrics of the cases of a table."""
    cases = (case for row in rows for case in row.known)
    return list(dict.fromkeys(chain.from_iterable(map(view.key_metrics, cases))))


def _point(models: SideBySide, at: int, spot: Spot) -> Point:
    return Point(spot, f"{at} {end_of(models.sides[at - 1].name, 24)}", label=str(at))


def _scatter(models: SideBySide) -> Iterator[Plot]:
    """Yield the plot of the first two figures that are correlated, those over all slices before others."""
    drawn = [one for one in models.scatters if one.pearson.r is not None]
    for one in sorted(drawn, key=lambda one: not one.whole)[:1]:
        x, y = metric_title(one.pearson.x), metric_title(one.pearson.y)
        yield Plot(
            name="scatter",
            title=f"{x} and {y}, {one.within}",
            note="A point is a model with its number in the table of models. "
            f"{correlation_text(one.pearson, one.spearman)}. {one.pearson.note}",
            about=f"{y} against {x} of {len(one.points)} models in {one.within}",
            x=x,
            y=y,
            points=[_point(models, at, (a, b)) for at, a, b in one.points],
            heads=("model", x, y),
        )


def _by_size(models: SideBySide) -> Iterator[Plot]:
    """Yield the plot of the first key metric that models of several known sizes have, a line a family."""
    for rows in models.groups().values():
        for row in rows:
            name = next(iter(_metrics(rows)), "")
            points = {
                at: (math.log10(side.parameters), value)
                for (at, side), value in zip(
                    models.numbered, row.values(name), strict=True
                )
                if side.parameters and value is not None
            }
            sizes = sorted({spot[0] for spot in points.values()})
            if len(sizes) < 2:
                continue
            families: dict[str, list[Spot]] = {}
            for at, spot in points.items():
                families.setdefault(models.sides[at - 1].family, []).append(spot)
            yield Plot(
                name="scale",
                title=f"{metric_title(name)} by size, {row.title}",
                note="A point is a model with its number in the table of models, a line a family in several "
                "sizes. The number of parameters is the recorded one; of a paper's models, that of the name.",
                about=f"{metric_title(name)} against the number of parameters of {len(points)} models",
                x="parameters",
                y=metric_title(name),
                points=[_point(models, at, spot) for at, spot in points.items()],
                lines=[
                    ("trace", sorted(line)) for line in families.values() if line[1:]
                ],
                marks=[(at, size_text(10**at)) for at in (sizes[0], sizes[-1])],
                heads=("model", "parameters", metric_title(name)),
                rows=[
                    (str(at), size_text(10**size), number(value))
                    for at, (size, value) in points.items()
                ],
            )
            return


def size_text(parameters: float) -> str:
    """Return a number of parameters as names of models have it: ``7B``, ``1.66M``."""
    for size, unit in _UNITS:
        if parameters >= size:
            return f"{parameters / size:.3g}{unit}"
    return f"{parameters:.3g}"
