"""The compact tables of the terminal: the widest layout that fits is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.records import CaseResult
from pytest_kbrel.reports.formatting import number, one_line, signed
from pytest_kbrel.reports.view import Group, metric
from pytest_kbrel.tables import cells, fit, format_table, pad

WIDEST = 100


@dataclass(frozen=True, slots=True)
class _Layout:
    digits: int
    zero: bool
    arrows: bool
    deltas: bool = True
    columns: int = 99
    slice_width: int = 40


_LAYOUTS = (
    _Layout(3, True, True),
    _Layout(3, True, False),
    _Layout(3, False, False),
    _Layout(2, False, False),
    _Layout(2, False, False, slice_width=12),
    _Layout(2, False, False, deltas=False, slice_width=16),
)


def table_lines(group: Group, verdicts: Sequence[str], width: int) -> list[tuple[str, CaseResult | None]]:
    """Return the lines of a table, the heading first, each with the case it is about.

    ``verdicts`` are the words of the last column, one a case.
    """
    width = min(width, WIDEST)
    narrowing = [
        replace(_LAYOUTS[-1], columns=columns, slice_width=12)
        for columns in range(len(group.metrics) - 1, -1, -1)
    ]
    for layout in (*_LAYOUTS, *narrowing):
        rows = _rows(group, verdicts, layout)
        # The verdicts may reach further than their heading.
        if max(map(cells, rows)) <= width:
            break
    return list(zip((fit(row, width) for row in rows), (None, *group.cases), strict=True))


def _rows(group: Group, verdicts: Sequence[str], layout: _Layout) -> list[str]:
    names = _kept(group.metrics, layout.columns)
    columns = [
        [group.row, *(fit(one_line(label, 200), layout.slice_width) for label in group.labels)],
        ["n", *(str(case.n) for case in group.cases)],
        *(_metric_column(name, group, layout) for name in names),
        ["verdict", *verdicts],
    ]
    return format_table(list(zip(*columns, strict=True)), left=(0, len(columns) - 1))


def _kept(names: Sequence[str], most: int) -> Sequence[str]:
    """Return the first ``most`` names; the first figure only with those that belong beside it."""
    beside = BESIDE.get(names[0], ()) if names else ()
    order = dict.fromkeys(name for name in (*beside, *names) if name in names)
    kept = list(order)[:most]
    return [name for name in names if name in kept]


def _metric_column(name: str, group: Group, layout: _Layout) -> list[str]:
    found = [metric(case, name) for case in group.cases]
    values = [number(value.value if value else None, layout.digits, zero=layout.zero) for value in found]
    if layout.deltas and any(value is not None and value.delta is not None for value in found):
        deltas = [signed(value.delta if value else None, layout.digits, zero=layout.zero) for value in found]
        wide = max(map(cells, deltas))
        values = [
            f"{value} {pad(delta, wide, right=True)}" for value, delta in zip(values, deltas, strict=True)
        ]
    heading = one_line(name, 40)
    if layout.arrows:
        better = next((value.better for value in found if value is not None), "higher")
        heading += "↑" if better == "higher" else "↓"
    return [heading, *values]
