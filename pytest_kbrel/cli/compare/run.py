"""What ``kbrel compare`` does: recorded runs and those of other tools, as text, JSON and a page."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_kbrel.baselines.format import META
from pytest_kbrel.cli.arguments import STDOUT
from pytest_kbrel.cli.compare.brief import brief_lines
from pytest_kbrel.cli.compare.foreign import compared_model, pair_scored
from pytest_kbrel.cli.compare.models import (
    correlated_points,
    figure_tables,
    read_models,
)
from pytest_kbrel.cli.compare.pairing import (
    PairedRun,
    RecordedOutcomes,
    pair_runs,
    read_outcomes,
)
from pytest_kbrel.cli.compare.render import (
    figure_lines,
    model_lines,
    paired_lines,
    report_json,
    summary_lines,
)
from pytest_kbrel.cli.compare.side_by_side import side_by_side
from pytest_kbrel.cli.compare.thresholds import Demands, read_gate_file, threshold
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.foreign import ALLOWED, Wanted, format_of, read_run
from pytest_kbrel.outputs import check_free, write_text
from pytest_kbrel.printing import printable
from pytest_kbrel.records import Rule
from pytest_kbrel.reports import REPORT, earlier_note

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
    others = [source for source in options.model if not _is_recorded(source)]
    foreign = [source for source in others if format_of(Path(source).expanduser())]
    unknown = [source for source in others if source not in foreign]
    if unknown and (foreign or not Path(unknown[0]).expanduser().is_file()):
        earlier = earlier_note(Path(unknown[0]).expanduser() / REPORT)
        raise KbrelError(
            f"{unknown[0]}: found no run in it; allowed: {ALLOWED}, or a report folder{earlier}"
        )
    if foreign and len(foreign) < len(options.model):
        other = next(source for source in options.model if source not in foreign)
        raise KbrelError(
            f"found {foreign[0]} of another tool beside {other}"
            f"{'' if Path(other).expanduser().exists() else ', which is no file here'}; "
            "allowed: runs of other tools only, or recorded runs, baselines and papers only"
        )
    if foreign and options.html is not None:
        raise KbrelError(
            f"--html: found {foreign[0]} of another tool, which has no page; allowed: recorded runs, "
            "baselines and papers, or --json without --html"
        )
    if foreign:
        return _run_foreign(options)
    given = [
        flag for flag, dest in options.foreign_flags.items() if getattr(options, dest)
    ]
    if given:
        raise KbrelError(
            f"{given[0]} is for runs of other tools; a recorded run has the gates of its suite file"
        )
    return _run_recorded(options)


def _is_recorded(source: str) -> bool:
    """Return True if a source is a report or a baseline of ours, or a name that is no path."""
    path = Path(source).expanduser()
    return not path.exists() or (path / REPORT).is_file() or (path / META).is_file()


def _run_foreign(options: argparse.Namespace) -> int:
    thresholds = []
    rules: tuple[Rule, ...] = ("max_drop", "recovery")
    for rule in rules:
        text = getattr(options, rule)
        try:
            thresholds += [threshold(rule, text)] if text is not None else []
        except ValueError as error:
            raise KbrelError(f"--{rule.replace('_', '-')}: {error}") from None
    if len(options.model) < 2:
        raise KbrelError(
            f"found 1 run to compare, {options.model[0]}; allowed: two or more"
        )
    demands = Demands(
        thresholds=tuple(thresholds),
        by_case=read_gate_file(options.gates) if options.gates else {},
    )
    if options.exit_code and not (demands.thresholds or demands.by_case):
        raise KbrelError(
            "--exit-code: no gate can be judged; allowed: --max-drop NUMBER, --recovery NUMBER or "
            "--gates FILE as well"
        )
    wanted = Wanted(
        id=options.id,
        metrics=tuple(options.metrics),
        lower=tuple(options.lower),
        group=options.group,
        cluster=options.cluster,
        pool=tuple(options.pool),
    )
    runs = [read_run(Path(source).expanduser(), wanted) for source in options.model]
    pairs = pair_scored(
        runs[0], runs[1:], demands, strict=options.inconclusive == "fail"
    )
    if options.exit_code and not any(
        case.gates for paired in pairs for case in paired.run.cases
    ):
        raise KbrelError(
            "--exit-code: no gate can be judged: no case has a metric that is a number"
        )
    models = [compared_model(run) for run in runs]
    document = report_json(models, (), (), pairs)
    lines = (
        *model_lines(models),
        *summary_lines(pairs),
        *paired_lines(pairs, _width()),
    )
    return _end(options, document, lines, pairs)


def _run_recorded(options: argparse.Namespace) -> int:
    models = read_models(options.model, Path.cwd())
    tables = figure_tables(models)
    correlated = correlated_points(models)
    recorded: dict[tuple[int, str], RecordedOutcomes] = {}
    unpaired: dict[int, str] = {}
    for at, model in enumerate(models, start=1):
        side = read_outcomes(model.name, Path.cwd())
        if isinstance(side, str):
            unpaired[at] = side
        else:
            recorded[at, model.name] = side
    pairs: Sequence[PairedRun] = ()
    if (first := recorded.pop((1, models[0].name), None)) is not None:
        strict = options.inconclusive == "fail"
        pairs = pair_runs(first, recorded, models[0].name, strict=strict)
    if options.exit_code and (unpaired or not pairs):
        reasons = [f"{models[at - 1].name}: {why}" for at, why in unpaired.items()]
        raise KbrelError(
            "--exit-code: no gate can be judged of runs that cannot be paired: "
            f"{'; '.join(reasons)}"
        )
    document = report_json(models, tables, correlated, pairs)
    paired = {pair.number: pair for pair in pairs}
    comparison = side_by_side(models, tables, correlated, paired, unpaired)
    written = []
    if options.html is not None:
        from pytest_kbrel.reports.html.comparison import comparison_html

        write_text(options.html, comparison_html(comparison), force=options.force)
        written = [f"page written to {options.html}"]
    width = _width()
    if not options.verbose:
        brief = brief_lines(
            comparison, width, shutil.get_terminal_size().lines - len(written)
        )
        return _end(options, document, [*brief, *written], pairs)
    if pairs and len(models) == 2:
        # These figures stand below, with what they are worth. A case of two suites is named with its suite.
        paired_below = {
            name
            for case in pairs[0].run.cases
            if case.metrics
            for name in (case.id, case.nodeid.rpartition("/")[2])
        }
        tables = tuple(table for table in tables if table.case not in paired_below)
    not_paired = [f"{at} is not paired: {why}" for at, why in unpaired.items()]
    lines = (
        *model_lines(models),
        *summary_lines(pairs),
        *(not_paired if len(unpaired) < len(models) else ()),
        *figure_lines(models, tables, correlated, width),
        *paired_lines(pairs, width),
        *written,
    )
    return _end(options, document, lines, pairs)


def _width() -> int:
    return max(_NARROWEST, shutil.get_terminal_size().columns)


def _end(
    options: argparse.Namespace,
    document: str,
    lines: Iterable[str],
    pairs: Sequence[PairedRun],
) -> int:
    """Write the JSON document, print the lines unless it went to standard output, return the exit code."""
    if options.json == STDOUT:
        print(document, end="")
    elif options.json is not None:
        write_text(options.json, document, force=options.force)
    for line in lines if options.json != STDOUT else ():
        print(printable(line))
    return int(options.exit_code and any(paired.fails for paired in pairs))
