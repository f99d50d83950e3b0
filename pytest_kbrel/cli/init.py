"""``kbrel init``: a place to start from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.cli.output import say

if TYPE_CHECKING:
    from pytest_kbrel.cli.commands import Commands


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("init", help="copy the world suite and its baseline into a folder")
    parser.add_argument("directory", type=Path, nargs="?", default=Path())
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel import resources

    for path in resources.copy_to(options.directory):
        say(path)
    return 0
