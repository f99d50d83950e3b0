"""The page of ``kbrel compare``: what its template is filled with."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pytest_kbrel.records import CaseResult, GateResult, MetricValue
from pytest_kbrel.reports import comparison as side_by_side
from pytest_kbrel.reports import view
from pytest_kbrel.reports.comparison import Comparison, Side
from pytest_kbrel.reports.formatting import count
from pytest_kbrel.reports.html.model_plots import (
    MOST,
    scale_plots,
    scatter_plots,
    size_text,
)
from pytest_kbrel.reports.html.page import anchors, fitted, script
from pytest_kbrel.reports.view import Group

# So many models have a column.
MOST_MODELS = 100


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
        "scatters": scatter_plots(comparison),
        "scales": scale_plots(comparison),
        "most_plots": MOST,
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
    values = (view.metric(case, name) for name in group.metrics)
    return [value for value in values if value is not None]


def _judged(side: Side, nodeid: str) -> tuple[GateResult, ...]:
    """Return the gates of a model that did not pass in a case."""
    gates = side.results[nodeid].gates if side.run and nodeid in side.results else ()
    return tuple(gate for gate in gates if gate.verdict != "pass")
