"""How many questions --kb-until-decided saves, and whether the verdicts stay what they were.

    make demo demo-candidates
    python benchmarks/fewer_questions.py kbrel-report kbrel-report-*/

Each report is that of a candidate compared with the same baseline, whose own report is the first. Its slices
are decided again look by look, from the recorded outcomes, as a run with --kb-until-decided would. The first
failure is where -x would end the session. Shares are of the facts of all slices.

Null sessions exchange the answers of candidate and baseline, cluster by cluster, as in null_sessions.py. The
last table has slices of 400 facts that are drawn at random: nothing is lost, so many facts change either way.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from gate_power_recorded import ROOT
from null_sessions import Case, Recorded

from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.facts.sampling import first_drawn
from pytest_kbrel.gates import planned_looks
from pytest_kbrel.gates.cases import all_decided
from pytest_kbrel.gates.figures import Figure, figures_of
from pytest_kbrel.gates.measurement import Pairing, measure_figures, pair
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.printing import format_table
from pytest_kbrel.records import Case as SuiteCase
from pytest_kbrel.records import Gate, GateResult, Looks, Outcome, Table
from pytest_kbrel.session.outcomes import recorded_run
from pytest_kbrel.suites import load_suite

Asked = tuple[Looks, tuple[GateResult, ...]]
DRAWN = Gate(metric="accuracy", rule="max_drop", bound=0.08, beyond=0.02)
FACTS, SLICES = 400, 20
COLUMNS = ("correct", "missing", "f1", "rouge_l")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "baseline", type=Path, help="report of the baseline's model against itself"
    )
    parser.add_argument(
        "candidates", type=Path, nargs="+", help="reports of the candidates"
    )
    parser.add_argument(
        "--sessions", type=int, default=100, help="null sessions of each candidate"
    )
    parser.add_argument(
        "--drawn", type=int, default=20, help="sessions of slices drawn at random"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    base = recorded_run(given.baseline)
    recorded = [["candidate", "facts asked", "same verdict", "first failure"]]
    nulls = [["null sessions of", "facts asked", "red", "red, all asked"]]
    for path in given.candidates:
        if path.resolve() == given.baseline.resolve():
            continue
        run = LookedAt(Recorded(recorded_run(path), base))
        recorded.append([path.name, *run.saved()])
        rng = np.random.default_rng(given.seed)
        nulls.append([path.name, *run.null_sessions(rng, given.sessions)])
        print(path.name, file=sys.stderr, flush=True)
    drawn = [["400 facts, T .08, S .02", "facts asked", "passed", "red of 20 slices"]]
    for flips in (0.02, 0.05) if given.drawn else ():
        rng = np.random.default_rng(given.seed)
        drawn.append(
            [
                f"flips {flips:.0%}",
                *drawn_at_random(run.slices[0][1], rng, flips, given.drawn),
            ]
        )
    for rows in (recorded, nulls, drawn):
        print("\n".join(format_table(rows)) + "\n")
    return 0


class LookedAt:
    """The slices of a recorded candidate, decided again look by look."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        slices = [case for case in recorded.cases if not case.result.aggregate]
        paths = {case.result.suite for case in slices}
        suites = {path: load_suite(ROOT / path, nodeid_path=path) for path in paths}
        asked = {
            (path, case.id): case
            for path, suite in suites.items()
            for case in suite.cases
        }
        # A slice that compares nothing is asked at once, and counts as that.
        self.uncompared = sum(
            len(case.facts)
            for case in asked.values()
            if not any(GATE_RULES[gate.rule].relative for gate in case.gates)
        )
        self.slices = [
            (case, asked[case.result.suite, case.result.id]) for case in slices
        ]
        self.facts = sum(len(of.facts) for _, of in self.slices) + self.uncompared

    def looks(
        self, case: Case, of: SuiteCase, tails: Sequence[bool]
    ) -> Iterator[Asked]:
        """Yield the looks at a slice, each with its gates, up to the one at which all are decided."""
        (pairs,) = case.members
        pairing = pairs.tossed(tails)
        family = self.recorded.family
        for look in planned_looks(of, len(of.facts)):
            gates = judged(
                case.gates,
                case.figures,
                part_of(pairing, facts_at(of, look.asked)),
                look,
                family,
            )
            yield look, gates
            if all_decided(gates):
                return

    def saved(self) -> list[str]:
        """Return the share of facts asked, that of gates judged as in full, and those until a failure."""
        tails = [False] * len(self.recorded.clusters)
        taken = [list(self.looks(case, of, tails)) for case, of in self.slices]
        asked = sum(looks[-1][0].asked for looks in taken) + self.uncompared
        pairs = [
            (gate.verdict, full.verdict)
            for (case, _), looks in zip(self.slices, taken, strict=True)
            for gate, full in zip(looks[-1][1], in_full(case), strict=True)
        ]
        same = sum(one == full for one, full in pairs)
        failure = first_failure(taken)
        return [
            f"{asked / self.facts:.0%}",
            f"{same} of {len(pairs)}",
            "none" if failure is None else f"{failure / self.facts:.0%}",
        ]

    def null_sessions(self, rng: np.random.Generator, sessions: int) -> list[str]:
        """Return the share of facts asked in sessions without a difference, and how many were red."""
        asked = red = red_in_full = 0
        family = self.recorded.family
        for _ in range(sessions):
            tails = (rng.random(len(self.recorded.clusters)) < 0.5).tolist()
            taken = [list(self.looks(case, of, tails))[-1] for case, of in self.slices]
            asked += sum(look.asked for look, _ in taken) + self.uncompared
            whole = [
                judged(
                    case.gates,
                    case.figures,
                    case.members[0].tossed(tails),
                    None,
                    family,
                )
                for case, _ in self.slices
            ]
            red += any(failed(gates) for _, gates in taken)
            red_in_full += any(map(failed, whole))
        totals = (asked / self.facts, red, red_in_full)
        return [f"{total / sessions:.1%}" for total in totals]


def first_failure(taken: Sequence[Sequence[Asked]]) -> int | None:
    """Return how many facts are asked until a gate fails, each slice asked until it is decided."""
    before = 0
    for of in taken:
        for look, gates in of:
            if failed(gates):
                return before + look.asked
        before += of[-1][0].asked
    return None


def in_full(case: Case) -> list[GateResult]:
    """Return the gates of a case that compare, as they were judged over all facts."""
    return [gate for gate in case.result.gates if GATE_RULES[gate.rule].relative]


def failed(gates: Sequence[GateResult]) -> bool:
    """Return True if a gate failed."""
    return any(gate.verdict == "fail" for gate in gates)


@functools.cache
def facts_at(of: SuiteCase, asked: int) -> frozenset[str]:
    """Return the ids of the facts that a case asks first."""
    return frozenset(
        fact.id for fact in first_drawn(of.facts, asked, of.seed, of.cluster)
    )


def part_of(pairing: Pairing, facts: frozenset[str]) -> Pairing:
    """Return the pairing of these facts."""

    def part(table: Table) -> Table:
        return Table(
            columns=table.columns,
            rows=tuple(row for row in table.rows if row.fact_id in facts),
        )

    return dataclasses.replace(
        pairing, candidate=part(pairing.candidate), baseline=part(pairing.baseline)
    )


def judged(
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    pairing: Pairing,
    look: Looks | None,
    family: int,
) -> tuple[GateResult, ...]:
    """Judge gates that compare, at a look or at once."""
    names = {gate.metric for gate in gates}
    gated = [figure for figure in figures if figure.name in names]
    measurement = measure_figures(
        gated, [pairing.candidate], [pairing], comparisons=family, looks=look
    )
    return decide(gates, measurement)


def drawn_at_random(
    of: SuiteCase, rng: np.random.Generator, flips: float, sessions: int
) -> list[str]:
    """Return what is asked of slices of which nothing is lost, how many pass, and how many sessions are red.

    As many facts change either way: ``flips`` of them together.
    """
    of = dataclasses.replace(of, gates=(DRAWN,))
    looks = planned_looks(of, FACTS)
    figures = figures_of(metrics_for("head_to_tail", "a", COLUMNS))
    asked = passed = red = 0
    for _ in range(sessions):
        gates: list[GateResult] = []
        for _ in range(SLICES):
            draws = rng.random(FACTS)
            before, after = (
                table_of(draws >= flips / 2),
                table_of(draws < 1 - flips / 2),
            )
            for look in looks:
                ids = frozenset(map(str, range(look.asked)))
                (gate,) = judged(
                    [DRAWN], figures, part_of(pair(after, before), ids), look, SLICES
                )
                if all_decided([gate]):
                    break
            asked += look.asked
            passed += gate.verdict == "pass"
            gates.append(gate)
        red += failed(gates)
    slices = sessions * SLICES
    return [
        f"{asked / slices / FACTS:.0%}",
        f"{passed / slices:.1%}",
        f"{red / sessions:.0%}",
    ]


def table_of(right: np.ndarray) -> Table:
    """Return the outcomes of facts that were right or wrong, shape (facts,)."""
    rows = tuple(
        Outcome(
            fact_id=str(number),
            question="",
            expected="?",
            answer="",
            label="correct" if of else "wrong",
            values=(float(of), 0.0, float(of), float(of)),
            prompt_digest="",
        )
        for number, of in enumerate(right)
    )
    return Table(columns=COLUMNS, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
