"""Helpers of the subcommands: numbers for argparse, and what is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from pytest_kbrel.bounds import Bounds
from pytest_kbrel.outputs import is_stdout
from pytest_kbrel.printing import printable

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
# The value of --json where it may name a file and names none.
STDOUT = Path("-")


def finish(
    parser: argparse.ArgumentParser,
    run: Callable[[argparse.Namespace], int],
) -> None:
    """Add ``--json``, which :func:`print_result` obeys; set ``run``."""
    parser.set_defaults(run=run)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


def add_output(
    parser: argparse.ArgumentParser, metavar: str, about: str, *, required: bool = True
) -> None:
    """Add ``--output`` and ``--force``."""
    parser.add_argument(
        "--output", metavar=metavar, type=Path, required=required, help=about
    )
    parser.add_argument("--force", action="store_true", help="replace what is there")


def is_json_only(options: argparse.Namespace) -> bool:
    """Return True if standard output is to be one JSON document."""
    return getattr(options, "json", None) in (True, STDOUT)


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document, in ASCII: paths and model names may hold any character."""
    print(json.dumps(document, indent=1, default=os.fspath, allow_nan=False))


def print_result(
    options: argparse.Namespace, document: Mapping[str, Any], lines: Iterable[object]
) -> None:
    """Print what a command did: ``document`` with ``--json``, otherwise ``lines`` for people."""
    if is_json_only(options):
        print_document(document)
        return
    output = getattr(options, "output", None)
    is_taken = output is not None and is_stdout(output)
    for line in lines:
        print(printable(str(line)), file=sys.stderr if is_taken else sys.stdout)


def number_within(bounds: Bounds) -> Callable[[str], float]:
    """Return a reader of numbers within ``bounds``; argparse says what its error says."""

    def read(text: str) -> float:
        try:
            return bounds.integer(text) if bounds.whole else bounds.number(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read
