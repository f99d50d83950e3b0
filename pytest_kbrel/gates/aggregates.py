"""Cases over several cases, of one probe or of all: their figures measured and their gates judged.

Intervals come from the jackknife over facts, stratified by case (:func:`pytest_kbrel.stats.jackknife`); a
fact that several cases ask about is one cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel import stats
from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    PublishedCase,
    setting_differences,
)
from pytest_kbrel.gates.cases import obstacle_of, unjudged, verdict_of
from pytest_kbrel.gates.changes import change_figures, churn_of, without_tokens
from pytest_kbrel.gates.figures import (
    as_expected,
    distinct_changes,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.measurement import Pairing, measure_figures, pair
from pytest_kbrel.gates.rules import Obstacle, decide
from pytest_kbrel.gates.waivers import under_waivers, without
from pytest_kbrel.records import (
    AggregateCase,
    CaseResult,
    Change,
    Churn,
    GateResult,
    Judgement,
    MetricValue,
)


def decide_aggregate(
    aggregate: AggregateCase,
    members: Sequence[CaseResult],
    *,
    baseline: Baseline | None,
    comparisons: int,
    incomparable: Sequence[str] = (),
    another_tokenizer: bool = False,
) -> CaseResult:
    """Measure and judge what ``aggregate`` says about its members.

    ``members`` may hold other cases as well; a member that is missing or invalid makes the aggregate
    ``invalid`` and is named. ``baseline`` is ``None`` when none was asked for. ``comparisons``,
    ``incomparable`` is that of :func:`pytest_kbrel.gates.decide_case`.
    """
    results = {
        result.id: result for result in members if result.suite == aggregate.suite
    }
    broken = [
        f"{member} {'has no result' if member not in results else 'is invalid'}"
        for member in aggregate.members
        if member not in results
        or results[member].verdict == "invalid"
        or not results[member].table.rows
    ]
    if broken or not aggregate.members:
        why = (
            f"{aggregate.id} cannot be measured: {'; '.join(broken) or 'it has no members'}; "
            "allowed: members that were all measured"
        )
        invalid = _result(
            aggregate, "invalid", gates=unjudged(aggregate.gates, why), errors=(why,)
        )
        return under_waivers(invalid, aggregate.waivers)
    cases = [results[member] for member in aggregate.members]
    paper = "" if baseline is None else baseline.paper
    published = _published(aggregate, baseline)
    pooled = aggregate.probe == "pooled"
    missing, pairings = _paired(cases, baseline, pooled)
    if paper:
        missing = (
            []
            if published is not None
            else [f"{aggregate.id} over the same {len(cases)} cases"]
        )
    alpha = stats.sidak(comparisons)
    figures = pooled_figures(len(cases)) if pooled else figures_over(cases)
    tables = [
        as_expected(case.table, case.table) if pooled else case.table for case in cases
    ]
    measurement = measure_figures(
        figures,
        tables,
        () if missing else pairings,
        alpha=alpha,
        published=published,
        paper=paper,
    )
    churn = None if missing else churn_of(pairings, another_tokenizer=another_tokenizer)
    measurement = dataclasses.replace(
        measurement,
        changes=change_figures(churn, pairings),
        no_tokens=without_tokens(pairings, another_tokenizer=another_tokenizer),
    )
    obstacle = obstacle_of(
        aggregate.members,
        measurement,
        missing,
        asked=baseline is not None,
        incomparable=incomparable,
        another_tokenizer=another_tokenizer,
        paper=paper,
        other_suites=() if baseline is None else baseline.other_suites(aggregate.suite),
    )
    gates = decide(
        aggregate.gates,
        measurement,
        obstacle=obstacle or _stopped(cases),
        comparisons=comparisons,
    )
    result = _result(
        aggregate,
        verdict_of(gates, baseline_asked=baseline is not None and not paper),
        n=len({row.fact_id for case in cases for row in case.table.rows}),
        metrics=measurement.values,
        gates=gates,
        churn=churn,
        lost=distinct_changes(case.lost for case in cases) if pooled else (),
        gained=distinct_changes(case.gained for case in cases) if pooled else (),
    )
    return under_waivers(result, aggregate.waivers)


def _stopped(cases: Sequence[CaseResult]) -> Obstacle | None:
    """Return why nothing over all cases is compared where some stopped early, and so by what they showed."""
    stopped = [
        (case.id, case.looks)
        for case in cases
        if case.looks is not None and case.looks.early
    ]
    if not stopped:
        return None
    first, looks = stopped[0]
    return "inconclusive", (
        f"{len(stopped)} of {len(cases)} cases stopped early ({first} after {looks.asked} of {looks.facts} "
        "facts); a comparison over several cases is judged where all were asked in full: leave "
        "--kb-until-decided out"
    )


def _published(
    aggregate: AggregateCase, baseline: Baseline | None
) -> PublishedCase | None:
    """Return what a paper prints over exactly these members: over others it is another figure."""
    case = None if baseline is None else baseline.case(aggregate)
    # The top tenth counts in no figure but its own.
    ours = {member for member in aggregate.members if not member.endswith("-top10]")}
    if not isinstance(case, PublishedCase) or set(case.members) != ours:
        return None
    return case


def _paired(
    cases: Sequence[CaseResult], baseline: Baseline | None, pooled: bool
) -> tuple[list[str], list[Pairing]]:
    """Return the ids of the cases that no blessed run has, and the pairings of the others.

    Facts that a waiver leaves out of their own case's comparison are left out here too.
    """
    missing, pairings = [], []
    for case in cases:
        blessed = None if baseline is None else baseline.case(case)
        if isinstance(blessed, BaselineCase):
            waived = case.unmatched.waived
            tables = without(case.table, waived), without(blessed.table, waived)
            if pooled:
                tables = (
                    as_expected(tables[0], case.table),
                    as_expected(tables[1], case.table),
                )
            pairings.append(
                pair(*tables, setting_differences(case.settings, blessed.settings))
            )
        else:
            missing.append(case.id)
    return missing, pairings


def _result(
    aggregate: AggregateCase,
    verdict: Judgement,
    *,
    n: int = 0,
    metrics: tuple[MetricValue, ...] = (),
    gates: tuple[GateResult, ...] = (),
    churn: Churn | None = None,
    lost: tuple[Change, ...] = (),
    gained: tuple[Change, ...] = (),
    errors: tuple[str, ...] = (),
) -> CaseResult:
    return CaseResult(
        id=aggregate.id,
        suite=aggregate.suite,
        probe=aggregate.probe,
        slice=aggregate.slice,
        verdict=verdict,
        n=n,
        duration=0.0,
        metrics=metrics,
        gates=gates,
        churn=churn,
        lost=lost,
        gained=gained,
        errors=errors,
        aggregate=True,
        members=aggregate.members,
    )
