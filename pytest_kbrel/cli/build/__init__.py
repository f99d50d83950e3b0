"""``kbrel build``: things that are made from their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_kbrel.cli.build import head_to_tail

if TYPE_CHECKING:
    from pytest_kbrel.cli.commands import Commands


def register(commands: Commands) -> None:
    """Add the command with all its targets."""
    parser = commands.add_parser("build", help="make something from its sources")
    head_to_tail.register(parser.add_subparsers(required=True, metavar="WHAT"))
