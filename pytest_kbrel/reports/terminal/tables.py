"""The full tables of a run: the figures of each case, aggregates, reasons, lost and gained facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_kbrel.catalogue.metrics import BESIDE
from pytest_kbrel.catalogue.verdicts import VERDICTS
from pytest_kbrel.printing import cells, fit, format_table, pad
from pytest_kbrel.records import CaseResult, Run
from pytest_kbrel.reports import phrases, view
from pytest_kbrel.reports.changes import changed_facts, fact_cells
from pytest_kbrel.reports.formatting import (
    number,
    one_line,
    signed,
    with_interval,
)
from pytest_kbrel.reports.terminal.cases import change_text
from pytest_kbrel.reports.terminal.lines import (
    BOLD,
    PLAIN,
    WIDEST,
    Line,
    wrapped,
)
from pytest_kbrel.reports.view import Group, metric

SHOWN_FACTS = 3


def full_tables(run: Run, width: int) -> Iterator[Line]:
    """Yield all tables with what belongs to them; a blank line ends each."""
    for tables in (_tables, _aggregates, _facts):
        yield from tables(run, width)


def _tables(run: Run, width: int) -> Iterator[Line]:
    for group in view.groups(run):
        yield group.title, BOLD
        words = [
            "waived" if phrases.is_waived(case, run) else case.verdict
            for case in group.cases
        ]
        for text, told in table_lines(group, words, width - 2):
            yield f"  {text}", PLAIN if told is None else _markup(told, run)
        for case in group.cases:
            name = one_line(view.relation_title(case.slice, case.label))
            for metric_name in group.metrics:
                if controls := phrases.controls(case, metric_name):
                    text = f"controls of {one_line(metric_name)} in {name}: {controls}"
                    yield from wrapped(text, width, "  ")
            if shares := "; ".join(map(phrases.share_text, phrases.noteworthy(case))):
                yield from wrapped(f"responses of {name}: {shares}", width, "  ")
        yield "", PLAIN


def _aggregates(run: Run, width: int) -> Iterator[Line]:
    cases = view.aggregates(run)
    if not cases:
        return
    names = view.names(run)
    yield "Over all slices", BOLD
    for case in cases:
        markup = _markup(case, run)
        yield (
            f"  {one_line(names[case.nodeid])}  {phrases.verdict_words(case, run)}",
            markup,
        )
        if why := phrases.unmeasured_note(case):
            yield from wrapped(why, width, markup=markup)
        shown = view.key_figures(case)
        wide = max((16, *(len(value.name) for value in shown)))
        for value in shown:
            figure = with_interval(value.value, value.low, value.high)
            note = value.note if value.value is None else phrases.unsure(value)
            parts = (figure, phrases.moved(value), one_line(note, 200))
            text = " ".join(filter(None, parts))
            yield f"    {one_line(value.name):<{wide}} {text}", markup
    yield "", PLAIN


def _facts(run: Run, width: int) -> Iterator[Line]:
    """Yield the facts whose anchor probability changed most, lost ones first."""
    moved = changed_facts(run)
    if not moved.lost and not moved.gained:
        return
    yield "Lost and gained facts", BOLD
    for word, changes in (("lost", moved.lost), ("gained", moved.gained)):
        for change in changes[:SHOWN_FACTS]:
            told = fact_cells(change)
            anchor = told["anchor"] and f"anchor {told['anchor']}"
            parts = filter(None, (change_text(change), anchor, told["from"]))
            yield from wrapped(f"{word:<6}  {'; '.join(parts)}", width, "  ")
        if len(changes) > SHOWN_FACTS:
            yield (
                f"  {word:<6}  {len(changes) - SHOWN_FACTS} more in page and JSON",
                PLAIN,
            )
    yield "", PLAIN


def _markup(case: CaseResult, run: Run) -> dict[str, bool]:
    """Return the colour of a case's verdict; a waived failure looks like an undecided case."""
    if case.verdict == "pass":
        return PLAIN
    word = "inconclusive" if phrases.is_waived(case, run) else case.verdict
    return VERDICTS[word].markup


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


def table_lines(
    group: Group, verdicts: Sequence[str], width: int
) -> list[tuple[str, CaseResult | None]]:
    """Return the lines of a table, the heading first, each with the case it is about.

    ``verdicts`` are the words of the last column, one a case.
    """
    width = min(width, WIDEST)
    fewer = range(len(group.metrics))[::-1]
    layouts = [*_LAYOUTS]
    layouts += [
        replace(_LAYOUTS[-1], columns=columns, slice_width=12) for columns in fewer
    ]
    for layout in layouts:
        rows = _rows(group, verdicts, layout)
        # The verdicts may reach further than their heading.
        if max(map(cells, rows)) <= width:
            break
    return list(
        zip((fit(row, width) for row in rows), (None, *group.cases), strict=True)
    )


def _rows(group: Group, verdicts: Sequence[str], layout: _Layout) -> list[str]:
    names = _shown_metrics(group.metrics, layout.columns)
    columns = [
        [
            group.row,
            *(fit(one_line(label, 200), layout.slice_width) for label in group.labels),
        ],
        # A paper does not say how many there were.
        *(
            [["n", *(str(case.n) for case in group.cases)]]
            if any(case.n for case in group.cases)
            else []
        ),
        *(_metric_column(name, group, layout) for name in names),
        ["verdict", *verdicts],
    ]
    return format_table(list(zip(*columns, strict=True)), left=(0, len(columns) - 1))


def _shown_metrics(names: Sequence[str], most: int) -> Sequence[str]:
    """Return ``most`` names; MONITOR's only with those beside it."""
    beside = BESIDE["monitor"] if "monitor" in names else ()
    order = dict.fromkeys(name for name in (*beside, *names) if name in names)
    chosen = list(order)[:most]
    return [name for name in names if name in chosen]


def _metric_column(name: str, group: Group, layout: _Layout) -> list[str]:
    column = [metric(case, name) for case in group.cases]
    digits, zero = layout.digits, layout.zero
    figures = [(one.value, one.delta) if one else (None, None) for one in column]
    values = [number(value, digits, zero=zero) for value, _ in figures]
    deltas = [signed(delta, digits, zero=zero) for _, delta in figures]
    if layout.deltas and any(deltas):
        wide = max(map(cells, deltas))
        values = [
            f"{value} {pad(delta, wide, right=True)}"
            for value, delta in zip(values, deltas, strict=True)
        ]
    heading = one_line(name, 40)
    if layout.arrows:
        heading += "↓" if view.better(group.cases, name) == "lower" else "↑"
    return [heading, *values]
