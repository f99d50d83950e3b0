"""What ``kbrel trend`` does: recorded runs in the order of time, and drops that add up though each step passed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.cli.arguments import Options, print_result
from pytest_kbrel.cli.compare.recorded import case_rows, pair_recorded, read_sides
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.recorded_run import runs_in
from pytest_kbrel.outputs import write_text
from pytest_kbrel.printing import format_table, wrap
from pytest_kbrel.records import CaseResult, MetricValue, record
from pytest_kbrel.reports.comparison import Side
from pytest_kbrel.reports.formatting import metric, metric_title, number, one_line
from pytest_kbrel.reports.html.page import fitted
from pytest_kbrel.reports.phrases import moved
from pytest_kbrel.reports.view import key_figures
from pytest_kbrel.serialization import to_wire

# Columns of a terminal: of a value, and of a change with its interval.
_CELL, _CHANGE = 7, 26
# Of a case that the last run lacks, or could not measure.
_NONE = MetricValue(name="", better="higher", value=None)


@record
class Trend:
    """A metric of a case: its ``values`` in all runs, and the ``change`` from the first to the last.

    The latter is paired by fact; the ``notes`` of the case say why it may not be. ``failed_steps`` are the
    numbers of the runs in which a gate of it fails against the run before. ``drop`` says that it got worse
    over the whole way, empty where that is not shown.
    """

    case: str
    metric: str
    values: tuple[MetricValue | None, ...]
    change: MetricValue
    failed_steps: tuple[int, ...]
    drop: str
    notes: tuple[str, ...]


def run(options: Options) -> int:
    """Put the runs that the options name in order; return the exit code."""
    names = [str(run) for name in options.runs for run in _named(name)]
    sides = sorted(read_sides(names, Path.cwd()), key=_created)
    trends = trends_of(sides)
    document = {
        "runs": [{"name": side.name, "about": side.about} for side in sides],
        "metrics": trends,
    }
    if options.html is not None:
        page = fitted("trend", document)
        write_text(options.html, page, force=options.force)
    print_result(options, to_wire(document), _lines(sides, trends))
    return 0


def _named(path: Path) -> Sequence[Path]:
    if path.is_dir() and not any(path.rglob("*.json")):
        raise KbrelError(f"{path}: found no run in it; allowed: folders of reports")
    return runs_in(path)


def _created(side: Side) -> str:
    if side.recorded is None:
        raise KbrelError(f"{side.name}: {side.unpaired}; allowed: runs with outcomes")
    return side.recorded.created


def trends_of(sides: Sequence[Side]) -> list[Trend]:
    """Return the key metrics of the cases that the first and the last run have.

    A drop is what got significantly worse among so many cases (Šidák).
    """
    first, last = sides[0], sides[-1]
    ways = [*pairwise(sides), (first, last)]
    paired = [pair_recorded(way, strict=False)[1] for way in ways]
    figures = [
        (row, whole, change)
        for row in case_rows([*sides, *paired])
        if row.results[0] and (whole := row.results[-1])
        for change in key_figures(whole) or [_NONE]
    ]
    if not any(change.name for _, _, change in figures):
        raise KbrelError(
            f"no figure is in both {first.name}, the first, and {last.name}, the last; allowed: runs of one suite"
        )
    trends, compared = [], len({row.name for row, _, _ in figures})
    for row, whole, change in figures:
        name, cases = change.name, row.results
        verdicts = [_verdicts(of, name) for of in cases[len(sides) : -1]]
        failed = [at for at, of in enumerate(verdicts, 2) if "fail" in of]
        steps = "no step's gate failed" if any(verdicts) else "no gate compares it"
        if failed:
            steps = f"its gate failed at run {', '.join(map(str, failed))}"
        p = 1.0 if change.p is None else stats.sidak_p(change.p, compared)
        said = f"{metric_title(name)} of {row.title} got worse: {moved(change)} over {len(sides)} runs; {steps}"
        trends.append(
            Trend(
                case=row.title,
                metric=name,
                values=tuple(
                    metric(of, name) if of else None for of in cases[: len(sides)]
                ),
                change=change,
                failed_steps=tuple(failed),
                drop=said if p < stats.FAMILY_LEVEL else "",
                notes=whole.notes or whole.errors,
            )
        )
    return trends


def _verdicts(case: CaseResult | None, name: str) -> set[str]:
    return {
        gate.verdict
        for gate in (case.gates if case else ())
        if gate.metric == name and GATE_RULES[gate.rule].relative
    }


def _lines(sides: Sequence[Side], trends: Sequence[Trend]) -> Iterator[str]:
    width = shutil.get_terminal_size().columns
    for at, side in enumerate(sides, 1):
        yield f"{at:>3}  {one_line(side.name)}  ({one_line(side.about, 120)})"
    names = [f"{of.case} {of.metric}" for of in trends]
    # The first, and the last ones that there is room for.
    room = max((width - _CHANGE - max(map(len, names))) // _CELL, 2)
    shown = [0, *range(max(len(sides) - room + 1, 1), len(sides))]
    table = [["", *(str(at + 1) for at in shown), "from first to last"]]
    for name, of in zip(names, trends, strict=True):
        cells = [
            number(value and value.value) for value in (of.values[at] for at in shown)
        ]
        table.append([one_line(name), *cells, moved(of.change) or "not compared"])
    yield ""
    yield from format_table(table, left=(0, len(shown) + 1))
    unpaired = (
        ": ".join((of.case, *of.notes))
        for of in trends
        if of.notes and of.change.delta is None
    )
    for text in filter(None, dict.fromkeys([*(of.drop for of in trends), *unpaired])):
        yield ""
        yield from wrap(one_line(text), width, "")
