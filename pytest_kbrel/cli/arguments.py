"""Commands of ``kbrel``: their arguments as data, and what they print."""

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
Options: TypeAlias = argparse.Namespace
Run: TypeAlias = Callable[[Options], int]
# What adds each command.
COMMANDS: list[Callable[[Commands], None]] = []
# The title under which an argument is listed, its names, and what argparse is to know of it.
Argument: TypeAlias = tuple[str, str, dict[str, Any]]
# The value of --json where it may name a file and names none.
STDOUT = Path("-")


def argument(
    name: str,
    about: str,
    form: Bounds | Callable[[str], Any] | None = None,
    *,
    group: str = "",
    **how: Any,
) -> Argument:
    """Return an argument; ``form`` reads its text, ``group`` is the title under which it is listed.

    ``how`` is what else argparse is to know of it.
    """
    if isinstance(form, Bounds):
        form = number_within(form)
    return group, name, {"help": about, **({"type": form} if form else {}), **how}


def switch(name: str, about: str, *, group: str = "") -> Argument:
    """Return a flag without a value."""
    return argument(name, about, group=group, action="store_true")


RUN = argument("report", "a report folder or its report.json", Path, metavar="RUN")
FORCE = switch("--force", "replace what is there")


def output(
    metavar: str, about: str, *, required: bool = True
) -> tuple[Argument, Argument]:
    """Return ``--output`` and ``--force``."""
    return argument("--output", about, Path, metavar=metavar, required=required), FORCE


def command(
    name: str,
    about: str,
    *arguments: Argument,
    json: bool = True,
    parent: tuple[str, str] | None = None,
    **more: Any,
) -> Callable[[Run], Run]:
    """Make a command of a function of its options that returns the exit code.

    It has these arguments and ``--json``, which :func:`print_result` obeys. ``parent`` is the command of which
    it is one, with its help, ``more`` what else argparse is to know of it.
    """

    def decorated(run: Run) -> Run:
        def add(commands: Commands) -> None:
            if parent:
                above = commands.choices.get(parent[0])
                above = above or commands.add_parser(parent[0], help=parent[1])
                below = above.get_default("below")
                commands = below or above.add_subparsers(required=True, metavar="WHAT")
                above.set_defaults(below=commands)
            parser = commands.add_parser(name, help=about, **more)
            parser.set_defaults(run=run)
            groups: dict[str, Any] = {"": parser}
            in_json = switch("--json", "print one JSON document and nothing else")
            for group, flags, how in (*arguments, *([in_json] if json else [])):
                if group not in groups:
                    groups[group] = parser.add_argument_group(group)
                groups[group].add_argument(*flags.split(), **how)

        COMMANDS.append(add)
        return run

    return decorated


def is_json_only(options: Options) -> bool:
    """Return True if standard output is to be one JSON document."""
    return getattr(options, "json", None) in (True, STDOUT)


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document, in ASCII: paths and model names may hold any character."""
    print(json.dumps(document, indent=1, default=os.fspath, allow_nan=False))


def print_result(
    options: Options, document: Mapping[str, Any], lines: Iterable[object]
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
