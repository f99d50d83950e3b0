"""How much less a fact's change varies if it is averaged over several wordings of the question.

    make demo demo-candidates
    python benchmarks/wordings.py kbrel-report kbrel-report-*/

Each report is that of a candidate, the first one that of the baseline. A slice counts if its facts were asked
in at least three wordings: the frames of MONITOR without a context, or ``wordings`` of the other probes. The
change of an answer is whether it is right now minus whether it was before. Its variance over the facts of a
slice, of one wording (on average) and of the mean over the first k, is added up over the slices.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pytest_kbrel.printing import format_table
from pytest_kbrel.records import Table
from pytest_kbrel.session.outcomes import recorded_run

FEWEST = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("baseline", type=Path, help="report of the baseline's model")
    parser.add_argument(
        "candidates", type=Path, nargs="+", help="reports of the candidates"
    )
    given = parser.parse_args(arguments)
    base = {case.id: case.table for case in recorded_run(given.baseline).cases}
    rows = [
        [
            "candidate",
            "slices",
            "wordings",
            "variance of one",
            "3 averaged",
            "all averaged",
            "worth",
        ]
    ]
    for path in given.candidates:
        if path.resolve() == given.baseline.resolve():
            continue
        cases = {case.id: case.table for case in recorded_run(path).cases}
        slices = [changes(cases[name], base[name]) for name in cases if name in base]
        moved = [one for one in slices if one is not None and one.any()]
        if not moved:
            continue
        single, three, every = (
            sum(variance(one, count) for one in moved) for count in (1, FEWEST, None)
        )
        wordings = "/".join(map(str, sorted({one.shape[1] for one in moved})))
        rows.append(
            [
                *(path.name, str(len(moved)), wordings, f"{single / len(moved):.4f}"),
                *(
                    f"{three / single:.2f}",
                    f"{every / single:.2f}",
                    f"{single / every:.1f} times the facts",
                ),
            ]
        )
    print("\n".join(format_table(rows)))
    return 0


def changes(table: Table, before: Table) -> npt.NDArray[np.float64] | None:
    """Return how each answer of the facts changed (1, 0 or -1), shape (facts, wordings)."""
    new, old = right(table), right(before)
    common = sorted(new.keys() & old.keys())
    if (
        not common
        or len(new[common[0]]) < FEWEST
        or len(new[common[0]]) != len(old[common[0]])
    ):
        return None
    return np.array([np.subtract(new[fact], old[fact]) for fact in common])


def right(table: Table) -> dict[str, list[float]]:
    """Return whether each wording of each fact was answered right, by fact id."""
    frames = [
        index
        for index, name in enumerate(table.columns)
        if name.startswith("cell:none:")
    ]
    if frames:
        return {
            row.fact_id: [row.values[index] for index in frames] for row in table.rows
        }
    return {
        row.fact_id: [float(of.label == "correct") for of in row.replies]
        for row in table.rows
    }


def variance(moves: npt.NDArray[np.float64], count: int | None) -> float:
    """Return the variance over facts of the mean over the first ``count`` wordings; of one, on average."""
    if count == 1:
        return float(moves.var(axis=0, ddof=1).mean())
    return float(moves[:, :count].mean(axis=1).var(ddof=1))


if __name__ == "__main__":
    raise SystemExit(main())
