"""Recorded runs decided again, as their sessions decided them: the first is the baseline, each other a candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    case_key,
    listed_differences,
    same_draw,
)
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.cli.compare.models import baseline_of
from pytest_kbrel.gates import (
    Comparison,
    compare_case,
    decide_aggregate,
    under_waivers,
    with_family,
    with_looks_told,
)
from pytest_kbrel.gates.rules import gate_result
from pytest_kbrel.records import (
    NOT_KNOWN,
    AggregateCase,
    CaseResult,
    Gate,
    GateResult,
    Run,
    Table,
    Waiver,
)
from pytest_kbrel.reports.comparison import Side


def pair_recorded(sides: Sequence[Side], *, strict: bool) -> list[Side]:
    """Return the models, those with outcomes decided against the first one; all are one family of tests (Šidák)."""
    first, *others = sides
    if first.recorded is None:
        return [*sides]
    baseline = baseline_of(first.recorded, Path(first.name))
    family = sum(family_size(of.recorded) for of in others if of.recorded)
    return [
        first,
        *(
            judged(
                side, _decided(side.recorded, first, baseline, family), strict=strict
            )
            if side.recorded
            else side
            for side in others
        ),
    ]


def judged(side: Side, run: Run, *, strict: bool, foreign: bool = False) -> Side:
    """Return a candidate with its decided run.

    ``strict``: what is inconclusive fails. An invalid case and one that the candidate lacks do too, whatever
    gates they have, unless the runs are ``foreign``: a blessed run of ours does not say which gates it had.
    """
    failures = failing(compared=True, strict=strict)
    run = replace(run, cases=with_family(run.cases))
    decided = {case_key(case.suite, case.id): case for case in run.cases}
    return replace(
        side,
        run=run,
        results={**side.results, **decided},
        fails=any(
            case.expired
            or (case.verdict in ("not run", "invalid") and not foreign)
            or any(gate.verdict in failures for gate in case.gates)
            for case in run.cases
            if not case.waived
        ),
    )


def family_size(run: Run) -> int:
    """Return the number of cases of a recorded run that compare with a baseline."""
    return sum(
        any(GATE_RULES[gate.rule].relative for gate in case.gates) for case in run.cases
    )


def decide_again(run: Run, baseline: Baseline, comparisons: int) -> list[CaseResult]:
    """Decide the cases of a recorded run against ``baseline``, aggregates behind their members.

    ``comparisons`` is the size of the family of tests, such as :func:`family_size`. The notes of a case are
    what stands in the way of comparing it.
    """
    drawn = dict(run.settings)
    is_same = same_draw(baseline, drawn.get("limit"), drawn.get("seed"))
    comparison = Comparison(
        baseline=baseline,
        comparisons=comparisons,
        model=run.model,
        judge=drawn.get("judge", ""),
        helper={helper.spec: helper for helper in run.helpers}.get,
        facts={
            case.nodeid: {
                *case.unmatched.unanswered,
                *(row.fact_id for row in case.table.rows),
            }
            for case in run.cases
            if is_same and not (case.looks and case.looks.early)
        },
    )
    decided: list[CaseResult] = []
    for case in sorted(run.cases, key=lambda case: case.aggregate):
        if case.aggregate:
            decided.append(_aggregate(case, decided, comparison))
        elif case.verdict == "invalid" or not case.table.rows:
            decided.append(case)
        else:
            decided.append(_case(case, comparison))
    return decided


def _case(case: CaseResult, comparison: Comparison) -> CaseResult:
    table = _with_texts(case, comparison.case(case))
    case = replace(case, table=table, notes=())
    paired = [comparison.pairing(case)]
    decided = compare_case(case, [*map(gate_of, case.gates)], comparison)
    if obstacle := comparison.obstacle(case, [case], paired):
        decided = replace(decided, notes=(": ".join(obstacle), *decided.notes))
    return under_waivers(with_looks_told(decided), _waivers(case))


def _aggregate(
    case: CaseResult, decided: Sequence[CaseResult], comparison: Comparison
) -> CaseResult:
    # Where nothing says which cases it is over, it has the figures that were recorded.
    if not case.members:
        return replace(case, gates=())
    aggregate = AggregateCase(
        id=case.id,
        suite=case.suite,
        probe=case.probe,
        slice=case.slice,
        members=case.members,
        gates=tuple(map(gate_of, case.gates)),
        waivers=_waivers(case),
    )
    members = [
        one for one in decided if one.suite == case.suite and one.id in case.members
    ]
    return decide_aggregate(aggregate, members, comparison)


def gate_of(result: GateResult) -> Gate:
    """Return the gate of a gate's result."""
    return Gate(
        metric=result.metric,
        rule=result.rule,
        bound=result.bound,
        line=result.line,
        beyond=result.beyond,
    )


def _waivers(case: CaseResult) -> tuple[Waiver, ...]:
    """Return the waivers that a recorded case stands under, as they were when it was run."""
    return case.expired or (() if case.waiver is None else (case.waiver,))


def _decided(run: Run, first: Side, baseline: Baseline, comparisons: int) -> Run:
    """Return a recorded run as decided against the ``first`` one."""
    assert first.recorded is not None
    cases = decide_again(run, baseline, comparisons)
    there = {case_key(case.suite, case.id) for case in cases}
    why = f"{first.name} has this case, and the candidate does not"
    # With their gates, as far as the baseline knows them.
    lacking = [
        CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            label=case.label,
            verdict="not run",
            n=0,
            gates=tuple(gate_result(gate, "not run", why) for gate in case.gates),
            errors=(why,),
            aggregate=case.aggregate,
            notes=(f"not run: {why}",),
        )
        for case in first.recorded.cases
        if case_key(case.suite, case.id) not in there
    ]
    decided = replace(
        run,
        cases=(*cases, *lacking),
        baseline=first.name,
        base=baseline.model,
        differences=(),
        correlations=(),
        problems=(),
        complete=True,
        compared=None,
    )
    differences = listed_differences(decided, baseline)
    return replace(decided, differences=differences, environment=())


def _with_texts(case: CaseResult, other: BaselineCase | None) -> Table:
    """Return the case's table with the questions and answers of ``other`` where it kept none itself."""
    rows = case.table.rows
    if any(row.question for row in rows):
        return case.table
    known = other.table.rows if other else ()
    texts = {row.fact_id: row for row in known if row.question}
    # Of unseen knowledge nothing is expected; what else was expected, nobody knows any more.
    probe = probe_named(case.probe)
    unseen = probe is not None and probe.kind(case.slice) == "unseen"
    expected = "" if unseen else NOT_KNOWN
    completed = [
        replace(row, question=twin.question, expected=twin.expected)
        if (twin := texts.get(row.fact_id))
        else replace(row, question=row.fact_id, expected=expected)
        for row in rows
    ]
    return Table(columns=case.table.columns, rows=tuple(completed))
