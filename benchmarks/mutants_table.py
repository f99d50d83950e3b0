"""The figures of the mutants, folder by folder, and the mutants that no test kills.

    python benchmarks/mutants_table.py --into docs/mutation-testing.md
    python benchmarks/mutants_table.py --survivors stats.intervals

Reads what benchmarks/mutants.py keeps in .mutants. A folder that was not run here keeps the line that it has
in the page.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mutants import FOLDERS, PACKAGE, read

START, END = "<!-- table: benchmarks/mutants_table.py -->", "<!-- end of table -->"
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
    """Print the table or the survivors, or put the table into a page; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--into", type=Path, help="a page with the markers of the table"
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
    if given.into is None:
        print("\n".join(table({}, modules=given.modules)))
        return 0
    before, start, rest = given.into.read_text(encoding="utf-8").partition(START)
    old, end, after = rest.partition(END)
    if not start or not end:
        print(
            f"mutants_table: {given.into} needs the markers {START!r} and {END!r}",
            file=sys.stderr,
        )
        return 2
    text = "\n".join(table(rows_of(old)))
    given.into.write_text(
        f"{before}{START}\n\n{text}\n\n{END}{after}", encoding="utf-8"
    )
    return 0


def table(old: Mapping[str, Sequence[int]], *, modules: bool = False) -> list[str]:
    """Return the lines of the table; ``old`` are the figures of folders that were not run here."""
    lines = [row(COLUMNS), "|---|" + "--:|" * (len(COLUMNS) - 1)]
    total = [0] * 5
    for folder in FOLDERS:
        results = read(folder)
        figures = figures_of(results) if results else old.get(folder)
        if figures is None:
            continue
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


def rows_of(text: str) -> dict[str, list[int]]:
    """Return the figures by folder that a table has."""
    figures = {}
    for line in text.splitlines():
        name, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        if name.startswith("`"):
            figures[name.strip("`/")] = [
                int(cell.replace(",", "")) for cell in rest[:5]
            ]
    return figures


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
