"""Decision of a case: its integrity first, then every gate."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence

from pytest_kbrel.catalogue.verdicts import SEVERITY, worst
from pytest_kbrel.gates.changes import (
    change_figures,
    churn_of,
    fact_changes,
    without_tokens,
)
from pytest_kbrel.gates.comparison import Comparison
from pytest_kbrel.gates.figures import (
    AT_WORST,
    Figure,
    at_worst,
    figures_of,
    mean_figure,
)
from pytest_kbrel.gates.integrity import (
    check_at_most,
    check_integrity,
    count,
    is_nan,
    percent,
    truncated_in,
)
from pytest_kbrel.gates.measurement import Obstacle, Pairing, measure_figures
from pytest_kbrel.gates.rules import decide, gate_result
from pytest_kbrel.gates.waivers import under_waivers, waived_facts
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Change,
    Gate,
    GateResult,
    Integrity,
    Judgement,
    Looks,
    Table,
    Unmatched,
    reason,
    record,
    settings_of,
)


@record
class Outcomes:
    """What came of a case: a row for each fact with usable responses, and a text for each other one.

    ``looks`` say how far a case was asked that may stop early.
    """

    table: Table
    errors: tuple[str, ...] = ()
    looks: Looks | None = None


def decide_case(case: Case, outcomes: Outcomes, comparison: Comparison) -> CaseResult:
    """Measure one case and judge its gates.

    Responses that are no ground for a measurement make the case ``invalid``; nothing is then measured. Where
    the suite lets some facts be without usable response, these are in no figure, and their errors stay with
    the result. Facts that a waiver names are in the case's own figures and in no comparison.
    """
    table, errors = _with_clusters(case, outcomes.table), outcomes.errors
    result = dataclasses.replace(
        _result_of(case, "pass", len(table.rows), errors),
        truncated=truncated_in(table),
        table=table,
        notes=case.notes,
        looks=outcomes.looks,
        unmatched=Unmatched(waived=waived_facts(case.waivers)),
    )
    if not case.own_metric:
        sound = check_integrity(case, table, errors)
        result = dataclasses.replace(result, integrity=sound.shares)
        if sound.broken:
            # NaN has no wire form, and the message counts these rows.
            finite = tuple(row for row in table.rows if not is_nan(row.values))
            result = dataclasses.replace(
                result,
                verdict="invalid",
                gates=unjudged(case.gates, sound.broken[0]),
                errors=sound.broken,
                table=Table(columns=table.columns, rows=finite),
                unmatched=Unmatched(),
            )
            return under_waivers(result, case.waivers)
    compared = compare_case(result, case.gates, comparison, asked=case)
    return under_waivers(compared, case.waivers)


def part_result(
    case: Case,
    facts: int,
    errors: Sequence[str],
) -> CaseResult:
    """Return what one shard has of a case: nothing is measured and no gate judged, so it is inconclusive.

    ``facts`` of the case are in the shard; ``errors`` are the responses that could not be used. It is
    ``invalid`` where these alone are more than the suite lets the whole case have.
    """
    broken = len(errors) > case.integrity.errored * len(case.facts)
    asked = f"{facts} of {count(len(case.facts), 'fact')} asked here"
    return dataclasses.replace(
        _result_of(case, "invalid" if broken else "inconclusive", facts, errors),
        notes=(asked, *case.notes),
    )


def _result_of(
    case: Case, verdict: Judgement, facts: int, errors: Sequence[str]
) -> CaseResult:
    return CaseResult(
        id=case.id,
        suite=case.suite,
        probe="test" if case.own_metric else case.probe,
        slice=case.id if case.own_metric else case.slice,
        label=case.label,
        verdict=verdict,
        n=facts,
        errors=tuple(errors),
        settings=() if case.own_metric else settings_of(case),
    )


def _with_clusters(case: Case, table: Table) -> Table:
    """Return the table whose rows know the cluster of their facts."""
    clusters = {fact.id: fact.cluster(case.cluster) for fact in case.facts}
    return Table(
        columns=table.columns,
        rows=tuple(
            dataclasses.replace(row, cluster=clusters[row.fact_id])
            if clusters.get(row.fact_id)
            else row
            for row in table.rows
        ),
    )


def compare_case(
    result: CaseResult,
    gates: Sequence[Gate],
    comparison: Comparison,
    *,
    asked: Case | None = None,
) -> CaseResult:
    """Measure a case on its table and judge ``gates``, beside what else is known of it.

    ``asked`` is what was asked, where it is known: a recorded run is compared without its suite. Facts that
    ``result`` calls waived are in no comparison.
    """
    pairings = comparison.pairings(result)
    lost: tuple[Change, ...] = ()
    gained: tuple[Change, ...] = ()
    for pairing in pairings:
        lost, gained = fact_changes(asked, pairing)
    is_there = bool(pairings) or comparison.published(result) is not None
    judged = judge_figures(
        result,
        gates,
        _figures(result, pairings),
        [result],
        pairings,
        comparison,
        missing=() if is_there else (result.id,),
    )
    # A recorded run says itself who was asked in vain.
    in_vain = set(
        result.unmatched.unanswered
        if asked is None
        else (fact.id for fact in asked.facts)
    )
    unasked = [fact for pairing in pairings for fact in pairing.unasked]
    lacking = comparison.lacking(result, unasked)
    # Of a recorded run they say what its own baseline had.
    shares = [share for share in judged.integrity if share.name != "unasked"]
    if lacking:
        limits = Integrity() if asked is None else asked.integrity
        total = sum(len(pairing.asked) + len(pairing.unasked) for pairing in pairings)
        shares.append(check_at_most(limits, "unasked", len(lacking), total, "").share)
    compared = dataclasses.replace(
        judged,
        integrity=tuple(shares),
        lost=lost,
        gained=gained,
        unmatched=Unmatched(
            added=tuple(fact for pairing in pairings for fact in pairing.added),
            unasked=tuple(fact for fact in unasked if fact not in {*in_vain, *lacking}),
            waived=result.unmatched.waived,
            unanswered=tuple(fact for fact in unasked if fact in in_vain),
            lacking=lacking,
        ),
    )
    return unless_shrunk(compared, [compared])


def unless_shrunk(result: CaseResult, cases: Iterable[CaseResult]) -> CaseResult:
    """Return a decided case, not comparable where ``cases`` lack more facts of the baseline than allowed.

    These are itself, or what it is over. What is left may be what the model knows, so no gate is judged.
    """
    why = "; ".join(
        f"{case.id}: {share.value} of the {count(share.total, 'fact')} of the baseline are not asked any more "
        f"(first: {case.unmatched.lacking[0]}); allowed: at most {percent(share.limit)} ('unasked' of "
        "integrity), or bless anew what is asked now"
        for case in cases
        for share in case.integrity
        if share.name == "unasked" and share.broken
    )
    return incomparable_case(result, why) if why else result


def incomparable_case(result: CaseResult, why: str) -> CaseResult:
    """Return a decided case of which no gate is judged, since it cannot be compared."""
    gates = tuple(gate_result(gate, "not comparable", why) for gate in result.gates)
    return dataclasses.replace(
        result, verdict="not comparable", gates=gates, notes=(why, *result.notes)
    )


def _figures(result: CaseResult, pairings: Sequence[Pairing]) -> tuple[Figure, ...]:
    table = result.table
    if result.probe != "test":
        return figures_of(metrics_for(result.probe, result.slice, table.columns))
    # The metric of a test in Python has the name of its column.
    tables = (table, *(pairing.baseline for pairing in pairings))
    return tuple(mean_figure(name, name, tables) for name in table.columns)


def judge_figures(
    result: CaseResult,
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    cases: Sequence[CaseResult],
    pairings: Sequence[Pairing],
    comparison: Comparison,
    *,
    missing: Sequence[str] = (),
    obstacle: Obstacle | None = None,
) -> CaseResult:
    """Return a case, or one over several ``cases``, with ``figures`` measured and ``gates`` judged.

    ``missing`` are the cases that the baseline lacks, and ``obstacle`` stands in the way of a comparison
    where nothing else does.
    """
    tables = [case.table for case in cases]
    another = comparison.another_tokenizer
    churn = churn_of(pairings, another_tokenizer=another)
    measure = functools.partial(
        measure_figures,
        figures,
        comparisons=comparison.comparisons,
        published=None if missing else comparison.published(result),
        paper=comparison.paper,
        looks=result.looks,
    )
    measurement = dataclasses.replace(
        measure(tables, pairings),
        changes=change_figures(churn, pairings),
        no_tokens=without_tokens(pairings, another_tokenizer=another),
        obstacle=comparison.obstacle(cases, pairings, missing) or obstacle,
    )
    results = decide(gates, measurement)
    # The answers of a test in Python may be none of a model's.
    for ends in () if result.probe == "test" else AT_WORST:
        worst = [at_worst(table, ends, None) for table in tables]
        if worst == tables:
            continue
        paired = [
            dataclasses.replace(of, candidate=at_worst(of.candidate, ends, of.baseline))
            for of in pairings
        ]
        counted = measure(worst, paired).figures
        others = decide(gates, dataclasses.replace(measurement, figures=counted))
        results = tuple(map(_worse, results, others))
    return dataclasses.replace(
        result,
        verdict=verdict_of(results, baseline_asked=comparison.with_run),
        metrics=measurement.values,
        gates=results,
        churn=churn,
    )


def _worse(result: GateResult, other: GateResult) -> GateResult:
    """Return a gate's result, or where it is worse that with empty answers counted against the model."""
    if SEVERITY.index(other.verdict) >= SEVERITY.index(result.verdict):
        return result
    return other.because(reason("empty"))


def verdict_of(results: Iterable[GateResult], *, baseline_asked: bool) -> Judgement:
    """Return a case's verdict, its worst gate's; a gate that could not be judged makes it invalid.

    When no baseline was asked for, relative gates stay unjudged and the others decide; ``no baseline`` is
    then the verdict of a case that has relative gates only, and no failure. When one was asked for, ``no
    baseline`` means that it lacks the case, which is a failure. The figures of a paper count as not asked
    for: what it did not measure stays unjudged. A case without gates passes.
    """
    verdicts = {result.verdict for result in results}
    if not baseline_asked and verdicts != {"no baseline"}:
        verdicts.discard("no baseline")
    return "invalid" if "invalid" in verdicts else worst(verdicts)


def unjudged(gates: Iterable[Gate], why: str) -> tuple[GateResult, ...]:
    """Return all gates as invalid."""
    return tuple(gate_result(gate, "invalid", f"not judged: {why}") for gate in gates)
