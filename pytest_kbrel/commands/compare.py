"""``kbrel compare``: models side by side, and how their figures go together."""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_kbrel.commands import Commands
    from pytest_kbrel.commands.compared import Compared, SideBySide
    from pytest_kbrel.records import Correlation

SCHEMA_VERSION = 1
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
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as well")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.commands.compared import over_models, read_models, side_by_side

    models = read_models(options.model, Path.cwd())
    tables = side_by_side(models)
    correlations = over_models(models)
    if options.json is not None:
        from pytest_kbrel.reports.files import write_text

        write_text(options.json, _json(models, tables, correlations))
    for line in _lines(models, tables, correlations, shutil.get_terminal_size().columns):
        print(line)
    return 0


def _json(
    models: Sequence[Compared],
    tables: Sequence[SideBySide],
    correlations: Sequence[tuple[str, Correlation]],
) -> str:
    from pytest_kbrel import __version__
    from pytest_kbrel.wire import to_wire

    found = {
        "schema_version": SCHEMA_VERSION,
        "kbrel_version": __version__,
        "models": [{"name": model.name, "about": model.about} for model in models],
        "cases": [{"id": table.case, "figures": dict(table.rows)} for table in tables],
        "correlations": [{"within": within, **to_wire(one)} for within, one in correlations],
    }
    return json.dumps(to_wire(found), indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _lines(
    models: Sequence[Compared],
    tables: Sequence[SideBySide],
    correlations: Sequence[tuple[str, Correlation]],
    width: int,
) -> Iterator[str]:
    from pytest_kbrel.reports.text import one_line

    for number, model in enumerate(models, start=1):
        yield f"{number:>3}  {one_line(model.name)}  ({one_line(model.about, 120)})"
    for table in tables:
        yield ""
        yield from _table(table, len(models), width)
    yield ""
    yield from _correlated(correlations)


def _table(table: SideBySide, models: int, width: int) -> Iterator[str]:
    """Yield a table, in as many parts as the width asks for; with two models also how the second differs."""
    from pytest_kbrel.reports.text import number, one_line, pad, signed

    first = max(len(name) for name, _ in table.rows) + 2
    a_line = max(1, (width - first) // (_CELL + 1))
    yield one_line(table.case)
    for start in range(0, models, a_line):
        shown = range(start, min(start + a_line, models))
        heads = [str(model + 1) for model in shown] + (["2 - 1"] if models == 2 else [])
        yield pad("", first) + " ".join(pad(head, _CELL, right=True) for head in heads)
        for name, values in table.rows:
            cells = [number(values[model]) for model in shown]
            if models == 2:
                a, b = values
                cells.append(signed(None if a is None or b is None else b - a))
            yield pad(f"  {one_line(name)}", first) + " ".join(pad(cell, _CELL, right=True) for cell in cells)


def _correlated(correlations: Sequence[tuple[str, Correlation]]) -> Iterator[str]:
    from pytest_kbrel.reports.text import count, number, one_line, p_value, pad

    yield "Correlations over models"
    pairs = list(zip(correlations[::2], correlations[1::2], strict=True))
    told = [
        (within, pearson, spearman) for (within, pearson), (_, spearman) in pairs if pearson.r is not None
    ]
    width = max((len(within) for within, _, _ in told), default=0)
    for within, pearson, spearman in told:
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
