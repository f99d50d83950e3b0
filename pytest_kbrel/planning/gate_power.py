"""Power of the gates of a plan: the smallest drops they could detect, by :mod:`pytest_kbrel.gates.power`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_kbrel.baselines import Baseline, BaselineCase
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.gates import part_result
from pytest_kbrel.gates.comparison import waived_facts, without
from pytest_kbrel.gates.figures import (
    Figure,
    as_expected,
    figures_of,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.power import GatePower, Member, gate_powers
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.metrics.calibration import PROBABILITIES
from pytest_kbrel.probes.wordings import count_of
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    Outcome,
    Suite,
    Table,
)


def power_of_gates(
    suites: Sequence[Suite],
    cases: Sequence[Case],
    columns: Mapping[str, tuple[str, ...]],
    *,
    baseline: Baseline | None,
    coming: bool = False,
    probabilities: bool,
) -> tuple[GatePower, ...]:
    """Return what each gate of ``cases``, and of the aggregates over them, could detect.

    ``columns`` are those of each case's table of outcomes, by node id. ``coming``: the model to compare with
    is asked in the same run, so that it has no outcomes yet. Without ``probabilities`` the model gives none
    of its answers.
    """
    families = {suite.path: family_size(suite) for suite in suites}
    absent = () if probabilities else PROBABILITIES
    paired = baseline is None or not baseline.paper
    if not paired:
        unknown = "compared with a paper's figure, not fact by fact"
    elif baseline is not None:
        unknown = "the baseline has no such case"
    else:
        unknown = (
            "the other model is asked in this run" if coming else "needs a baseline"
        )

    def columns_of(case: Case) -> tuple[str, ...]:
        names = columns[f"{case.suite}::{case.id}"]
        return tuple(name for name in names if name not in absent)

    def powers(
        case: Case | AggregateCase,
        figures: Sequence[Figure],
        members: Sequence[Member],
    ) -> tuple[GatePower, ...]:
        return gate_powers(
            f"{case.suite}::{case.id}",
            case.gates,
            figures,
            members,
            comparisons=max(families.get(case.suite, 1), 1),
            unknown=unknown,
            paired=paired,
        )

    members = {(case.suite, case.id): _member(case, baseline) for case in cases}
    results = {
        (case.suite, case.id): dataclasses.replace(
            part_result(case, len(case.facts), ()),
            table=Table(columns=columns_of(case), rows=()),
        )
        for case in cases
    }
    gates: list[GatePower] = []
    for case in cases:
        metrics = metrics_for(case.probe, case.slice, columns_of(case))
        gates += powers(case, figures_of(metrics), [members[case.suite, case.id]])
    by_key = {(case.suite, case.id): case for case in cases}
    for aggregate in (one for suite in suites for one in suite.aggregates):
        over = [(aggregate.suite, member) for member in aggregate.members]
        if not over or not by_key.keys() >= {*over}:
            continue
        if aggregate.probe == "pooled":
            pooled = [_pooled(by_key[key], members[key]) for key in over]
            gates += powers(aggregate, pooled_figures(len(over)), pooled)
        else:
            figures = figures_over([results[key] for key in over])
            gates += powers(aggregate, figures, [members[key] for key in over])
    return tuple(gates)


def _member(case: Case, baseline: Baseline | None) -> Member:
    facts = tuple(fact.id for fact in case.facts)
    named = ((fact.id, fact.cluster(case.cluster)) for fact in case.facts)
    blessed = None if baseline is None else baseline.case(case)
    before = None
    if isinstance(blessed, BaselineCase):
        table, asked = without(blessed.table, waived_facts(case.waivers)), set(facts)
        rows = tuple(row for row in table.rows if row.fact_id in asked)
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
    expected = tuple(
        Outcome(
            fact_id=fact.id,
            question="",
            expected=fact.object or "",
            answer="",
            label="wrong",
            values=(),
            prompt_digest="",
        )
        for fact in case.facts
    )
    table = as_expected(member.before, Table(columns=(), rows=expected))
    return dataclasses.replace(member, before=table)
