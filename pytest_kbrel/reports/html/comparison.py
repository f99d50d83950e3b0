"""The page of ``kbrel compare``: what its template is filled with, and its two plots over models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_kbrel.reports.comparison import CaseRow, SideBySide, severity
from pytest_kbrel.reports.formatting import count, end_of, metric_title
from pytest_kbrel.reports.html.page import fitted
from pytest_kbrel.reports.html.plots import Plot, Point, Spot
from pytest_kbrel.reports.phrases import correlation_text
from pytest_kbrel.reports.view import key_figures

# So many models have a column.
MOST_MODELS = 100


def comparison_html(models: SideBySide) -> str:
    """Return the page of ``models``, self-contained and below 3 MB; everything a file says is escaped."""
    words = {models.worst(row) for row in models.rows} - {""}
    data: dict[str, Any] = {
        "models": models,
        "columns": models.numbered[:MOST_MODELS],
        "title": f"Comparison of {count(len(models.sides), 'model')}",
        "groups": [
            (title, _metrics(rows), rows) for title, rows in models.groups().items()
        ],
        "ids": {row.name: at for at, row in enumerate(models.rows, start=1)},
        "words": sorted(words, key=lambda word: (severity(word), word)),
        "plots": [*_scatter(models), *_by_size(models)],
        "why_unpaired": {side.unpaired for side in models.sides if side.unpaired},
        "correlated": [one for one in models.scatters if one.pearson.r is not None],
    }
    return fitted("compare", data)


def _metrics(rows: list[CaseRow]) -> list[str]:
    """Return the key metrics of the cases of a table."""
    cases = (case for row in rows for case in row.known)
    return list(dict.fromkeys(of.name for case in cases for of in key_figures(case)))


def _point(models: SideBySide, at: int, spot: Spot) -> Point:
    return Point(spot, f"{at} {end_of(models.sides[at - 1].name, 24)}", label=str(at))


def _scatter(models: SideBySide) -> Iterator[Plot]:
    """Yield the plot of the first two figures that are correlated, those over all slices before others."""
    drawn = [one for one in models.scatters if one.pearson.r is not None]
    for one in sorted(drawn, key=lambda one: not one.whole)[:1]:
        names = one.pearson.x, one.pearson.y
        x, y = map(metric_title, names)
        points = {
            at: (a, b)
            for at, of in one.figures.items()
            if (a := of.get(names[0])) is not None
            and (b := of.get(names[1])) is not None
        }
        yield Plot(
            name="scatter",
            title=f"{x} and {y}, {one.within}",
            note="A point is a model with its number in the table of models. "
            f"{correlation_text(one.pearson, one.spearman)}. {one.pearson.note}",
            about=f"{y} against {x} of {len(points)} models in {one.within}",
            x=x,
            y=y,
            points=[_point(models, at, spot) for at, spot in points.items()],
            heads=("model", x, y),
        )


def _by_size(models: SideBySide) -> Iterator[Plot]:
    """Yield the plot of the first key metric that models of several known sizes have, a line a family."""
    for rows in models.groups().values():
        for row in rows:
            name = next(iter(_metrics(rows)), "")
            points = {
                at: (side.parameters / 1e9, value)
                for (at, side), value in zip(
                    models.numbered, row.values(name), strict=True
                )
                if side.parameters and value is not None
            }
            if len({size for size, _ in points.values()}) < 2:
                continue
            families: dict[str, list[Spot]] = {}
            for at, spot in points.items():
                families.setdefault(models.sides[at - 1].family, []).append(spot)
            x, y = "billions of parameters", metric_title(name)
            yield Plot(
                name="scale",
                title=f"{y} by size, {row.title}",
                note="A point is a model with its number in the table of models, a line a family in several "
                "sizes. The number of parameters is the recorded one; of a paper's models, that of the name.",
                about=f"{y} against the number of parameters of {len(points)} models",
                x=x,
                y=y,
                points=[_point(models, at, spot) for at, spot in points.items()],
                lines=[
                    ("trace", sorted(line)) for line in families.values() if line[1:]
                ],
                heads=("model", x, y),
            )
            return
