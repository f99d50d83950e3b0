"""Fuzz targets for some minutes each, or repeat a finding: ``python -m tests.fuzz --help``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fuzz.engine import Tally, Worker, fuzz, load, problem_of
from tests.fuzz.targets import TARGETS


def main() -> int:
    """Return 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"of {', '.join(TARGETS)}; default: all",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=10.0,
        help="for all targets together (default: 10)",
    )
    parser.add_argument(
        "--found",
        type=Path,
        default=Path("fuzz-found"),
        help="folder for what is found",
    )
    parser.add_argument("--seed", type=int, help="draw the same examples again")
    parser.add_argument(
        "--repeat",
        type=Path,
        metavar="FOLDER",
        help="run one finding again, and print all of it",
    )
    given = parser.parse_args()
    if given.repeat:
        example = load(given.repeat)
        with Worker() as worker:
            ended = worker.run(example.job)
        print(ended if isinstance(ended, str) else ended.text)
        problem = problem_of(example, ended)
        print(f"found: {problem}" if problem else "not found any more")
        return bool(problem)
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(
            f"unknown target {', '.join(sorted(unknown))}; allowed: {', '.join(TARGETS)}"
        )
    names = given.targets or list(TARGETS)
    tallies: list[Tally] = []
    for name in names:
        tallies.append(
            fuzz(
                TARGETS[name], 60 * given.minutes / len(names), given.found, given.seed
            )
        )
        print(tallies[-1].line(), flush=True)
    return int(any(tally.problems for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
