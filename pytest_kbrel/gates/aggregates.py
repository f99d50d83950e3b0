"""Cases over several cases, of one probe or of all: their figures measured and their gates judged.

Intervals come from the jackknife over facts, stratified by case (:func:`pytest_kbrel.stats.jackknife`); a
fact that several cases ask about is one cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import chain

from pytest_kbrel.gates.cases import judge_figures, unjudged, unless_shrunk
from pytest_kbrel.gates.comparison import Comparison
from pytest_kbrel.gates.figures import (
    as_expected,
    distinct_changes,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.measurement import Obstacle
from pytest_kbrel.gates.waivers import under_waivers
from pytest_kbrel.records import AggregateCase, CaseResult


def decide_aggregate(
    aggregate: AggregateCase, members: Sequence[CaseResult], comparison: Comparison
) -> CaseResult:
    """Measure and judge what ``aggregate`` says about its members.

    ``members`` may hold other cases as well; a member that is missing or invalid makes the aggregate
    ``invalid`` and is named.
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
    result = CaseResult(
        id=aggregate.id,
        suite=aggregate.suite,
        probe=aggregate.probe,
        slice=aggregate.slice,
        verdict="invalid",
        n=0,
        aggregate=True,
        members=aggregate.members,
    )
    if broken or not aggregate.members:
        why = (
            f"{aggregate.id} cannot be measured: {'; '.join(broken) or 'it has no members'}; "
            "allowed: members that were all measured"
        )
        invalid = dataclasses.replace(
            result, gates=unjudged(aggregate.gates, why), errors=(why,)
        )
        return under_waivers(invalid, aggregate.waivers)
    cases = [results[member] for member in aggregate.members]
    pooled = aggregate.probe == "pooled"
    if pooled:
        cases = [
            dataclasses.replace(case, table=as_expected(case.table, case.table))
            for case in cases
        ]
    paired = {case.id: comparison.pairings(case, pooled=pooled) for case in cases}
    missing = [member for member, pairings in paired.items() if not pairings]
    if comparison.paper:
        is_there = _is_printed(aggregate, comparison)
        missing = (
            [] if is_there else [f"{aggregate.id} over the same {len(cases)} cases"]
        )
    judged = judge_figures(
        result,
        aggregate.gates,
        pooled_figures(len(cases)) if pooled else figures_over(cases),
        cases,
        () if missing else [*chain.from_iterable(paired.values())],
        comparison,
        missing=missing,
        obstacle=_stopped(cases),
    )
    complete = dataclasses.replace(
        judged,
        n=len({row.fact_id for case in cases for row in case.table.rows}),
        lost=distinct_changes(case.lost for case in cases) if pooled else (),
        gained=distinct_changes(case.gained for case in cases) if pooled else (),
    )
    return under_waivers(unless_shrunk(complete, cases), aggregate.waivers)


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


def _is_printed(aggregate: AggregateCase, comparison: Comparison) -> bool:
    """Return True if the paper prints figures over exactly these members: over others they are other ones."""
    published = comparison.published(aggregate)
    # The top tenth counts in no figure but its own.
    ours = {member for member in aggregate.members if not member.endswith("-top10]")}
    return published is not None and set(published.members) == ours
