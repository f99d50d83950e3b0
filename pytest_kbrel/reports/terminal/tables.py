"""The table of a group of cases: the figures of each, as wide as the terminal allows."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.printing import cells, fit, format_table, pad
from pytest_kbrel.records import CaseResult
from pytest_kbrel.reports.cases import metric
from pytest_kbrel.reports.formatting import number, one_line, signed
from pytest_kbrel.reports.terminal.lines import WIDEST
from pytest_kbrel.reports.view import Group, better

# How numbers are written, with digits and a zero before them, and how wide labels are: the widest first.
_FORMS = (("0.3", 40), (".3", 40), (".2", 40), (".2", 12))


def table_lines(
    group: Group, verdicts: Sequence[str], width: int
) -> list[tuple[str, CaseResult | None]]:
    """Return the lines of a table, the heading first, each with the case it is about.

    ``verdicts`` are the words of the last column, one a case. Where the table is too wide, numbers have two
    digits, then labels are cut, then metrics left out, the last ones first.
    """
    width, names = min(width, WIDEST), group.metrics
    # MONITOR's figures stand only with those beside it.
    first = BESIDE["monitor"] if "monitor" in names else ()
    order = sorted(names, key=lambda name: name not in first)
    layouts = [(form, label, order) for form, label in _FORMS]
    layouts += [(".2", 18, order[:most]) for most in range(len(order))[::-1]]
    layouts.append((".2", 12, []))
    rows: list[str] = []
    for form, label, shown in layouts:
        columns = [
            [group.row, *(fit(one_line(of, 200), label) for of in group.labels)],
            ["n", *(str(case.n) for case in group.cases)],
            *(_metric_column(name, group, form) for name in names if name in shown),
            ["verdict", *verdicts],
        ]
        # A paper does not say how many there were.
        if not any(case.n for case in group.cases):
            del columns[1]
        left = (0, len(columns) - 1)
        rows = format_table(list(zip(*columns, strict=True)), left=left)
        # The verdicts may reach further than their heading.
        if max(map(cells, rows)) <= width:
            break
    lines = [fit(row, width) for row in rows]
    return list(zip(lines, (None, *group.cases), strict=True))


def _metric_column(name: str, group: Group, form: str) -> list[str]:
    zero, digits = form == "0.3", int(form[-1])
    column = [metric(case, name) for case in group.cases]
    values = [number(of.value if of else None, digits, zero=zero) for of in column]
    moved = [signed(of.delta if of else None, digits, zero=zero) for of in column]
    if wide := max(map(cells, moved)):
        values = [
            f"{value} {pad(delta, wide, right=True)}"
            for value, delta in zip(values, moved, strict=True)
        ]
    arrow = "↓" if better(group.cases, name) == "lower" else "↑"
    return [one_line(name, 40) + (arrow if zero else ""), *values]
