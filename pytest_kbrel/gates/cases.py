"""Decision of a case, and of one over several: integrity first, then every gate, then waivers.

Intervals over several cases come from the jackknife over facts, stratified by case
(:func:`pytest_kbrel.stats.jackknife`); a fact that several cases ask about is one cluster.

A case may stop before all its facts are asked (group-sequential): the largest number of facts is fixed
beforehand, it is judged at equal shares of it, and stops at the first look at which all its comparisons with
the baseline pass or fail by the boundaries of that look (:mod:`pytest_kbrel.stats.sequential`). They keep the
error rates over all looks together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pytest_kbrel import stats
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY, worst
from pytest_kbrel.errors import count
from pytest_kbrel.gates.changes import (
    change_figures,
    churn_of,
    fact_changes,
    without_tokens,
)
from pytest_kbrel.gates.comparison import Comparison, held_against, waived_facts
from pytest_kbrel.gates.figures import (
    AT_WORST,
    Figure,
    as_expected,
    at_worst,
    distinct_changes,
    figures_of,
    figures_over,
    mean_figure,
    pooled_figures,
)
from pytest_kbrel.gates.integrity import (
    check_at_most,
    check_integrity,
    is_nan,
    percent,
    truncated_in,
)
from pytest_kbrel.gates.measurement import Obstacle, Pairing, measure_figures, pair
from pytest_kbrel.gates.parallel import (
    language_pairs,
    parallel_figures,
    parallel_table,
)
from pytest_kbrel.gates.rules import decide, gate_result
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import (
    AggregateCase,
    Case,
    CaseResult,
    Fact,
    Gate,
    GateResult,
    Integrity,
    Judgement,
    Looks,
    Table,
    Unmatched,
    Waiver,
    reason,
    record,
    settings_of,
)

# More looks save hardly any questions, and a look needs some facts to tell anything.
MOST_LOOKS = 10
FACTS_PER_LOOK = 10


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
    sound = None if case.own_metric else check_integrity(case, table, errors)
    result = _result_of(
        case,
        "pass",
        len(table.rows),
        errors,
        integrity=sound.shares if sound else (),
        truncated=truncated_in(table),
        table=table,
        notes=case.notes,
        looks=outcomes.looks,
    )
    if sound and sound.broken:
        # NaN has no wire form, and the message counts these rows.
        finite = tuple(row for row in table.rows if not is_nan(row.values))
        result = replace(result, table=replace(table, rows=finite))
        decided = _unmeasured(result, case.gates, sound.broken)
    else:
        waived = Unmatched(waived=waived_facts(case.waivers))
        result = replace(result, unmatched=waived)
        decided = compare_case(result, case.gates, comparison, asked=case)
    return under_waivers(decided, case.waivers)


def _unmeasured(
    result: CaseResult, gates: Iterable[Gate], why: tuple[str, ...]
) -> CaseResult:
    judged = (gate_result(gate, "invalid", f"not judged: {why[0]}") for gate in gates)
    return replace(result, verdict="invalid", gates=tuple(judged), errors=why)


def part_result(case: Case, facts: int, errors: Sequence[str]) -> CaseResult:
    """Return what one shard has of a case: nothing is measured and no gate judged, so it is inconclusive.

    ``facts`` of the case are in the shard; ``errors`` are the responses that could not be used. It is
    ``invalid`` where these alone are more than the suite lets the whole case have.
    """
    broken = len(errors) > case.integrity.errored * len(case.facts)
    asked = f"{facts} of {count(len(case.facts), 'fact')} asked here"
    verdict: Judgement = "invalid" if broken else "inconclusive"
    return _result_of(case, verdict, facts, errors, notes=(asked, *case.notes))


def _result_of(
    case: Case, verdict: Judgement, facts: int, errors: Sequence[str], **more: Any
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
        **more,
    )


def _with_clusters(case: Case, table: Table) -> Table:
    """Return the table whose rows know the cluster of their facts."""
    clusters = {fact.id: fact.cluster(case.cluster) for fact in case.facts}
    rows = (
        replace(row, cluster=clusters[row.fact_id])
        if clusters.get(row.fact_id)
        else row
        for row in table.rows
    )
    return replace(table, rows=tuple(rows))


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
    pairing = comparison.pairing(result)
    held = held_against(result, pairing)
    figures = _figures(held, pairing)
    judged = _judged(held, gates, figures, [held], [pairing], comparison)
    judged = replace(judged, table=result.table)
    # Of a recorded run they say what its own baseline had.
    shares = [share for share in judged.integrity if share.name != "unasked"]
    unmatched = Unmatched(waived=result.unmatched.waived)
    if pairing is None:
        return replace(
            judged, integrity=tuple(shares), lost=(), gained=(), unmatched=unmatched
        )
    # A recorded run says itself who was asked in vain.
    in_vain = (
        result.unmatched.unanswered
        if asked is None
        else {fact.id for fact in asked.facts}
    )
    lacking = comparison.lacking(result, pairing.unasked)
    if lacking:
        limits = Integrity() if asked is None else asked.integrity
        total = len(pairing.asked) + len(pairing.unasked)
        shares.append(check_at_most(limits, "unasked", len(lacking), total, "")[0])
    known = {*in_vain, *lacking}
    lost, gained = fact_changes(asked, pairing)
    if held is not result and result.slice.startswith("forget"):
        lost, gained = gained, lost
    compared = replace(
        judged,
        integrity=tuple(shares),
        lost=lost,
        gained=gained,
        unmatched=replace(
            unmatched,
            added=pairing.added,
            unasked=tuple(fact for fact in pairing.unasked if fact not in known),
            unanswered=tuple(fact for fact in pairing.unasked if fact in in_vain),
            lacking=lacking,
        ),
    )
    return _unless_shrunk(compared, [compared])


def _unless_shrunk(result: CaseResult, cases: Iterable[CaseResult]) -> CaseResult:
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
    return replace(
        result, verdict="not comparable", gates=gates, notes=(why, *result.notes)
    )


def _figures(result: CaseResult, pairing: Pairing | None) -> tuple[Figure, ...]:
    table = result.table
    if result.probe != "test":
        return figures_of(metrics_for(result.probe, result.slice, table.columns))
    # The metric of a test in Python has the name of its column.
    tables = [table] if pairing is None else [table, pairing.baseline]
    return tuple(mean_figure(name, name, tables) for name in table.columns)


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
        notes=aggregate.notes,
    )
    if broken or not aggregate.members:
        why = (
            f"{aggregate.id} cannot be measured: {'; '.join(broken) or 'it has no members'}; "
            "allowed: members that were all measured"
        )
        invalid = _unmeasured(result, aggregate.gates, (why,))
        return under_waivers(invalid, aggregate.waivers)
    cases = [results[member] for member in aggregate.members]
    if aggregate.probe == "pooled":
        cases = [
            replace(case, table=as_expected(case.table, case.table)) for case in cases
        ]
        figures = pooled_figures(len(cases))
        result = replace(
            result,
            lost=distinct_changes(case.lost for case in cases),
            gained=distinct_changes(case.gained for case in cases),
        )
    else:
        figures = figures_over(cases)
    judged = _judged(
        replace(
            result, n=len({row.fact_id for case in cases for row in case.table.rows})
        ),
        aggregate.gates,
        figures,
        cases,
        [comparison.pairing(case) for case in cases],
        comparison,
        aggregate.facts,
    )
    return under_waivers(_unless_shrunk(judged, cases), aggregate.waivers)


def _judged(
    result: CaseResult,
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    cases: Sequence[CaseResult],
    paired: Sequence[Pairing | None],
    comparison: Comparison,
    facts: Sequence[Fact] = (),
) -> CaseResult:
    """Return a case, or one over several ``cases``, with ``figures`` measured and ``gates`` judged.

    ``paired`` are the cases with those of the baseline, ``None`` where it lacks one. ``facts`` are those that
    are compared between languages.
    """
    tables = [case.table for case in cases]
    pairings = [] if None in paired else [of for of in paired if of]
    another = comparison.another_tokenizer
    churn = churn_of(pairings, another_tokenizer=another)
    changes = change_figures(churn, pairings)
    no_tokens = without_tokens(pairings, another_tokenizer=another)
    if facts:
        table = parallel_table(facts, tables)
        figures = (*figures, *parallel_figures(table, len(tables)))
        result = replace(result, languages=tuple(language_pairs(table)))
        tables.append(table)
        sides = [of.candidate for of in pairings], [of.baseline for of in pairings]
        new, old = (parallel_table(facts, side) for side in sides)
        pairings += [pair(new, old)] if pairings else []
    measure = functools.partial(
        measure_figures,
        figures,
        comparisons=comparison.comparisons,
        published=comparison.published(result),
        looks=result.looks,
    )
    measurement = replace(
        measure(tables, pairings),
        paper=comparison.paper,
        changes=changes,
        no_tokens=no_tokens,
        obstacle=comparison.obstacle(result, cases, paired)
        or (_stopped(cases) if result.aggregate else None),
    )
    results = decide(gates, measurement)
    # The answers of a test in Python may be none of a model's.
    for ends in () if result.probe == "test" else AT_WORST:
        worst = [at_worst(table, ends, None) for table in tables]
        if worst == tables:
            continue
        counted = measure(
            worst,
            [
                replace(of, candidate=at_worst(of.candidate, ends, of.baseline))
                for of in pairings
            ],
        )
        others = decide(gates, replace(measurement, figures=counted.figures))
        results = tuple(map(_worse, results, others))
    judged = replace(
        result,
        verdict=verdict_of(results, baseline_asked=comparison.with_run),
        metrics=measurement.values,
        gates=results,
        churn=churn,
    )
    return _with_looks_told(judged)


def _worse(result: GateResult, other: GateResult) -> GateResult:
    """Return a gate's result, or where it is worse that with empty answers counted against the model."""
    if SEVERITY.index(other.verdict) >= SEVERITY.index(result.verdict):
        return result
    return other.because(reason("empty"))


def _stopped(cases: Sequence[CaseResult]) -> Obstacle | None:
    """Return why nothing over all cases is compared where some stopped early, and so by what they showed."""
    early = [case for case in cases if case.looks is not None and case.looks.early]
    if not early:
        return None
    first, looks = early[0].id, early[0].looks
    assert looks is not None
    return "inconclusive", (
        f"{len(early)} of {len(cases)} cases stopped early ({first} after {looks.asked} of {looks.facts} "
        "facts); a comparison over several cases is judged where all were asked in full: leave "
        "--kb-until-decided out"
    )


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


def under_waivers(result: CaseResult, waivers: Iterable[Waiver]) -> CaseResult:
    """Return the result with the waiver it stands under; expired ones fail it, whatever its gates say.

    A case whose responses are unsound stays ``invalid``.
    """
    waivers = tuple(waivers)
    expired = tuple(waiver for waiver in waivers if waiver.expired)
    own = tuple(waiver for waiver in waivers if waiver.case)
    return replace(
        result,
        verdict="fail" if expired and result.verdict != "invalid" else result.verdict,
        waiver=next(iter(expired or own), None),
        expired=expired,
    )


def with_family(cases: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    """Return the cases with Holm's and Benjamini and Hochberg's p-values at each gate that has a p-value.

    They are corrected for the comparisons that were made; one that could not be made (no baseline for it, not
    comparable, too few facts) has no p-value and does not count.
    """
    ps = [gate.p for case in cases for gate in case.gates]
    adjusted = iter(zip(stats.holm(ps), stats.benjamini_hochberg(ps), strict=True))
    corrected = []
    for case in cases:
        pairs = [(gate, *next(adjusted)) for gate in case.gates]
        gates = tuple(replace(gate, p_holm=holm, p_bh=bh) for gate, holm, bh in pairs)
        corrected.append(replace(case, gates=gates))
    return tuple(corrected)


def planned_looks(case: Case, facts: int) -> tuple[Looks, ...]:
    """Return the looks at a case, at equal shares of ``facts``; one where nothing of it is compared."""
    compared = any(GATE_RULES[gate.rule].relative for gate in case.gates)
    looks = max(min(MOST_LOOKS, facts // FACTS_PER_LOOK), 1) if compared else 1
    return tuple(
        Looks(taken=number, of=looks, asked=-(-facts * number // looks), facts=facts)
        for number in range(1, looks + 1)
    )


def all_decided(gates: Iterable[GateResult]) -> bool:
    """Return True if every gate that compares with the baseline passes or fails, and there is one."""
    verdicts = {gate.verdict for gate in gates if GATE_RULES[gate.rule].relative}
    return bool(verdicts) and verdicts <= {"pass", "fail"}


def _with_looks_told(result: CaseResult) -> CaseResult:
    """Return a case that stopped before its last look, with gates whose reasons say so."""
    looks = result.looks
    if looks is None or not looks.early:
        return result
    told = reason(
        "looks",
        how="decided" if all_decided(result.gates) else "undecided",
        asked=looks.asked,
        facts=looks.facts,
        taken=looks.taken,
        of=looks.of,
        level=min(100 * stats.look_level(looks.of, looks.taken), 99.99),
    )
    gates = (
        gate.because(told)
        if GATE_RULES[gate.rule].relative and gate.observed is not None
        else gate
        for gate in result.gates
    )
    return replace(result, gates=tuple(gates))
