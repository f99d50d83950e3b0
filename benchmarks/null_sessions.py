"""How often recorded runs without a true difference are red, and how many of their slices stay undecided.

    make demo demo-candidates
    python benchmarks/null_sessions.py kbrel-report kbrel-report-*/ --sessions 200

Each report is that of a candidate compared with the same baseline, whose own report is the first. A null
session exchanges the answers of candidate and baseline, object by object (all facts that share an answer
together), each with probability one half: what changed stays what really changed, and nothing is lost or
gained on average. All gates that compare with a baseline are then decided anew, as they stand in the report.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.cli.compare.pairing import RecordedOutcomes, decide_outcomes, family_size, read_outcomes
from pytest_kbrel.printing import format_table
from pytest_kbrel.records import Outcome, Table

ROOT = Path(__file__).parents[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("baseline", type=Path, help="report of the baseline's model against itself")
    parser.add_argument("candidates", type=Path, nargs="+", help="reports of the candidates")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    base = outcomes_of(given.baseline)
    rows = [["candidate", "sessions", "red", "red by never", "slices undecided", "slices passed"]]
    for path in given.candidates:
        if path.resolve() == given.baseline.resolve():
            continue
        side = outcomes_of(path)
        rng = np.random.default_rng(given.seed)
        counts = Counter[str]()
        for _ in range(given.sessions):
            counts += session(*tossed(side, base, rng))
        slices = counts["slices"]
        rows.append(
            [
                path.name,
                str(given.sessions),
                f"{counts['red'] / given.sessions:.1%}",
                f"{counts['never'] / given.sessions:.1%}",
                f"{counts['inconclusive'] / slices:.1%}",
                f"{counts['pass'] / slices:.1%}",
            ]
        )
        print("\n".join(format_table(rows)), file=sys.stderr, flush=True)
    print("\n".join(format_table(rows)))
    return 0


def outcomes_of(path: Path) -> RecordedOutcomes:
    """Read a report folder; exit where it has no outcomes."""
    side = read_outcomes(str(path), ROOT)
    if isinstance(side, str):
        raise SystemExit(f"{path}: {side}")
    return side


def tossed(
    side: RecordedOutcomes, base: RecordedOutcomes, rng: np.random.Generator
) -> tuple[RecordedOutcomes, RecordedOutcomes]:
    """Return candidate and baseline with the answers of half of the objects exchanged."""
    tables = {case.nodeid: case.table for case in base.cases}
    names = sorted({name_of(row) for case in side.cases for row in case.table.rows})
    exchanged = {name for name, tails in zip(names, rng.random(len(names)) < 0.5, strict=True) if tails}
    new, old = [], {}
    for case in side.cases:
        theirs = {row.fact_id: row for row in tables[case.nodeid].rows}
        pairs = [(row, theirs.get(row.fact_id, row)) for row in case.table.rows]
        swapped = [
            (of(ours, other), of(other, ours))
            if (ours.cluster or ours.fact_id) in exchanged
            else (ours, other)
            for ours, other in pairs
        ]
        columns = case.table.columns
        new.append(
            dataclasses.replace(case, table=Table(columns=columns, rows=tuple(pair[0] for pair in swapped)))
        )
        old[case.nodeid] = Table(columns=columns, rows=tuple(pair[1] for pair in swapped))
    return dataclasses.replace(side, cases=tuple(new)), with_tables(base, old)


def name_of(row: Outcome) -> str:
    """Return the cluster of a row, or the fact where it is alone."""
    return row.cluster or row.fact_id


def of(row: Outcome, answers: Outcome) -> Outcome:
    """Return ``row`` with the outcome of ``answers``."""
    return dataclasses.replace(row, answer=answers.answer, label=answers.label, values=answers.values)


def with_tables(base: RecordedOutcomes, tables: Mapping[str, Table]) -> RecordedOutcomes:
    """Return the baseline with other outcomes."""
    cases = {
        key: dataclasses.replace(case, table=next(t for name, t in tables.items() if name.endswith(key)))
        if any(name.endswith(key) for name in tables)
        else case
        for key, case in base.run.cases.items()
    }
    return dataclasses.replace(base, run=dataclasses.replace(base.run, cases=cases))


def session(side: RecordedOutcomes, base: RecordedOutcomes) -> Counter[str]:
    """Decide all gates that compare with the baseline; return what became of cases and session."""
    counts = Counter[str]()
    red = never = False
    for case in decide_outcomes(side, base.run, family_size(side)):
        gates = [gate for gate in case.gates if GATE_RULES[gate.rule].relative]
        if not gates:
            continue
        failed = [gate for gate in gates if gate.verdict == "fail"]
        red = red or bool(failed)
        never = never or any("red by never" in gate.reason for gate in failed)
        if not case.aggregate:
            verdicts = {gate.verdict for gate in gates}
            counts["slices"] += 1
            counts["pass" if verdicts == {"pass"} else "fail" if failed else "inconclusive"] += 1
    counts["red"] += red
    counts["never"] += never
    return counts


if __name__ == "__main__":
    sys.exit(main())
