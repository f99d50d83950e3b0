"""What ``kbrel compare`` does, prints and writes as JSON: models, their figures side by side, and decided runs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from pytest_kbrel import __version__
from pytest_kbrel.baselines.format import META
from pytest_kbrel.cli.arguments import STDOUT, Argument, Options
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import ALLOWED, Wanted, format_of, read_run
from pytest_kbrel.outputs import check_free, write_text
from pytest_kbrel.printing import fit, format_table, printable, wrap
from pytest_kbrel.records import CaseResult, Json
from pytest_kbrel.reports import REPORT, earlier_note
from pytest_kbrel.reports.comparison import CaseRow, Scatter, SideBySide, severity
from pytest_kbrel.reports.formatting import count, number, one_line, signed
from pytest_kbrel.reports.json_report import case_wire
from pytest_kbrel.reports.phrases import correlation_text
from pytest_kbrel.reports.terminal import failure_text, terminal_lines
from pytest_kbrel.serialization import to_wire

_NARROWEST = 60


def run(options: Options, foreign_flags: Sequence[Argument]) -> int:
    """Compare what the options name; return the exit code.

    ``foreign_flags`` are for runs of other tools.
    """
    for flag, output in (("--json", options.json), ("--html", options.html)):
        if output in (None, STDOUT):
            continue
        is_run = output.is_file() and (output.name == REPORT or format_of(output))
        if is_run or output.is_dir():
            raise KbrelError(
                f"{flag} {output}: is a run or a folder; allowed: the name of another file, or {flag} behind "
                "all runs"
            )
        check_free(output, force=options.force)
    if options.html is not None and options.html == options.json:
        raise KbrelError(
            f"--html {options.html}: is the file of --json as well; allowed: another file"
        )
    foreign = [source for source in options.model if _is_foreign(source)]
    given = [flag for _, flag, how in foreign_flags if getattr(options, how["dest"])]
    if foreign and len(foreign) < len(options.model):
        other = next(source for source in options.model if source not in foreign)
        missing = "" if Path(other).expanduser().exists() else ", which is no file here"
        raise KbrelError(
            f"found {foreign[0]} of another tool beside {other}{missing}; "
            "allowed: runs of other tools only, or recorded runs, baselines and papers only"
        )
    if foreign and options.html is not None:
        raise KbrelError(
            f"--html: found {foreign[0]} of another tool, which has no page; allowed: recorded runs, "
            "baselines and papers, or --json without --html"
        )
    if given and not foreign:
        raise KbrelError(
            f"{given[0]} is for runs of other tools; a recorded run has the gates of its suite file"
        )
    models = _foreign(options) if foreign else _recorded(options)
    size = shutil.get_terminal_size()
    width, written = max(_NARROWEST, size.columns), []
    if options.html is not None:
        from pytest_kbrel.reports.html.comparison import comparison_html

        write_text(options.html, comparison_html(models), force=options.force)
        written = [f"page written to {options.html}"]
    if options.json == STDOUT:
        print(report_json(models), end="")
    else:
        if options.json is not None:
            write_text(options.json, report_json(models), force=options.force)
        if options.verbose or not models.rows:
            lines = [*verbose_lines(models, width)]
        else:
            lines = brief_lines(models, width, size.lines - len(written))
        for line in (*lines, *written):
            print(printable(line))
    return int(options.exit_code and any(side.fails for side in models.sides))


def _is_foreign(source: str) -> bool:
    """Return True for a run of another tool, False for a report, a baseline or a name that is no path."""
    path = Path(source).expanduser()
    is_ours = (path / REPORT).is_file() or (path / META).is_file()
    if is_ours or not path.exists():
        return False
    if format_of(path) or path.is_file():
        return format_of(path) is not None
    earlier = earlier_note(path / REPORT)
    raise KbrelError(
        f"{source}: found no run in it; allowed: {ALLOWED}, or a report folder{earlier}"
    )


def _foreign(options: Options) -> SideBySide:
    from pytest_kbrel.cli.compare.foreign import pair_scored, read_demands

    if len(options.model) < 2:
        raise KbrelError(
            f"found 1 run to compare, {options.model[0]}; allowed: two or more"
        )
    demands = read_demands(options.max_drop, options.recovery, options.gates)
    given = {of.name: getattr(options, of.name) for of in fields(Wanted)}
    wanted = Wanted(**given)
    runs = [read_run(Path(source).expanduser(), wanted) for source in options.model]
    sides = pair_scored(runs, demands, strict=options.inconclusive == "fail")
    if options.exit_code and not any(side.gates for side in sides):
        raise KbrelError(
            "--exit-code: no gate can be judged; allowed: --max-drop NUMBER, --recovery NUMBER or "
            "--gates FILE as well, and a case with a metric that is a number"
        )
    return SideBySide(sides=tuple(sides))


def _recorded(options: Options) -> SideBySide:
    from pytest_kbrel.cli.compare.recorded import (
        case_rows,
        correlated,
        pair_recorded,
        read_sides,
    )

    read = read_sides(options.model, Path.cwd())
    sides = pair_recorded(read, strict=options.inconclusive == "fail")
    rows = case_rows(sides)
    names = ", ".join(side.name for side in sides)
    if not any(row.figures for row in rows):
        raise KbrelError(
            f"no figure is in two of {names}; allowed: models with cases of the same names"
        )
    if options.exit_code and any(side.run is None for side in sides[1:]):
        reasons = [f"{side.name}: {side.unpaired}" for side in sides if side.unpaired]
        raise KbrelError(
            "--exit-code: no gate can be judged of runs that cannot be paired: "
            f"{'; '.join(reasons)}"
        )
    return SideBySide(sides=tuple(sides), rows=rows, scatters=correlated(sides, rows))


SCHEMA_VERSION = 1
# A terminal has at least so many lines, one of which is the next prompt's.
LEAST_LINES = 24
_CELL = 8


def report_json(models: SideBySide) -> str:
    """Return everything as the text of a JSON file."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": __version__,
        "models": [{"name": side.name, "about": side.about} for side in models.sides],
        "cases": [
            {"id": row.name, "figures": row.figures}
            for row in models.rows
            if row.figures
        ],
        "correlations": [
            {"within": one.within, **to_wire(of)}
            for one in models.scatters
            for of in (one.pearson, one.spearman)
        ],
        "paired": [
            {
                "baseline": side.run.baseline,
                "candidate": side.name,
                "differences": side.run.differences,
                "fails": side.fails,
                "cases": list(map(_case_json, side.run.cases)),
            }
            for side in models.sides
            if side.run
        ],
    }
    return json.dumps(to_wire(document), indent=1, allow_nan=False) + "\n"


def _case_json(case: CaseResult) -> Json:
    wire = case_wire(case)
    figures = wire.pop("metrics")
    return {**wire, "obstacle": "; ".join(case.notes), "figures": figures}


def brief_lines(models: SideBySide, width: int, height: int) -> list[str]:
    """Return the comparison in fewer than ``height`` lines (or :data:`LEAST_LINES`), each of at most ``width``.

    Of paired runs these are the first screens of the candidates, those with the worst gates first; else what
    is correlated over all slices, then the figures, those over all slices first. What does not fit is counted.
    """
    head = list(_model_lines(models, width))
    if models.is_paired:
        body = list(_run_lines(models, width, brief=True))
    else:
        rows = sorted(models.rows, key=lambda row: not row.known[0].aggregate)
        whole = _correlated((of for of in models.correlated if of.whole), width)
        body = [*whole, *figure_lines(rows, width)]
    lines = [*head, "", *body]
    room = max(height, LEAST_LINES) - 2
    left = len(lines) - room
    end = "-v has all, --html FILE a page"
    if left > 0:
        end = f"and {count(left, 'more line')}; {end}"
    return [fit(line, width) for line in (*lines[:room], end)]


def verbose_lines(models: SideBySide, width: int) -> Iterator[str]:
    """Yield all figures, correlations and decided runs."""
    yield from _model_lines(models, width)
    if models.rows:
        yield from figure_lines(models.rows, width)
        yield ""
        yield "Correlations over models"
        yield from _correlated(models.correlated, width)
        if left := len(models.scatters) - len(models.correlated):
            pairs = count(left, "pair")
            yield f"  {pairs} of figures: fewer than three models, or one figure in all"
        if not models.scatters:
            yield "  none: no two models have two figures that the papers correlate"
    yield from _run_lines(models, width, brief=False)


def _model_lines(models: SideBySide, width: int) -> Iterator[str]:
    all_unpaired = len({side.unpaired for side in models.sides}) == 1
    for at, side in models.numbered:
        yield f"{at:>3}  {one_line(side.name)}  ({one_line(side.about, 120)})"
        if side.run:
            yield f"     gates: {side.summary}"
        elif side.unpaired and not all_unpaired:
            yield from wrap(f"not paired: {side.unpaired}", width, "     ")


def _run_lines(models: SideBySide, width: int, *, brief: bool) -> Iterator[str]:
    """Yield the decided runs as a session prints its own, those with the worst gates first."""
    sides = [(at, side, side.run) for at, side in models.numbered if side.run]
    for at, side, run in sorted(
        sides, key=lambda of: min(map(severity, of[1].gates), default=severity(""))
    ):
        if not brief or sides[1:]:
            yield ""
            yield f"{at} against 1: {one_line(side.name)}"
        # Of several the cases have a line each.
        verbosity = 1 if not brief else -1 if sides[1:] else 0
        lines = terminal_lines(run, width=width, verbosity=verbosity)
        yield from (text for text, _ in lines)
        for case in () if brief else run.cases:
            if case.verdict != "pass":
                yield ""
                yield from failure_text(case, baseline_name=run.baseline).splitlines()


def figure_lines(rows: Iterable[CaseRow], width: int) -> Iterator[str]:
    """Yield a table a case, in as many parts as the width demands; with two models also their difference."""
    for row in rows:
        if not row.figures:
            continue
        yield ""
        yield one_line(row.title)
        names = [f"  {one_line(name)}" for name in row.figures]
        columns = [
            [str(at), *map(number, of)]
            for at, of in enumerate(zip(*row.figures.values(), strict=True), start=1)
        ]
        if len(columns) == 2:
            differences = (
                None if a is None or b is None else b - a
                for a, b in row.figures.values()
            )
            columns.append(["2 - 1", *map(signed, differences)])
        a_line = max(1, (width - max(map(len, names))) // _CELL)
        for start in range(0, len(columns), a_line):
            shown = columns[start : start + a_line]
            table = list(zip(["", *names], *shown, strict=True))
            yield from format_table(table, least=(0, *(_CELL for _ in shown)), gap="")


def _correlated(scatters: Iterable[Scatter], width: int) -> Iterator[str]:
    for one in scatters:
        note = f" ({one.pearson.note})" if one.pearson.note else ""
        both = correlation_text(one.pearson, one.spearman)
        pair = f"{one.pearson.x}, {one.pearson.y}"
        text = f"{one_line(one.within)}  {pair}: {both}{note}"
        yield from wrap(text, width, "  ")
