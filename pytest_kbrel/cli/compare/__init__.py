"""``kbrel compare``: models side by side, and how their figures go together."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.cli.arguments import print_line
from pytest_kbrel.errors import KbrelError

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.cli.compare.models import ComparedModel, FigureTable
    from pytest_kbrel.cli.compare.pairing import PairedRun
    from pytest_kbrel.records import Correlation

SCHEMA_VERSION = 1
_NARROWEST = 60
_CELL = 7


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
    from pytest_kbrel.cli.compare.render import paired_json, paired_lines, summary_lines

    models = read_models(options.model, Path.cwd())
    tables = figure_tables(models)
    correlations = correlations_over_models(models)
    sides = [read_outcomes(model.name, Path.cwd()) for model in models]
    unpaired = [(at, side) for at, side in enumerate(sides, start=1) if isinstance(side, str)]
    first, *others = sides
    numbers = [1, *(at for at, side in enumerate(others, start=2) if isinstance(side, RecordedOutcomes))]
    names = [models[at - 1].name for at in numbers]
    pairs: Sequence[PairedRun] = ()
    if isinstance(first, RecordedOutcomes):
        candidates = [(model.name, side) for model, side in zip(models, sides, strict=True)][1:]
        pairs = pair_runs(
            first, [(name, side) for name, side in candidates if isinstance(side, RecordedOutcomes)], names[0]
        )
    if options.exit_code and not pairs:
        raise KbrelError(
            "--exit-code: no gate can be judged, since no two runs can be paired: "
            f"{'; '.join(f'{models[at - 1].name}: {why}' for at, why in unpaired)}"
        )
    width = max(_NARROWEST, shutil.get_terminal_size().columns)
    if options.json is not None:
        from pytest_kbrel.reports.files import write_text

        write_text(options.json, _json(models, tables, correlations, paired_json(pairs, names)))
    if pairs and len(models) == 2:
        # These figures stand below, with what they are worth.
        paired_below = {
            name for case in pairs[0].run.cases if case.metrics for name in (case.id, _short(case.nodeid))
        }
        tables = tuple(table for table in tables if table.case not in paired_below)
    not_paired = [f"{at} is not paired: {why}" for at, why in unpaired] if len(unpaired) < len(sides) else []
    for line in (
        *_models(models),
        *summary_lines(pairs, numbers),
        *not_paired,
        *_lines(models, tables, correlations, width),
        *paired_lines(pairs, names, numbers, width),
    ):
        print_line(line)
    return int(options.exit_code and any(paired.fails for paired in pairs))


def _short(nodeid: str) -> str:
    """Return a node id without the folder of its suite, as tables name a case that two suites have."""
    return nodeid.rpartition("/")[2]


def _json(
    models: Sequence[ComparedModel],
    tables: Sequence[FigureTable],
    correlations: Sequence[tuple[str, Correlation]],
    paired: list[dict[str, Any]],
) -> str:
    from pytest_kbrel import __version__
    from pytest_kbrel.serialization import to_wire

    wire = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": __version__,
        "models": [{"name": model.name, "about": model.about} for model in models],
        "cases": [
            {"id": table.case, "figures": dict(table.rows), "differing": table.differing} for table in tables
        ],
        "correlations": [{"within": within, **to_wire(one)} for within, one in correlations],
        "paired": paired,
    }
    return json.dumps(to_wire(wire), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _models(models: Sequence[ComparedModel]) -> Iterator[str]:
    from pytest_kbrel.cli.compare.models import run_settings
    from pytest_kbrel.reports.formatting import one_line

    for number, (model, settings) in enumerate(zip(models, run_settings(models), strict=True), start=1):
        yield f"{number:>3}  {one_line(model.name)}  ({one_line(model.about, 120)})"
        if settings:
            yield f"     {one_line(settings)}"


def _lines(
    models: Sequence[ComparedModel],
    tables: Sequence[FigureTable],
    correlations: Sequence[tuple[str, Correlation]],
    width: int,
) -> Iterator[str]:
    for table in tables:
        yield ""
        yield from _table(table, len(models), width)
    yield ""
    yield from _correlated(correlations)


def _table(table: FigureTable, models: int, width: int) -> Iterator[str]:
    """Yield a table, in as many parts as the width asks for; with two models also how the second differs."""
    from pytest_kbrel.printing import format_table
    from pytest_kbrel.reports.formatting import number, one_line, signed

    first = max(len(name) for name, _ in table.rows) + 2
    a_line = max(1, (width - first) // (_CELL + 1))
    yield one_line(table.case)
    if table.differing:
        yield f"  not alike: {one_line(table.differing)}"
    for start in range(0, models, a_line):
        shown = range(start, min(start + a_line, models))
        heads = [str(model + 1) for model in shown] + (["2 - 1"] if models == 2 else [])
        rows = [["", *heads]]
        for name, values in table.rows:
            cells = [number(values[model]) for model in shown]
            if models == 2:
                a, b = values
                cells.append(signed(None if a is None or b is None else b - a))
            rows.append([f"  {one_line(name)}", *cells])
        yield from format_table(rows, least=(0, _CELL, *(_CELL + 1 for _ in heads[1:])), gap="")


def _correlated(correlations: Sequence[tuple[str, Correlation]]) -> Iterator[str]:
    from pytest_kbrel.printing import pad
    from pytest_kbrel.reports.formatting import count, number, one_line, p_value

    yield "Correlations over models"
    pairs = list(zip(correlations[::2], correlations[1::2], strict=True))
    lines = [
        (within, pearson, spearman) for (within, pearson), (_, spearman) in pairs if pearson.r is not None
    ]
    width = max((len(within) for within, _, _ in lines), default=0)
    for within, pearson, spearman in lines:
        both = [f"{one.method} {number(one.r)} ({p_value(one.p)})" for one in (pearson, spearman)]
        note = f" ({pearson.note})" if pearson.note else ""
        head = f"{pad(one_line(within), width)}  {pearson.x}, {pearson.y}"
        yield f"  {head}: {', '.join(both)}, n = {pearson.n}{note}"
    # Of two models every pair of every case has the same to say.
    reasons = Counter(pearson.note.partition(";")[0] for (_, pearson), _ in pairs if pearson.r is None)
    for reason, times in reasons.items():
        yield f"  {count(times, 'pair')} of figures: {reason}"
    if not pairs:
        yield "  none: no two models have two figures that the papers correlate"
