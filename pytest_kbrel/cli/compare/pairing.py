"""Recorded runs compared fact by fact: the first is the baseline, each other a candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    another_tokenizer,
    incomparable,
    listed_differences,
)
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.cli.compare.loading import Side, gate_of, waivers_of
from pytest_kbrel.records import UNMEASURED, CaseResult, Gate, Run, Table, record

# The first one is the baseline: what it lacks is a failure.
FAILING = failing(compared=True)


@record
class Paired:
    """A candidate held against the baseline. ``run`` has its decided cases and what may differ.

    ``p_holm`` are Holm's p-values by (node id, figure), over all figures of all candidates shown;
    ``obstacles`` say by node id why a case cannot be compared.
    """

    run: Run
    p_holm: Mapping[tuple[str, str], float | None]
    obstacles: Mapping[str, str]

    @property
    def fails(self) -> bool:
        """Whether a gate of the candidate fails against the baseline unwaived, or a waiver has expired."""
        return any(
            case.expired or any(gate.verdict in FAILING for gate in case.gates)
            for case in self.run.cases
            if not case.waived
        )


def pair_up(baseline: Side, candidates: Sequence[tuple[str, Side]], name: str) -> tuple[Paired, ...]:
    """Hold each candidate (its name, its run) against the baseline, which is called ``name``.

    All gates together are one family of tests: Šidák's correction is for the relative ones of all candidates.
    """
    from pytest_kbrel import stats
    from pytest_kbrel.gates.family import with_family

    m = sum(GATE_RULES[gate.rule].relative for _, side in candidates for gate in _gates(side))
    decided = [_decided(side, baseline.run, max(m, 1)) for _, side in candidates]
    adjusted = iter(with_family([case for cases in decided for case in cases]))
    runs = [
        _run_of(side, tuple(next(adjusted) for _ in cases), baseline.run, name)
        for (_, side), cases in zip(candidates, decided, strict=True)
    ]
    places = [
        (of, case.nodeid, value.name, value.p)
        for of, run in enumerate(runs)
        for case in run.cases
        for value in case.metrics
    ]
    holm = stats.holm([p for *_, p in places])
    by_figure = [
        {(case, value): p for (at, case, value, _), p in zip(places, holm, strict=True) if at == of}
        for of in range(len(runs))
    ]
    return tuple(
        Paired(run=run, p_holm=ps, obstacles=_obstacles(side, run.cases, baseline.run))
        for run, ps, (_, side) in zip(runs, by_figure, candidates, strict=True)
    )


def _decided(side: Side, baseline: Baseline, comparisons: int) -> list[CaseResult]:
    from pytest_kbrel.gates import compare_case, decide_aggregate
    from pytest_kbrel.gates.waivers import under_waivers

    tokenizer = another_tokenizer(side.run.model, baseline)
    found: list[CaseResult] = []
    for case in side.cases:
        before = baseline.case(case)
        if case.verdict == "invalid" or not case.table.rows:
            found.append(case)
            continue
        known = before.table if isinstance(before, BaselineCase) else None
        told = dataclasses.replace(case, table=_with_texts(case, known))
        decided = compare_case(
            told,
            [gate_of(gate) for gate in case.gates],
            baseline=before,
            baseline_asked=True,
            comparisons=comparisons,
            incomparable=_incomparable(side.run, baseline, [told]),
            another_tokenizer=tokenizer,
            other_suites=baseline.other_suites(case.suite),
        )
        found.append(under_waivers(decided, waivers_of(case)))
    for aggregate in side.aggregates:
        members = [case for case in found if case.suite == aggregate.suite]
        found.append(
            decide_aggregate(
                aggregate,
                members,
                baseline=baseline,
                comparisons=comparisons,
                incomparable=_incomparable(
                    side.run, baseline, [case for case in members if case.id in aggregate.members]
                ),
                another_tokenizer=tokenizer,
            )
        )
    return found


def _obstacles(side: Side, cases: Sequence[CaseResult], baseline: Baseline) -> dict[str, str]:
    """Return why cases cannot be compared, whether they have gates or not."""
    from pytest_kbrel.baselines import setting_differences
    from pytest_kbrel.gates.cases import obstacle_of
    from pytest_kbrel.gates.measurement import Measurement, Pairing, pair

    found = {}
    for case in cases:
        before = baseline.case(case)
        if case.aggregate or case.verdict in UNMEASURED:
            continue
        pairings: tuple[Pairing, ...] = ()
        if isinstance(before, BaselineCase):
            pairings = (pair(case.table, before.table, setting_differences(case.settings, before.settings)),)
        obstacle = obstacle_of(
            [case.id],
            Measurement(figures=(), pairings=pairings),
            () if pairings else (case.id,),
            asked=True,
            incomparable=_incomparable(side.run, baseline, [case]),
            another_tokenizer=another_tokenizer(side.run.model, baseline),
            other_suites=baseline.other_suites(case.suite),
        )
        if obstacle is not None:
            found[case.nodeid] = ": ".join(obstacle)
    return found


def _incomparable(run: Baseline, baseline: Baseline, cases: Sequence[CaseResult]) -> tuple[str, ...]:
    judged = any(
        row.expected
        for case in cases
        if (probe := probe_named(case.probe)) and probe.judged
        for row in case.table.rows
    )
    written_by = {dict(case.settings).get("distractors_from", "") for case in cases}
    writers = [helper for helper in run.helpers if helper.spec in written_by]
    return incomparable(run.model, baseline, judged=judged, judge=run.judge, writers=writers)


def _with_texts(case: CaseResult, other: Table | None) -> Table:
    """Return the case's table with the questions and answers of ``other`` where it kept none itself."""
    rows = case.table.rows
    if any(row.question for row in rows):
        return case.table
    known = {row.fact_id: row for row in other.rows if row.question} if other is not None else {}
    # Of unseen knowledge nothing is expected; what else was expected, nobody knows any more.
    probe = probe_named(case.probe)
    unseen = probe is not None and probe.kind(case.slice) == "unseen"
    told = []
    for row in rows:
        twin = known.get(row.fact_id)
        expected = twin.expected if twin is not None else "" if unseen else "?"
        question = twin.question if twin is not None else row.fact_id
        told.append(dataclasses.replace(row, question=question, expected=expected))
    return Table(columns=case.table.columns, rows=tuple(told))


def _run_of(side: Side, cases: tuple[CaseResult, ...], baseline: Baseline, name: str) -> Run:
    run = Run(
        kbrel_version=side.run.kbrel_version,
        created=side.run.created,
        model=side.run.model,
        environment=side.run.versions,
        settings=side.run.settings,
        cases=cases,
        baseline=name,
        helpers=side.run.helpers,
        base=baseline.model,
    )
    return dataclasses.replace(run, differences=listed_differences(run, baseline))


def _gates(side: Side) -> list[Gate]:
    own = [gate_of(gate) for case in side.cases for gate in case.gates]
    return own + [gate for aggregate in side.aggregates for gate in aggregate.gates]
