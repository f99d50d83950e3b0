"""Power of the gates of a plan: the smallest drop of a rate that a run would find."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from pytest_kbrel.catalogue.rules import GATE_RULES, family_size
from pytest_kbrel.evaluation.stub_run import columns_of
from pytest_kbrel.gates import part_result
from pytest_kbrel.gates.figures import Figure, figures_of, figures_over, pooled_figures
from pytest_kbrel.gates.rules import FEW_CLUSTERS
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.probes.wordings import count_of
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    Gate,
    Rule,
    Suite,
    Table,
    record,
)
from pytest_kbrel.stats import (
    ClusteredMean,
    Difference,
    Estimate,
    Flips,
    cluster_df,
    detectable,
    sidak,
)

# Nobody knows beforehand how much two models differ. A tenth of the facts, one way or the other, is what a
# fine-tune or a quantisation often moves.
DISCORDANT = 0.1
# Of the answers to several wordings about one fact. In the recorded candidates of the demo, means over 3
# wordings had 0.42 to 0.58 of the variance of one, means over 7 had 0.24 to 0.34 (benchmarks/wordings.py).
WORDING_CORRELATION = 0.2


@record
class GatePower:
    """The power of one gate over ``n`` facts.

    ``is_planned`` says that the gate compares a rate fact by fact. ``drop`` is then the smallest one that is
    found with 80 % power, if :data:`DISCORDANT` of the facts change; ``None`` where not even the loss of all
    facts is found. The changes of the wordings of a fact have the correlation
    :data:`WORDING_CORRELATION`.
    """

    case: str
    metric: str
    rule: Rule
    bound: float
    n: int
    is_planned: bool = False
    drop: float | None = None


def power_of_gates(
    suites: Sequence[Suite], cases: Sequence[Case], *, paired: bool
) -> tuple[GatePower, ...]:
    """Return what each gate of ``cases``, and of the aggregates over them, could detect.

    ``paired``: the comparison with the baseline is one fact by fact.
    """
    selected = {(case.suite, case.id): case for case in cases}
    powers = []
    for suite in suites:
        alpha = sidak(max(family_size(suite), 1))
        judged: tuple[Case | AggregateCase, ...] = (*suite.cases, *suite.aggregates)
        for case in judged:
            names = [case.id] if isinstance(case, Case) else case.members
            members = [
                selected[suite.path, name]
                for name in names
                if (suite.path, name) in selected
            ]
            if not members or len(members) < len(names):
                continue
            figures = {figure.name: figure for figure in _figures(case, members)}
            for gate in case.gates:
                figure = figures.get(gate.metric) if paired else None
                powers.append(_power(case, gate, figure, members, alpha))
    return tuple(powers)


def _figures(case: Case | AggregateCase, members: Sequence[Case]) -> Sequence[Figure]:
    if case.probe == "pooled":
        return pooled_figures(len(members))
    results = [
        dataclasses.replace(
            part_result(member, len(member.facts), ()),
            table=Table(columns=columns_of(member), rows=()),
        )
        for member in members
    ]
    if isinstance(case, AggregateCase):
        return figures_over(results)
    return figures_of(metrics_for(case.probe, case.slice, results[0].table.columns))


def _power(
    case: Case | AggregateCase,
    gate: Gate,
    figure: Figure | None,
    members: Sequence[Case],
    alpha: float,
) -> GatePower:
    if figure is not None:
        members = [members[at] for at in sorted({at for at, _ in figure.columns})]
    rule = GATE_RULES[gate.rule]
    power = GatePower(
        case=f"{case.suite}::{case.id}",
        metric=gate.metric,
        rule=gate.rule,
        bound=gate.bound,
        n=len({fact.id for member in members for fact in member.facts}),
    )
    # What a share of the baseline's value is, only the baseline knows.
    if (
        figure is None
        or not (rule.relative and figure.rate)
        or figure.over
        or rule.allows_more < 0
    ):
        return power
    clusters = {
        fact.id: fact.cluster(member.cluster) or fact.id
        for member in members
        for fact in member.facts
    }.values()
    n, df = len(clusters), cluster_df([*clusters])
    effective = n**2 / sum(size**2 for size in Counter(clusters).values())
    drop = None
    if df is not None and (effective == n or effective >= FEW_CLUSTERS):
        wordings = min(map(count_of, members))
        # Of the variance of a fact's change so much is left when its wordings are averaged.
        left = WORDING_CORRELATION + (1 - WORDING_CORRELATION) / wordings
        changed = Difference(
            estimate=Estimate(),
            flips=Flips(n=n, down=round(DISCORDANT * left * n), up=0, both=0),
            clustered=None
            if effective == n
            else ClusteredMean(value=0.0, se=0.0, df=df, effective=effective),
        )
        drop = detectable(changed, rule.beyond(gate), alpha)
    known = drop if drop is not None and drop <= figure.span else None
    return dataclasses.replace(power, is_planned=True, drop=known)
