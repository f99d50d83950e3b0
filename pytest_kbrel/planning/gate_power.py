"""Power of the gates of a plan: the smallest drops they could detect, by :mod:`pytest_kbrel.gates.power`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.gates.figures import (
    Figure,
    as_expected,
    figures_of,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.gates.waivers import waived_facts, without
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.calibration import PROBABILITIES
from pytest_kbrel.probes.wordings import count_of
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    CaseResult,
    Outcome,
    Suite,
    Table,
)

# The columns of each case's table of outcomes, by node id.
Columns = Mapping[str, tuple[str, ...]]


def power_of_gates(
    suites: Sequence[Suite],
    cases: Sequence[Case],
    columns: Columns,
    *,
    baseline: Baseline | None,
    families: Mapping[str, int],
    coming: bool = False,
    probabilities: bool = True,
) -> tuple[GatePower, ...]:
    """Return what each gate of ``cases``, and of the aggregates over them, could detect.

    ``families`` are the numbers of cases of each suite that compare with a baseline, by its path.
    ``coming``: the model to compare with is asked in the same run, so that it has no outcomes yet. Without
    ``probabilities`` the model gives none of its answers.
    """
    view = _View(columns, baseline, families, coming, probabilities)
    here = {(case.suite, case.id): case for case in cases}
    gates = [power for case in cases for power in view.case(case)]
    for suite in suites:
        for aggregate in suite.aggregates:
            members = [here.get((suite.path, member)) for member in aggregate.members]
            selected = [case for case in members if case is not None]
            if len(selected) == len(members) and selected:
                gates += view.aggregate(aggregate, selected)
    return tuple(gates)


class _View:
    def __init__(
        self,
        columns: Columns,
        baseline: Baseline | None,
        families: Mapping[str, int],
        coming: bool,
        probabilities: bool,
    ) -> None:
        unknown = () if probabilities else PROBABILITIES
        self._columns = {
            case: tuple(name for name in names if name not in unknown)
            for case, names in columns.items()
        }
        self._baseline = baseline
        self._families = families
        self._coming = coming

    def case(self, case: Case) -> tuple[GatePower, ...]:
        metrics = metrics_for(case.probe, case.slice, self._columns_of(case))
        return self._powers(case, figures_of(metrics), [self._member(case)])

    def aggregate(
        self, aggregate: AggregateCase, cases: Sequence[Case]
    ) -> tuple[GatePower, ...]:
        members = [self._member(case) for case in cases]
        if aggregate.probe == "pooled":
            figures = pooled_figures(len(cases))
            members = [
                _pooled(case, member)
                for case, member in zip(cases, members, strict=True)
            ]
        else:
            results = [_result(case, self._columns_of(case)) for case in cases]
            figures = figures_over(results)
        return self._powers(aggregate, figures, members)

    def _columns_of(self, case: Case) -> tuple[str, ...]:
        return self._columns[f"{case.suite}::{case.id}"]

    def _powers(
        self,
        case: Case | AggregateCase,
        figures: Sequence[Figure],
        members: Sequence[Member],
    ) -> tuple[GatePower, ...]:
        return gate_powers(
            f"{case.suite}::{case.id}",
            case.gates,
            figures,
            members,
            comparisons=max(self._families.get(case.suite, 1), 1),
            unknown=self._unknown(),
            paired=self._baseline is None or not self._baseline.paper,
        )

    def _unknown(self) -> str:
        if self._baseline is not None:
            if self._baseline.paper:
                return "compared with a paper's figure, not fact by fact"
            return "the baseline has no such case"
        return (
            "the other model is asked in this run"
            if self._coming
            else "needs a baseline"
        )

    def _member(self, case: Case) -> Member:
        facts = tuple(fact.id for fact in case.facts)
        named = ((fact.id, fact.cluster(case.cluster)) for fact in case.facts)
        blessed = None if self._baseline is None else self._baseline.case(case)
        before = None
        if isinstance(blessed, BaselineCase):
            table = without(blessed.table, waived_facts(case.waivers))
            rows = tuple(row for row in table.rows if row.fact_id in set(facts))
            before = Table(columns=table.columns, rows=rows)
        return Member(
            facts=facts,
            before=before,
            clusters=tuple((fact, name) for fact, name in named if name),
            wordings=count_of(case),
        )


def _pooled(case: Case, member: Member) -> Member:
    if member.before is None:
        return member
    expected = Table(columns=(), rows=tuple(_expected_outcomes(case)))
    return dataclasses.replace(member, before=as_expected(member.before, expected))


def _expected_outcomes(case: Case) -> Iterable[Outcome]:
    for fact in case.facts:
        yield Outcome(
            fact_id=fact.id,
            question="",
            expected=fact.object or "",
            answer="",
            label="wrong",
            values=(),
            prompt_digest="",
        )


def _result(case: Case, columns: tuple[str, ...]) -> CaseResult:
    return CaseResult(
        id=case.id,
        suite=case.suite,
        probe=case.probe,
        slice=case.slice,
        verdict="inconclusive",
        n=len(case.facts),
        table=Table(columns=columns, rows=()),
    )
