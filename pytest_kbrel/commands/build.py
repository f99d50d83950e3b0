"""``kbrel build``: things that are made from their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_kbrel.commands import build_head_to_tail, build_reference

if TYPE_CHECKING:
    from pytest_kbrel.commands import Commands

TARGETS = (build_head_to_tail, build_reference)


def register(commands: Commands) -> None:
    """Add the command with all its targets."""
    parser = commands.add_parser("build", help="make something from its sources")
    targets = parser.add_subparsers(required=True, metavar="WHAT")
    for target in TARGETS:
        target.register(targets)
