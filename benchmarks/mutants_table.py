"""The figures of the mutants, folder by folder, and the mutants that no test kills.

    python benchmarks/mutants_table.py
    python benchmarks/mutants_table.py --survivors stats.intervals

Reads what benchmarks/mutants.py keeps in .mutants. The table has a line for each folder that was run.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mutants import FOLDERS, PACKAGE, read

COLUMNS = (
    "folder",
    "mutants",
    "killed",
    "timeout",
    "survived",
    "not covered",
    "killed or timeout",
)

Kept = Mapping[str, Mapping[str, Any]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table or the survivors; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--modules", action="store_true", help="a line for each module too"
    )
    parser.add_argument(
        "--survivors",
        metavar="NAME",
        help="a folder, a module or a function: its survivors",
    )
    given = parser.parse_args(arguments)
    if given.survivors is not None:
        print("\n".join(survivors(given.survivors.removeprefix(f"{PACKAGE}."))))
        return 0
    print("\n".join(table(modules=given.modules)))
    return 0


def table(*, modules: bool = False) -> list[str]:
    """Return the lines of the table."""
    lines = [row(COLUMNS), "|---|" + "--:|" * (len(COLUMNS) - 1)]
    total = [0] * 5
    for folder in FOLDERS:
        results = read(folder)
        if not results:
            continue
        figures = figures_of(results)
        total = [sum(pair) for pair in zip(total, figures, strict=True)]
        lines.append(row([f"`{folder}/`", *cells(figures)]))
        if modules:
            names = dict.fromkeys(one["module"] for one in results.values())
            lines += [row([name, *cells(figures_of(results, name))]) for name in names]
    return [*lines, row(["all", *cells(total)])]


def figures_of(results: Kept, module: str = "") -> list[int]:
    """Return how many mutants there are, and how many of each kind."""
    counts = Counter(
        one["status"]
        for one in results.values()
        if not module or one["module"] == module
    )
    untested = counts.pop("not tested", 0)
    if untested:
        print(
            f"{untested} mutants of {module or 'a folder'} were not tested",
            file=sys.stderr,
        )
    return [counts.total(), *(counts[status] for status in COLUMNS[2:6])]


def cells(figures: Sequence[int]) -> list[str]:
    """Return the figures as they are written, with the share that was killed."""
    share = (figures[1] + figures[2]) / figures[0] if figures[0] else 1.0
    # Not rounded up: what is written as 90 % is 90 % at least.
    return [*(f"{number:,}" for number in figures), f"{int(share * 1000) / 10:.1f} %"]


def row(of: Sequence[str]) -> str:
    """Return one line of a table."""
    return f"| {' | '.join(of)} |"


def survivors(name: str) -> Iterator[str]:
    """Yield the lines that show each mutant of a folder, a module or a function that no test kills."""
    for mutant, one in read(name.partition(".")[0]).items():
        short = mutant.removeprefix(f"{PACKAGE}.")
        wanted = f"{short}.".replace(":", ".").startswith(f"{name}.")
        if wanted and one["status"] in ("survived", "not covered"):
            yield f"# {short}, line {one['line']}: {one['status']}"
            both = (one[side].splitlines() for side in ("before", "after"))
            yield from list(difflib.unified_diff(*both, n=1, lineterm=""))[3:]
            yield ""


if __name__ == "__main__":
    raise SystemExit(main())
