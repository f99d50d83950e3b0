"""``kbrel report``: the page of a report folder made anew, without a model."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.arguments import add_json_flag, print_result

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("report", help="make report.html of a report folder anew")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a report folder, as a run wrote it")
    parser.add_argument(
        "--rootdir", metavar="DIR", type=Path, default=Path(), help="folder of the project's baselines"
    )
    add_json_flag(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel.session.page import rebuild_page

    page = rebuild_page(options.folder, options.rootdir.resolve())
    print_result(options, {"output": page}, [page])
    return 0
