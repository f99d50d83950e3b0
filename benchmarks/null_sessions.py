"""How often recorded runs without a true difference are red, and how many of their slices stay undecided.

    make demo demo-candidates
    python benchmarks/null_sessions.py kbrel-report kbrel-report-*/

Each report is that of a candidate compared with the same baseline, whose own report is the first. A null
session exchanges the answers of candidate and baseline, cluster by cluster (all facts that share an answer
together), each with probability one half: what changed stays what really changed, and nothing is lost or
gained on average. All gates that compare with a baseline are then decided anew, with the numbers that stand
in the report, and once more with no drop allowed.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from gate_power_coverage import table
from gate_power_draws import measured_for
from gate_power_recorded import name_of

from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.cli.compare.recorded import (
    baseline_of,
    decide_again,
    family_size,
)
from pytest_kbrel.gates.cases import verdict_of
from pytest_kbrel.gates.figures import (
    Figure,
    as_expected,
    figures_of,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.measurement import Pairing, pair
from pytest_kbrel.gates.rules import decide
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import CaseResult, Gate, GateResult, Outcome, Run, Table
from pytest_kbrel.session.outcomes import recorded_run

NOTHING = "red, no drop allowed"
HEAD = (
    "candidate",
    "verdicts changed",
    "red",
    "slices inconclusive",
    "slices passed",
    NOTHING,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "baseline", type=Path, help="report of the baseline's model against itself"
    )
    parser.add_argument(
        "candidates", type=Path, nargs="+", help="reports of the candidates"
    )
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    base = recorded_run(given.baseline)
    rows = []
    for path in given.candidates:
        if path.resolve() == given.baseline.resolve():
            continue
        recorded = Recorded(recorded_run(path), base)
        rng = np.random.default_rng(given.seed)
        counts = sum(
            (recorded.session(rng) for _ in range(given.sessions)), Counter[str]()
        )
        slices = given.sessions * len(
            [case for case in recorded.cases if not case.result.aggregate]
        )
        totals = dict.fromkeys(HEAD[2:], given.sessions) | {
            "slices inconclusive": slices,
            "slices passed": slices,
        }
        shares = [f"{counts[name] / total:.1%}" for name, total in totals.items()]
        rows.append([path.name, recorded.changed, *shares])
        print(path.name, file=sys.stderr, flush=True)
    print("\n".join(table(HEAD, rows, 2)))
    return 0


@dataclasses.dataclass(frozen=True)
class Case:
    """A case, or one over several, with gates that compare: what they are about, and in which cases."""

    result: CaseResult
    gates: tuple[Gate, ...]
    figures: tuple[Figure, ...]
    members: tuple[Pairs, ...]

    @property
    def strict(self) -> tuple[Gate, ...]:
        """The gates with no drop allowed."""
        none = {
            rule: 0.0 if of.allows_more > 0 else 1.0 for rule, of in GATE_RULES.items()
        }
        return tuple(
            dataclasses.replace(gate, bound=none[gate.rule], beyond=none[gate.rule])
            for gate in self.gates
        )


@dataclasses.dataclass(frozen=True)
class Pairs:
    """The outcomes of a case in candidate and baseline, as they were and exchanged, with their clusters."""

    kept: Pairing
    exchanged: Pairing
    clusters: Sequence[int]

    def tossed(self, tails: Sequence[bool]) -> Pairing:
        """Return the pairing with the answers of some clusters exchanged."""
        of_rows = [tails[cluster] for cluster in self.clusters]

        def mixed(kept: Table, exchanged: Table) -> Table:
            rows = zip(kept.rows, exchanged.rows, of_rows, strict=True)
            return Table(
                columns=kept.columns,
                rows=tuple(b if tail else a for a, b, tail in rows),
            )

        return dataclasses.replace(
            self.kept,
            candidate=mixed(self.kept.candidate, self.exchanged.candidate),
            baseline=mixed(self.kept.baseline, self.exchanged.baseline),
        )

    @property
    def pooled(self) -> Pairs:
        """The same as a member of the case over all probes."""
        kept, exchanged = (
            dataclasses.replace(
                of,
                candidate=as_expected(of.candidate, of.candidate),
                baseline=as_expected(of.baseline, of.candidate),
            )
            for of in (self.kept, self.exchanged)
        )
        return Pairs(kept, exchanged, self.clusters)


class Recorded:
    """A recorded candidate beside its baseline, whose answers are exchanged and judged anew."""

    def __init__(self, run: Run, base: Run) -> None:
        self.family = family_size(run)
        blessed = baseline_of(base, Path())
        self.clusters: dict[str, int] = {}
        decided = decide_again(run, blessed, self.family)
        pairs = {
            case.nodeid: self._pairs(case, blessed.case(case))
            for case in decided
            if not case.aggregate and case.table.rows
        }
        self.cases = [
            self._case(result, decided, pairs)
            for result in decided
            if any(GATE_RULES[gate.rule].relative for gate in result.gates)
        ]
        for case, gates, _ in self.judged([False] * len(self.clusters)):
            verdicts = {of.line: of.verdict for of in case.result.gates}
            assert all(verdicts[gate.line] == gate.verdict for gate in gates), (
                case.result.id
            )

    @property
    def changed(self) -> str:
        """The share of facts whose verdict changed, over all slices and in the one with the most."""
        churns = [
            case.result.churn
            for case in self.cases
            if not case.result.aggregate and case.result.churn
        ]
        share = sum(churn.labels for churn in churns) / sum(
            churn.facts for churn in churns
        )
        return f"{share:.1%} (at most {max(churn.labels / churn.facts for churn in churns):.0%})"

    def _pairs(self, case: CaseResult, before: object) -> Pairs:
        assert isinstance(before, BaselineCase)
        kept = pair(case.table, before.table)
        new, old = kept.candidate, kept.baseline
        exchanged = [
            (answered(ours, theirs), answered(theirs, ours))
            for ours, theirs in zip(new.rows, old.rows, strict=True)
        ]
        ours, theirs = (
            Table(columns=table.columns, rows=rows)
            for table, rows in zip(
                (new, old), zip(*exchanged, strict=True), strict=True
            )
        )
        names = list(map(name_of, new.rows))
        return Pairs(
            kept,
            dataclasses.replace(kept, candidate=ours, baseline=theirs),
            [self.clusters.setdefault(name, len(self.clusters)) for name in names],
        )

    def _case(
        self,
        result: CaseResult,
        decided: Sequence[CaseResult],
        pairs: Mapping[str, Pairs],
    ) -> Case:
        gates = tuple(gate for gate in result.gates if GATE_RULES[gate.rule].relative)
        if not result.aggregate:
            metrics = metrics_for(result.probe, result.slice, result.table.columns)
            return Case(result, gates, figures_of(metrics), (pairs[result.nodeid],))
        of_suite = {case.id: case for case in decided if case.suite == result.suite}
        cases = [of_suite[member] for member in result.members]
        members = tuple(pairs[case.nodeid] for case in cases)
        if result.probe != "pooled":
            return Case(result, gates, figures_over(cases), members)
        return Case(
            result,
            gates,
            pooled_figures(len(cases)),
            tuple(of.pooled for of in members),
        )

    def judged(
        self, tails: Sequence[bool]
    ) -> Iterator[tuple[Case, tuple[GateResult, ...], tuple[GateResult, ...]]]:
        """Judge all cases with the answers of some clusters exchanged: as they are, and no drop allowed."""
        for case in self.cases:
            pairings = [pairs.tossed(tails) for pairs in case.members]
            measurement = measured_for(case.gates, case.figures, pairings, self.family)
            as_they_are, strict = (
                decide(gates, measurement) for gates in (case.gates, case.strict)
            )
            yield case, as_they_are, strict

    def session(self, rng: np.random.Generator) -> Counter[str]:
        """Exchange the answers of half of the clusters; count slices by verdict, and what the session was."""
        slices, session = Counter[str](), set[str]()
        for case, gates, strict in self.judged(
            (rng.random(len(self.clusters)) < 0.5).tolist()
        ):
            failed = [gate for gate in gates if gate.verdict == "fail"]
            session |= {"red"} if failed else set()
            session |= (
                {NOTHING} if any(gate.verdict == "fail" for gate in strict) else set()
            )
            if not case.result.aggregate:
                verdict = verdict_of(gates, baseline_asked=True)
                slices[
                    "slices passed" if verdict == "pass" else f"slices {verdict}"
                ] += 1
        return slices + Counter(session)


def answered(row: Outcome, other: Outcome) -> Outcome:
    """Return a row with the outcome of another."""
    return dataclasses.replace(
        row, answer=other.answer, label=other.label, values=other.values
    )


if __name__ == "__main__":
    sys.exit(main())
