"""False alarms and power of other release gates beside those of pytest-kbrel, on the same paired answers.

    pip install --no-deps --target other-gates evalsig==0.1.2 deltagate==0.1.1 evalgate-cli==0.2.0
    PYTHONPATH=other-gates OMP_NUM_THREADS=1 python benchmarks/other_gates.py
    PYTHONPATH=other-gates python benchmarks/other_gates.py --recorded kbrel-report kbrel-report-*/

A session is 20 slices of paired answers, drawn with fixed seeds; each gate judges the same sessions.
``--recorded`` adds runs: the report of the baseline's model, and those of candidates compared with the same
baseline (`make demo demo-candidates`). Writes other_gates.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from gate_power_coverage import SLICES, Array, Rng, percent, table
from gate_power_draws import WHOLE, changes
from gate_power_recorded import name_of
from other_gates_verdicts import RED, UNDECIDED, OtherGate, Slice, check, gates

from pytest_kbrel.records import CaseResult
from pytest_kbrel.session.outcomes import recorded_run

SIZES = (120, 300, 1000)
FLIPS = (0.02, 0.05, 0.1)
LOSSES = (0.05, 0.1, 0.15)
ALLOWED = 0.02
# Facts of one object, and how alike they change; None: each fact for itself.
OBJECT = 4
STRUCTURES = {"alone": None, "icc .1": 0.1, "icc .5": 0.5}
ACCURACY = 0.8
# So many sessions of each cell are judged by the packages' own code where the scripts judge all at once.
CHECKED = 2
# The columns of a recorded table that say whether a fact was answered right.
RIGHT = {"head_to_tail": "correct", "monitor": "cell:none:0"}


def drawn(
    rng: Rng,
    sessions: int,
    n: int,
    flips: float,
    drops: Sequence[float],
    icc: float | None,
) -> list[Slice]:
    """Draw slices that truly drop by ``drops``; at least a share of ``flips`` of the facts change."""
    sizes = (1,) * n if icc is None else (OBJECT,) * (n // OBJECT)
    slices: list[Slice] = []
    for drop in drops:
        flip = max(flips, drop)
        x = changes(rng, sessions, sizes, flip, drop, icc or 0.0, WHOLE)
        changed = (x != 0).sum(1)
        also = rng.binomial(n - changed, (ACCURACY - (flip + drop) / 2) / (1 - flip))
        slices.append(
            Slice(
                x=x, right=(x > 0).sum(1) + also, sizes=None if icc is None else sizes
            )
        )
    check(slices, CHECKED)
    return slices


def red(codes: Array) -> str:
    """Return the share of sessions with a red verdict, in %."""
    return percent(float((codes == RED).any(1).mean()))


def null_tables(judges: Sequence[OtherGate], sessions: int) -> Iterator[str]:
    """Sessions that are red though nothing was lost, and slices that stay undecided."""
    undecided: dict[str, list[str]] = {
        judge.name: [] for judge in judges if judge.undecided
    }
    yield "## Nothing lost: red sessions, in %\n"
    yield "By flips and by how the facts change. `same` is a candidate that answers as the baseline does.\n"
    head = [
        "gate",
        "same",
        *(f"{flips:.0%}, {name}" for flips in FLIPS for name in STRUCTURES),
    ]
    for n in SIZES:
        same = [Slice(x=np.zeros((1, n)), right=np.array([int(ACCURACY * n)]))] * SLICES
        cells = {judge.name: [red(judge.judge(same))] for judge in judges}
        for flips in FLIPS:
            for number, icc in enumerate(STRUCTURES.values()):
                rng = np.random.default_rng([11, n, int(100 * flips), number])
                slices = drawn(rng, sessions, n, flips, [0.0] * SLICES, icc)
                for judge in judges:
                    codes = judge.judge(slices)
                    cells[judge.name].append(red(codes))
                    if icc is None and judge.undecided:
                        undecided[judge.name].append(
                            percent(float((codes == UNDECIDED).mean()))
                        )
        yield f"{n:,} facts a slice:\n"
        yield from table(head, [[name, *row] for name, row in cells.items()])
    yield "## Nothing lost, facts alone: slices undecided, in %\n"
    yield "The other gates know no such verdict: what is not red is green.\n"
    head = ["gate", *(f"{n:,}, {flips:.0%}" for n in SIZES for flips in FLIPS)]
    yield from table(head, [[name, *row] for name, row in undecided.items()])


def allowed_table(judges: Sequence[OtherGate], sessions: int) -> Iterator[str]:
    """Sessions that are red though each slice dropped by what the suites allow."""
    cells: dict[str, list[str]] = {judge.name: [] for judge in judges}
    for n in SIZES:
        for number, icc in enumerate(STRUCTURES.values()):
            rng = np.random.default_rng([12, n, number])
            slices = drawn(rng, sessions, n, 0.05, [ALLOWED] * SLICES, icc)
            for judge in judges:
                cells[judge.name].append(red(judge.judge(slices)))
    yield f"## Every slice truly drops by {ALLOWED}: red sessions, in %\n"
    yield "5 % of the facts flip. All suites of pytest-kbrel permit this drop, as do the two thresholds. The"
    yield "other gates have no number for a drop that is permitted: for them red is right here.\n"
    head = ["gate", *(f"{n:,}, {name}" for n in SIZES for name in STRUCTURES)]
    yield from table(head, [[name, *row] for name, row in cells.items()])


def loss_table(judges: Sequence[OtherGate], sessions: int) -> Iterator[str]:
    """Sessions that are red because one slice lost much, and whether that slice is named."""
    cells: dict[str, list[str]] = {judge.name: [] for judge in judges}
    for n in SIZES:
        for loss in LOSSES:
            rng = np.random.default_rng([13, n, int(100 * loss)])
            slices = drawn(rng, sessions, n, 0.05, [loss] + [0.0] * (SLICES - 1), None)
            for judge in judges:
                codes = judge.judge(slices)
                named = (
                    percent(float((codes[:, 0] == RED).mean()))
                    if judge.names_slices
                    else "-"
                )
                cells[judge.name].append(f"{red(codes)} / {named}")
    yield f"## One slice of {SLICES} lost: red sessions / sessions in which that slice is named, in %\n"
    yield "5 % of the facts of all other slices flip; facts alone.\n"
    head = ["gate", *(f"{n:,}, lost {loss}" for n in SIZES for loss in LOSSES)]
    yield from table(head, [[name, *row] for name, row in cells.items()])


def recorded(base: Path, path: Path) -> list[tuple[Slice, list[str]]]:
    """Read the slices of a candidate with one question a fact, and the objects of each."""
    before, after = (
        {case.nodeid: case for case in recorded_run(side).cases}
        for side in (base, path)
    )
    return [
        paired(case, before[node], RIGHT[case.probe])
        for node, case in after.items()
        if node in before and case.probe in RIGHT
    ]


def paired(case: CaseResult, base: CaseResult, column: str) -> tuple[Slice, list[str]]:
    """Pair a case's facts with the baseline's."""
    index, old = (
        case.table.columns.index(column),
        {row.fact_id: row for row in base.table.rows},
    )
    at = base.table.columns.index(column)
    rows = sorted((row for row in case.table.rows if row.fact_id in old), key=name_of)
    was = np.array([old[row.fact_id].values[at] for row in rows])
    x = was - np.array([row.values[index] for row in rows])
    names = [name for name, _ in groupby(map(name_of, rows))]
    sizes = tuple(len(list(group)) for _, group in groupby(map(name_of, rows)))
    alone = max(sizes) == 1
    part = Slice(
        x=x[None].astype(np.float32),
        right=was.sum(keepdims=True),
        sizes=None if alone else sizes,
    )
    return part, names


def tossed(
    rng: Rng, sessions: int, slices: Sequence[tuple[Slice, list[str]]]
) -> list[Slice]:
    """Exchange the answers of candidate and baseline, object by object, each with probability one half."""
    every = sorted({name for _, names in slices for name in names})
    signs = np.where(rng.random((sessions, len(every))) < 0.5, -1, 1).astype(np.float32)
    null = []
    for part, names in slices:
        columns = np.repeat(
            [every.index(name) for name in names], part.sizes or [1] * part.n
        )
        x = part.x * signs[:, columns]
        null.append(
            Slice(x=x, right=part.right - part.lost + (x > 0).sum(1), sizes=part.sizes)
        )
    return null


def recorded_tables(
    judges: Sequence[OtherGate], paths: Sequence[Path], sessions: int
) -> Iterator[str]:
    """Recorded candidates, and sessions tossed from their answers."""
    runs = {path.name: recorded(paths[0], path) for path in paths[1:]}
    as_is: dict[str, list[str]] = {judge.name: [] for judge in judges}
    null: dict[str, list[str]] = {judge.name: [] for judge in judges}
    for number, run in enumerate(runs.values()):
        slices = [part for part, _ in run]
        drawn_anew = tossed(np.random.default_rng([14, number]), sessions, run)
        check(slices, 1)
        check(drawn_anew, CHECKED)
        for judge in judges:
            codes = judge.judge(slices)
            count = (
                f"{(codes == RED).sum()} red"
                if judge.names_slices
                else "red" * bool((codes == RED).any())
            )
            as_is[judge.name].append(count or "green")
            null[judge.name].append(red(judge.judge(drawn_anew)))
    yield "## Recorded candidates: red slices\n"
    yield f"The {len(next(iter(runs.values())))} slices of Head-to-Tail and MONITOR (its plain question) of"
    yield "the world suite, with facts in clusters as the suite has them, all judged by the same gate. The"
    yield "suite itself gives MONITOR's slices other numbers, and has gates on other figures.\n"
    head = ["gate", *(name.removeprefix("kbrel-report-") for name in runs)]
    yield from table(head, [[name, *row] for name, row in as_is.items()])
    yield "## Recorded candidates with nothing lost: red sessions, in %\n"
    yield "The answers of candidate and baseline are exchanged object by object, each with probability one"
    yield "half: what changed stays what really changed, and nothing is lost on average.\n"
    yield from table(head, [[name, *row] for name, row in null.items()])


def main() -> None:
    """Draw and judge everything, and write the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--sessions", type=int, default=200, help="sessions of each cell"
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        nargs="+",
        default=[],
        help="report folders, baseline first",
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    begun = time.monotonic()
    judges = gates()
    lines = [
        "# Other gates on the same answers\n",
        "    pip install --no-deps --target other-gates evalsig==0.1.2 deltagate==0.1.1 evalgate-cli==0.2.0",
        "    make demo demo-candidates",
        "    PYTHONPATH=other-gates OMP_NUM_THREADS=1 python benchmarks/other_gates.py \\",
        "        --recorded kbrel-report kbrel-report-*/\n",
        f"A session is {SLICES} slices of paired answers, and red if any slice is. Of each cell,",
        f"{given.sessions} sessions are drawn with fixed seeds, the same for all gates. The baseline has",
        f"{ACCURACY:.0%} right. Flips are the share of facts whose verdict changes, as many lost as gained.",
        f"Facts change alone, or {OBJECT} share an object, and their changes have the intra-class",
        "correlation `icc`. Gates that take clusters are given the objects.\n",
        "Two tests of Kübler et al. are written here, since there is no package: the one over all questions",
        "together, and the one of the largest standardized drop of a slice, whose p-value is computed, not",
        "simulated. The verdicts of evalsig and pytest-kbrel are computed for all sessions at once, and",
        "compared with their own code in some of each cell.\n",
        "## The gates\n",
        *table(
            ["gate", "version", "red", "what it cannot know or say"],
            [[judge.name, judge.version, judge.red, judge.blind] for judge in judges],
            4,
        ),
        *null_tables(judges, given.sessions),
        *allowed_table(judges, given.sessions),
        *loss_table(judges, given.sessions),
    ]
    if given.recorded:
        lines += recorded_tables(judges, given.recorded, given.sessions)
    (given.out / "other_gates.md").write_text(
        "\n".join(lines).rstrip() + "\n", encoding="utf-8"
    )
    print(*lines, f"{time.monotonic() - begun:.0f} s", sep="\n")


if __name__ == "__main__":
    main()
