"""The page of ``kbrel compare``: what its template is filled with, and its two plots over models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_kbrel.reports.comparison import CaseRow, SideBySide, severity
from pytest_kbrel.reports.formatting import count, end_of
from pytest_kbrel.reports.html.page import fitted
from pytest_kbrel.reports.html.plots import Point, Spot
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
        "correlated": models.correlated,
    }
    return fitted("compare", data)


def _metrics(rows: list[CaseRow]) -> list[str]:
    """Return the key metrics of the cases of a table."""
    cases = (case for row in rows for case in row.known)
    return list(dict.fromkeys(of.name for case in cases for of in key_figures(case)))


def _scatter(models: SideBySide) -> Iterator[tuple[Any, ...]]:
    """Yield the first two figures that are correlated, those over all slices before others, and their points."""
    for one in sorted(models.correlated, key=lambda one: not one.whole)[:1]:
        known = (
            (at, (of.get(one.pearson.x), of.get(one.pearson.y)))
            for at, of in one.figures.items()
        )
        spots = {at: spot for at, spot in known if None not in spot}
        yield "scatter", one, _points(models, spots)


def _by_size(models: SideBySide) -> Iterator[tuple[Any, ...]]:
    """Yield the first key metric that models of several known sizes have, with its points and a line a family."""
    for rows in models.groups().values():
        name = next(iter(_metrics(rows)), "")
        for row in rows:
            spots = {
                at: (side.parameters / 1e9, value)
                for (at, side), value in zip(
                    models.numbered, row.values(name), strict=True
                )
                if side.parameters and value is not None
            }
            if len({size for size, _ in spots.values()}) < 2:
                continue
            families: dict[str, list[Spot]] = {}
            for at, spot in spots.items():
                families.setdefault(models.sides[at - 1].family, []).append(spot)
            lines = [("trace", sorted(line)) for line in families.values() if line[1:]]
            yield "scale", row, name, _points(models, spots), lines
            return


def _points(models: SideBySide, spots: Mapping[int, Any]) -> list[Point]:
    """Return a point a model, which has its number in the table of models."""
    return [
        Point(spot, f"{at} {end_of(models.sides[at - 1].name, 24)}", label=str(at))
        for at, spot in spots.items()
    ]
