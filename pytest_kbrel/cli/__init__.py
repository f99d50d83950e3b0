"""The ``kbrel`` command: what needs no pytest run, with a module for each subcommand.

Each function of ``COMMANDS`` adds a parser and sets ``run`` on it: a function of the parsed options that
returns the exit code. Heavy imports belong inside that function.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from pytest_kbrel import __version__
from pytest_kbrel.cli import build, cache, compare, import_, judge, shipped
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.printing import printable

COMMANDS = (
    shipped.register_init,
    import_.register,
    shipped.register_schema,
    build.register,
    compare.register,
    judge.register,
    cache.register,
)
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
    for register in COMMANDS:
        register(commands)
    return parser
