"""What ``kbrel compare`` does: recorded runs and those of other tools, as text, JSON and a page."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import fields
from pathlib import Path

from pytest_kbrel.baselines.format import META
from pytest_kbrel.cli.arguments import STDOUT
from pytest_kbrel.cli.compare.text import brief_lines, report_json, verbose_lines
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import ALLOWED, Wanted, format_of, read_run
from pytest_kbrel.outputs import check_free, write_text
from pytest_kbrel.printing import printable
from pytest_kbrel.reports import REPORT, earlier_note
from pytest_kbrel.reports.comparison import SideBySide

_NARROWEST = 60


def run(options: argparse.Namespace) -> int:
    """Compare what the options name; return the exit code."""
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
    given = [
        flag for flag, dest in options.foreign_flags.items() if getattr(options, dest)
    ]
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
    document = report_json(models)
    if options.json == STDOUT:
        print(document, end="")
    else:
        if options.json is not None:
            write_text(options.json, document, force=options.force)
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


def _foreign(options: argparse.Namespace) -> SideBySide:
    from pytest_kbrel.cli.compare.foreign import pair_scored
    from pytest_kbrel.cli.compare.thresholds import read_demands

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


def _recorded(options: argparse.Namespace) -> SideBySide:
    from pytest_kbrel.cli.compare.models import case_rows, correlated, read_sides
    from pytest_kbrel.cli.compare.pairing import pair_recorded

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
