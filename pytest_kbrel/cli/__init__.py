"""The ``kbrel`` command, with a module for each larger subcommand.

Each is a function of the parsed options that returns the exit code. Heavy imports belong inside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from pytest_kbrel import __version__, resources

# Each adds its command where it is imported.
from pytest_kbrel.cli import (
    bisect,
    build,
    check,
    comment,
    compare,
    export,
    import_,
    init,
    judge,
    labels,
    merge,
    pack,
    report,
)
from pytest_kbrel.cli.arguments import (
    COMMANDS,
    Options,
    argument,
    command,
    is_json_only,
    print_document,
)
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.printing import printable

# What a shell reports of a program that the signal of a broken pipe ended.
_BROKEN_PIPE = 128 + 13


class _Parser(argparse.ArgumentParser):
    """A parser, of a subcommand too, whose errors are a JSON document as well where one is wanted."""

    in_json = False

    def error(self, message: str) -> NoReturn:
        if _Parser.in_json:
            print_document({"error": message})
        super().error(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 1 where a checkpoint is not in order, or 2 with a message on standard error when the user must mend something.

    Without arguments it prints the list of commands.
    With ``--json`` standard output is one JSON document then too: ``{"error": ...}``. Raises ``SystemExit``
    with status 2 for a call that argparse refuses.
    """
    given = sys.argv[1:] if arguments is None else arguments
    parser = command_parser()
    if not given:
        parser.print_help()
        return 0
    _Parser.in_json = "--json" in given
    options = parser.parse_args(given)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would complain once more while it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (KbrelError, OSError) as error:
        text = str(error)
        if isinstance(error, OSError) and error.errno and not error.filename:
            # The disk of what is printed is full: it has no name.
            text = f"standard output: {text}"
        print(printable(f"kbrel: {text}"), file=sys.stderr)
        if is_json_only(options):
            print_document({"error": str(error)})
        return 2


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command with all its subcommands."""
    parser: argparse.ArgumentParser = _Parser(
        prog="kbrel",
        description="Tools around suites that gate language-model checkpoints.",
    )
    parser.add_argument("--version", action="version", version=f"kbrel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in COMMANDS:
        add(commands)
    return parser


@command(
    "schema",
    "print a JSON Schema",
    argument(
        "of",
        "of suite files, or of report.json (default: suite)",
        choices=("suite", "report"),
        nargs="?",
        default="suite",
    ),
)
def _schema(options: Options) -> int:
    print(resources.schema(options.of), end="")
    return 0
