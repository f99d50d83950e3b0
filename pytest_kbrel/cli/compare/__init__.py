"""``kbrel compare``: models side by side, and how their figures go together."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import STDOUT, print_line
from pytest_kbrel.errors import KbrelError

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.cli.compare.pairing import PairedRun
    from pytest_kbrel.records import Rule

_NARROWEST = 60
_PAGE = Path("kbrel-compare.html")
_THRESHOLDS = {
    "--max-drop": "how much worse each metric may be: 0.05, or within:0.08,beyond:0.02",
    "--recovery": "the least share of the baseline's value: 0.95, or within:0.9,beyond:0.97",
}
_LISTS = {
    "--metric": (
        "metrics",
        "NAME",
        "compare this metric only; may be repeated (default: all)",
    ),
    "--lower-is-better": (
        "lower",
        "NAME",
        "a metric of which less is better; may be repeated",
    ),
    "--pool": (
        "pool",
        "GROUP",
        "make one case of the tasks of this group of lm_eval; may be repeated",
    ),
}
_KEYS = {
    "--id": (
        "id",
        "the key of a row's id in CSV and JSON lines (default: id, sample_id, doc_id, ...)",
    ),
    "--group-by": ("group", "make a case of each value of KEY, such as subject"),
    "--cluster": (
        "cluster",
        "rows with the same value of KEY change together, such as the document asked about",
    ),
}


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare",
        help="put models side by side and correlate their figures, as the papers do",
    )
    parser.add_argument(
        "model",
        nargs="+",
        help="a report folder, a report.json, a baseline's name or path, or published/PAPER/MODEL; "
        "all models of a paper: published/monitor, 'published/reliable-kb/*/four-shot'; or runs of another "
        "tool: lm_eval --log_samples, Inspect, Every Eval Ever, CSV or JSON lines",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 1 when a gate of a later run fails against the first one",
    )
    parser.add_argument(
        "--inconclusive",
        choices=("warn", "fail"),
        default="warn",
        help="whether --exit-code is 1 for a gate that is inconclusive (default: warn, which is 0)",
    )
    parser.add_argument(
        "--json",
        nargs="?",
        const=STDOUT,
        type=Path,
        metavar="FILE",
        help="write everything to FILE as well; without FILE, behind the models, to standard output instead",
    )
    parser.add_argument(
        "--html",
        nargs="?",
        const=_PAGE,
        type=Path,
        metavar="FILE",
        help=f"write a page for the browser to FILE as well; without FILE, behind the models, to {_PAGE}; "
        "runs of other tools have no page",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="print all figures, correlations and facts of recorded runs, not one screen",
    )
    others = parser.add_argument_group("runs of other tools")
    for flag, words in _THRESHOLDS.items():
        others.add_argument(flag, metavar="NUMBER", help=words)
    others.add_argument(
        "--gates",
        type=Path,
        metavar="FILE",
        help="a YAML file of gates: {CASE: {METRIC: {recovery: 0.95}}}",
    )
    for flag, (dest, metavar, words) in _LISTS.items():
        others.add_argument(
            flag, dest=dest, metavar=metavar, action="append", default=[], help=words
        )
    for flag, (dest, words) in _KEYS.items():
        others.add_argument(flag, dest=dest, metavar="KEY", default="", help=words)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.foreign import ALLOWED, format_of
    from pytest_kbrel.reports import REPORT, earlier_note

    for flag, output in (("--json", options.json), ("--html", options.html)):
        if (
            output is not None
            and output.is_file()
            and (output.name == REPORT or format_of(output))
        ):
            raise KbrelError(
                f"{flag} {output}: is a run; allowed: the name of another file, or {flag} behind all runs"
            )
        if output is not None and output.is_dir():
            raise KbrelError(
                f"{flag} {output}: is a folder; allowed: the name of a file, or {flag} behind all runs"
            )
    if options.html is not None and options.html == options.json:
        raise KbrelError(
            f"--html {options.html}: is the file of --json as well; allowed: another file"
        )
    recorded = [source for source in options.model if _is_recorded(source)]
    foreign = [
        source
        for source in options.model
        if source not in recorded and format_of(Path(source).expanduser())
    ]
    unknown = [
        source
        for source in options.model
        if source not in recorded and source not in foreign
    ]
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
    flags = {
        **{flag: flag[2:].replace("-", "_") for flag in (*_THRESHOLDS, "--gates")},
        **{f: d[0] for f, d in _LISTS.items()},
    }
    flags |= {flag: dest for flag, (dest, _) in _KEYS.items()}
    if given := [flag for flag, dest in flags.items() if getattr(options, dest)]:
        raise KbrelError(
            f"{given[0]} is for runs of other tools; a recorded run has the gates of its suite file"
        )
    return _run_recorded(options)


def _is_recorded(source: str) -> bool:
    """Return True if a source is a report or a baseline of ours, or a name that is no path."""
    from pytest_kbrel.baselines.format import META
    from pytest_kbrel.reports import REPORT

    path = Path(source).expanduser()
    return not path.exists() or (path / REPORT).is_file() or (path / META).is_file()


def _run_foreign(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.compare.foreign import compared_model, pair_scored
    from pytest_kbrel.cli.compare.render import (
        model_lines,
        paired_lines,
        report_json,
        summary_lines,
    )
    from pytest_kbrel.cli.compare.thresholds import Demands, read_gate_file, threshold
    from pytest_kbrel.foreign import Wanted, read_run

    thresholds = []
    given: tuple[tuple[Rule, str | None], ...] = (
        ("max_drop", options.max_drop),
        ("recovery", options.recovery),
    )
    for rule, text in given:
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
    names, numbers = [model.name for model in models], range(1, len(runs) + 1)
    document = report_json(models, (), (), pairs, names)
    lines = (
        *model_lines(models),
        *summary_lines(pairs, numbers),
        *paired_lines(pairs, names, numbers, _width()),
    )
    return _end(options, document, lines, pairs)


def _run_recorded(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.compare.brief import brief_lines
    from pytest_kbrel.cli.compare.models import (
        correlated_points,
        figure_tables,
        read_models,
    )
    from pytest_kbrel.cli.compare.pairing import (
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

    models = read_models(options.model, Path.cwd())
    tables = figure_tables(models)
    correlated = correlated_points(models)
    sides = [read_outcomes(model.name, Path.cwd()) for model in models]
    unpaired = [
        (at, side) for at, side in enumerate(sides, start=1) if isinstance(side, str)
    ]
    recorded = [
        (at, side)
        for at, side in enumerate(sides, start=1)
        if isinstance(side, RecordedOutcomes)
    ]
    numbers = [at for at, _ in recorded]
    names = [models[at - 1].name for at in numbers]
    pairs: Sequence[PairedRun] = ()
    if isinstance(sides[0], RecordedOutcomes):
        candidates = [(models[at - 1].name, side) for at, side in recorded[1:]]
        pairs = pair_runs(
            sides[0], candidates, names[0], strict=options.inconclusive == "fail"
        )
    if options.exit_code and not pairs:
        raise KbrelError(
            "--exit-code: no gate can be judged, since no two runs can be paired: "
            f"{'; '.join(f'{models[at - 1].name}: {why}' for at, why in unpaired)}"
        )
    document = report_json(models, tables, correlated, pairs, names)
    paired = dict(zip(numbers[1:], pairs, strict=True)) if pairs else {}
    comparison = side_by_side(models, tables, correlated, paired, dict(unpaired))
    written = []
    if options.html is not None:
        from pytest_kbrel.reports import write_text
        from pytest_kbrel.reports.html.comparison import comparison_html

        write_text(options.html, comparison_html(comparison))
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
    not_paired = (
        [f"{at} is not paired: {why}" for at, why in unpaired]
        if len(unpaired) < len(sides)
        else []
    )
    lines = (
        *model_lines(models),
        *summary_lines(pairs, numbers),
        *not_paired,
        *figure_lines(models, tables, correlated, width),
        *paired_lines(pairs, names, numbers, width),
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
        from pytest_kbrel.reports import write_text

        write_text(options.json, document)
    for line in lines if options.json != STDOUT else ():
        print_line(line)
    return int(options.exit_code and any(paired.fails for paired in pairs))
