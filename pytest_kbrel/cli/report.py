"""``kbrel report``: the page of a report folder made anew, without a model."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pytest_kbrel.cli.arguments import Commands, finish, is_json_only, print_result
from pytest_kbrel.printing import printable


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "report", help="make report.html of a report folder anew"
    )
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="a report folder, as a run wrote it"
    )
    parser.add_argument(
        "--rootdir",
        metavar="DIR",
        type=Path,
        default=Path(),
        help="folder of the project's baselines",
    )
    finish(parser, _run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.session.page import rebuild_page

    page, warnings = rebuild_page(options.folder, options.rootdir.resolve())
    print_result(options, {"output": page, "warnings": warnings}, [page])
    if not is_json_only(options):
        for warning in warnings:
            print(printable(f"kbrel: {warning}"), file=sys.stderr)
    return 0
