"""``kbrel schema``: for editors and for readers of reports."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_kbrel.cli.commands import Commands


def register(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser("schema", help="print a JSON Schema")
    parser.add_argument("of", choices=("suite", "report"), nargs="?", default="suite")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from pytest_kbrel import resources

    print(resources.schema(options.of), end="")
    return 0
