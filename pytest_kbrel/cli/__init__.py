"""The ``kbrel`` command: what needs no pytest run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pytest_kbrel import __version__
from pytest_kbrel.cli.commands import COMMANDS
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.printing import printable

# What a shell reports of a program that the signal of a broken pipe ended.
_BROKEN_PIPE = 128 + 13


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 with one line on standard error when the user must mend something."""
    options = _parser().parse_args(arguments)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python would complain once more while it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except (KbrelError, OSError) as error:
        print(printable(f"kbrel: {error}"), file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kbrel", description="Tools around suites that gate language-model checkpoints."
    )
    parser.add_argument("--version", action="version", version=f"kbrel {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.register(commands)
    return parser
