"""``kbrel cache``: inspect, prune and export the store of responses."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.bounds import AGE, shown
from pytest_kbrel.cli.arguments import (
    add_json_flag,
    integer_within,
    new_file,
    print_result,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.words import DEFAULT_CACHE

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands
    from pytest_kbrel.models.cache.maintenance import CachedModel

_AGE = re.compile(r"([0-9]+)([hdw])")
_SECONDS = {"h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}


def register(commands: Commands) -> None:
    """Add the command with its three actions."""
    parser = commands.add_parser(
        "cache", help="look at kept answers of models, forget some, or export them"
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    info = actions.add_parser(
        "info", help="say how many answers are kept, of which models, since when"
    )
    prune = actions.add_parser(
        "prune", help="forget answers, and give their room back to the disk"
    )
    prune.add_argument(
        "--older-than",
        metavar="AGE",
        type=_seconds,
        help="those older than this, such as 12h, 30d or 8w",
    )
    prune.add_argument(
        "--model", metavar="DIGEST", help="those of this model, as info names it"
    )
    prune.add_argument("--all", action="store_true", help="all of them")
    export = actions.add_parser("export", help="write the answers as JSON, one a line")
    export.add_argument(
        "--output",
        metavar="OUT.jsonl",
        type=Path,
        required=True,
        help="the file to write",
    )
    export.add_argument(
        "--model", metavar="DIGEST", help="only those of this model, as info names it"
    )
    export.add_argument(
        "--force", action="store_true", help="replace the output if it is there"
    )
    for action, run in ((info, _info), (prune, _prune), (export, _export)):
        action.add_argument(
            "folder",
            metavar="DIR",
            type=Path,
            nargs="?",
            default=Path(os.environ.get("KB_USE_CACHE") or DEFAULT_CACHE),
            help="the folder given to --kb-use-cache (default: $KB_USE_CACHE, else .kbrel-cache)",
        )
        add_json_flag(action)
        action.set_defaults(run=run)


def _info(options: argparse.Namespace) -> int:
    from contextlib import closing

    from pytest_kbrel.models.cache.maintenance import Maintenance
    from pytest_kbrel.reports.formatting import count
    from pytest_kbrel.serialization import to_wire

    with closing(Maintenance(options.folder)) as store:
        models = store.models()
        answers = sum(model.answers for model in models)
        contents = f"{count(answers, 'answer')} of {count(len(models), 'model')}"
        lines = [
            f"{store.path}: {contents}, {_size(store.size())}",
            *([_table(models)] if models else []),
        ]
        document = {
            "path": store.path,
            "answers": answers,
            "bytes": store.size(),
            "models": to_wire(models),
        }
    print_result(options, document, lines)
    return 0


def _prune(options: argparse.Namespace) -> int:
    import time
    from contextlib import closing

    from pytest_kbrel.models.cache.maintenance import Maintenance

    chosen = options.older_than is not None or options.model is not None
    if options.all == chosen:
        given = "both" if chosen else "none"
        raise KbrelError(
            f"cache prune: found {given} of what to forget; allowed: --older-than AGE, --model DIGEST, "
            "these two together, or --all"
        )
    before = None if options.older_than is None else time.time() - options.older_than
    with closing(Maintenance(options.folder)) as store:
        model = None if options.model is None else store.model(options.model)
        deleted = store.prune(model=model, before=before)
        remaining = sum(one.answers for one in store.models())
        line = f"{store.path}: {deleted} answers forgotten, {remaining} left, {_size(store.size())}"
        document = {
            "path": store.path,
            "forgotten": deleted,
            "answers": remaining,
            "bytes": store.size(),
        }
    print_result(options, document, [line])
    return 0


def _export(options: argparse.Namespace) -> int:
    from contextlib import closing

    from pytest_kbrel.models.cache.maintenance import Maintenance

    output = options.output
    written = 0
    with (
        new_file(output, force=options.force) as stream,
        closing(Maintenance(options.folder)) as store,
    ):
        model = None if options.model is None else store.model(options.model)
        for line in store.lines(model):
            stream.write(line + "\n")
            written += 1
    document = {"output": output, "answers": written}
    print_result(options, document, [f"{written} answers written to {output}"])
    return 0


def _seconds(text: str) -> int:
    match = _AGE.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"found {shown(text)}; allowed: a number with h, d or w, such as 30d"
        )
    return integer_within(AGE)(match[1]) * _SECONDS[match[2]]


def _table(models: tuple[CachedModel, ...]) -> str:
    from pytest_kbrel.models.cache.maintenance import SHORT
    from pytest_kbrel.printing import format_table
    from pytest_kbrel.reports.formatting import one_line

    head = ("model", "answers", "backend", "dtype", "first", "last", "named at first")
    rows = [
        (
            cached.digest[:SHORT],
            str(cached.answers),
            cached.model.backend,
            cached.model.dtype or "-",
            _day(cached.first),
            _day(cached.last),
            one_line(cached.model.spec, 60)
            + (" (until its run ends)" if cached.for_one_run else ""),
        )
        for cached in models
    ]
    return "\n".join(format_table([head, *rows], left=range(len(head))))


def _day(seconds: int) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime(
        "%Y-%m-%d %H:%M"
    )


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
