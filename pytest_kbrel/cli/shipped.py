"""``kbrel init`` and ``kbrel schema``: what is shipped with the package, copied or printed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel import resources
from pytest_kbrel.cli.arguments import print_line

if TYPE_CHECKING:
    from pytest_kbrel.cli.arguments import Commands


def register_init(commands: Commands) -> None:
    """Add ``kbrel init``."""
    init = commands.add_parser("init", help="copy the world suite and its baseline into a folder")
    init.add_argument("directory", type=Path, nargs="?", default=Path())
    init.set_defaults(run=_copy)


def register_schema(commands: Commands) -> None:
    """Add ``kbrel schema``."""
    schema = commands.add_parser("schema", help="print a JSON Schema")
    schema.add_argument("of", choices=("suite", "report"), nargs="?", default="suite")
    schema.set_defaults(run=_print_schema)


def _copy(options: argparse.Namespace) -> int:
    for path in resources.copy_to(options.directory):
        print_line(path)
    return 0


def _print_schema(options: argparse.Namespace) -> int:
    print(resources.schema(options.of), end="")
    return 0
