"""``kbrel compare``: models side by side, and how their figures go together."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import print_line
from pytest_kbrel.errors import KbrelError

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.cli.compare.pairing import PairedRun

_NARROWEST = 60


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "compare", help="put models side by side and correlate their figures, as the papers do"
    )
    parser.add_argument(
        "model",
        nargs="+",
        help="a report folder, a report.json, a baseline's name or path, or published/PAPER/MODEL; "
        "all models of a paper: published/monitor, 'published/reliable-kb/*/four-shot'",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help="exit with 1 when a gate of a later run fails against the first one",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.cli.compare.models import correlations_over_models, figure_tables, read_models
    from pytest_kbrel.cli.compare.pairing import RecordedOutcomes, pair_runs, read_outcomes
    from pytest_kbrel.cli.compare.render import (
        figure_lines,
        model_lines,
        paired_lines,
        report_json,
        summary_lines,
    )

    models = read_models(options.model, Path.cwd())
    tables = figure_tables(models)
    correlations = correlations_over_models(models)
    sides = [read_outcomes(model.name, Path.cwd()) for model in models]
    unpaired = [(at, side) for at, side in enumerate(sides, start=1) if isinstance(side, str)]
    recorded = [(at, side) for at, side in enumerate(sides, start=1) if isinstance(side, RecordedOutcomes)]
    numbers = [at for at, _ in recorded]
    names = [models[at - 1].name for at in numbers]
    pairs: Sequence[PairedRun] = ()
    if isinstance(sides[0], RecordedOutcomes):
        candidates = [(models[at - 1].name, side) for at, side in recorded[1:]]
        pairs = pair_runs(sides[0], candidates, names[0])
    if options.exit_code and not pairs:
        raise KbrelError(
            "--exit-code: no gate can be judged, since no two runs can be paired: "
            f"{'; '.join(f'{models[at - 1].name}: {why}' for at, why in unpaired)}"
        )
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    if options.json is not None:
        from pytest_kbrel.reports import write_text

        write_text(options.json, report_json(models, tables, correlations, pairs, names))
    if pairs and len(models) == 2:
        # These figures stand below, with what they are worth. A case of two suites is named with its suite.
        paired_below = {
            name
            for case in pairs[0].run.cases
            if case.metrics
            for name in (case.id, case.nodeid.rpartition("/")[2])
        }
        tables = tuple(table for table in tables if table.case not in paired_below)
    not_paired = [f"{at} is not paired: {why}" for at, why in unpaired] if len(unpaired) < len(sides) else []
    for line in (
        *model_lines(models),
        *summary_lines(pairs, numbers),
        *not_paired,
        *figure_lines(models, tables, correlations, width),
        *paired_lines(pairs, names, numbers, width),
    ):
        print_line(line)
    return int(options.exit_code and any(paired.fails for paired in pairs))
