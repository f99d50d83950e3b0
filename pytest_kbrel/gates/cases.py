"""Decision of a case: its integrity first, then every gate."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence

from pytest_kbrel import stats
from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    PublishedCase,
    prompt_differences,
    setting_differences,
)
from pytest_kbrel.catalogue.verdicts import SEVERITY, worst
from pytest_kbrel.gates.changes import (
    change_figures,
    churn_of,
    fact_changes,
    without_tokens,
)
from pytest_kbrel.gates.figures import (
    AT_WORST,
    Figure,
    as_expected,
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
from pytest_kbrel.gates.measurement import Pairing, measure_figures, pair
from pytest_kbrel.gates.rules import Obstacle, decide, gate_result
from pytest_kbrel.gates.waivers import under_waivers, waived_facts, without
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import (
    AggregateCase,
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
    record,
    settings_of,
)


@record
class Against:
    """What the cases of a run are compared with: a baseline, unless none was asked for.

    ``comparisons`` is the number of cases with relative gates in the whole session, ``incomparable`` what the
    two models' fingerprints must share and do not, ``another_tokenizer`` whether their tokenizers differ.
    ``lacking`` are the ids of the facts of the case compared that were to be asked and are no more.
    """

    baseline: Baseline | None = None
    comparisons: int = 1
    incomparable: tuple[str, ...] = ()
    another_tokenizer: bool = False
    lacking: tuple[str, ...] = ()

    @property
    def paper(self) -> str:
        """The paper whose figures the baseline is; empty where it is a run."""
        return "" if self.baseline is None else self.baseline.paper

    def case(
        self, case: AggregateCase | CaseResult
    ) -> tuple[BaselineCase | None, PublishedCase | None]:
        """Return a case of the baseline as one of a run and as one of a paper: at least one is ``None``."""
        known = None if self.baseline is None else self.baseline.case(case)
        return (None, known) if isinstance(known, PublishedCase) else (known, None)


def decide_case(
    case: Case,
    table: Table,
    errors: Sequence[str],
    against: Against,
    looks: Looks | None = None,
) -> CaseResult:
    """Measure one case and judge its gates.

    ``errors`` are the responses that could not be used. Responses that are no ground for a measurement make
    the case ``invalid``; nothing is then measured. Where the suite lets some facts be without usable
    response, these are in no figure, and their ``errors`` stay with the result. Facts that a waiver names are
    in the case's own figures and in no comparison. ``looks`` say how far a case was asked that may stop early.
    """
    table = _with_clusters(case, table)
    sound = check_integrity(case, table, errors)
    result = dataclasses.replace(
        _result_of(case, "pass", len(table.rows), errors),
        integrity=sound.shares,
        truncated=truncated_in(table),
        table=table,
        notes=case.notes,
        looks=looks,
    )
    if sound.broken:
        # NaN has no wire form, and the message counts these rows.
        finite = tuple(row for row in table.rows if not is_nan(row.values))
        broken = dataclasses.replace(
            result,
            verdict="invalid",
            gates=unjudged(case.gates, sound.broken[0]),
            errors=sound.broken,
            table=Table(columns=table.columns, rows=finite),
        )
        return under_waivers(broken, case.waivers)
    waived = Unmatched(waived=waived_facts(case.waivers))
    result = dataclasses.replace(result, unmatched=waived)
    compared = compare_case(result, case.gates, against, asked=case)
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
        probe=case.probe,
        slice=case.slice,
        label=case.label,
        verdict=verdict,
        n=facts,
        errors=tuple(errors),
        settings=settings_of(case),
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
    against: Against,
    *,
    asked: Case | None = None,
) -> CaseResult:
    """Measure a case on its table and judge ``gates``, beside what else is known of it.

    ``asked`` is what was asked, where it is known: a recorded run is compared without its suite. Facts that
    ``result`` calls waived are in no comparison.
    """
    table, waived = result.table, result.unmatched.waived
    pairings = pairings_of(result, against)
    lost: tuple[Change, ...] = ()
    gained: tuple[Change, ...] = ()
    for pairing in pairings:
        lost, gained = fact_changes(asked, pairing)
    _, published = against.case(result)
    judged = judge_figures(
        result,
        gates,
        _figures(result, pairings),
        (table,),
        pairings,
        against,
        missing=() if pairings or published is not None else (result.id,),
        published=published,
    )
    # A recorded run says itself who was asked in vain.
    in_vain = set(
        result.unmatched.unanswered
        if asked is None
        else (fact.id for fact in asked.facts)
    )
    unasked = [fact for pairing in pairings for fact in pairing.unasked]
    lacking = tuple(fact for fact in unasked if fact in against.lacking)
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
            waived=waived,
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


def obstacle_to(result: CaseResult, against: Against) -> Obstacle | None:
    """Return what stands in the way of comparing a recorded case with a run, ``None`` when nothing does."""
    pairings = pairings_of(result, against)
    missing = () if pairings else (result.id,)
    return obstacle_of([result.id], result.suite, pairings, missing, against)


def pairings_of(
    result: CaseResult, against: Against, *, pooled: bool = False
) -> tuple[Pairing, ...]:
    """Return a case paired with that of the blessed run, without waived facts; nothing where there is none.

    ``pooled``: of its outcomes only whether they are as expected.
    """
    run, _ = against.case(result)
    if run is None:
        return ()
    waived = result.unmatched.waived
    tables = [without(table, waived) for table in (result.table, run.table)]
    if pooled:
        tables = [as_expected(table, result.table) for table in tables]
    differing = setting_differences(result.settings, run.settings)
    # The numbers of a test in Python may be of any size, and none is rounding.
    return (pair(tables[0], tables[1], differing, exact=result.probe == "test"),)


def judge_figures(
    result: CaseResult,
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    tables: Sequence[Table],
    pairings: Sequence[Pairing],
    against: Against,
    *,
    missing: Sequence[str],
    published: PublishedCase | None,
    obstacle: Obstacle | None = None,
) -> CaseResult:
    """Return a case, or one over several, with ``figures`` measured over ``tables`` and ``gates`` judged.

    ``missing`` are the cases that the baseline lacks, ``published`` is what a paper prints of this one, and
    ``obstacle`` stands in the way of a comparison where nothing else does.
    """
    another = against.another_tokenizer
    churn = churn_of(pairings, another_tokenizer=another)
    measure = functools.partial(
        measure_figures,
        alpha=stats.sidak(against.comparisons),
        published=published,
        paper=against.paper,
        looks=result.looks,
    )
    measurement = dataclasses.replace(
        measure(figures, tables, pairings),
        changes=change_figures(churn, pairings),
        no_tokens=without_tokens(pairings, another_tokenizer=another),
    )
    members = result.members or (result.id,)
    judge = functools.partial(
        decide,
        gates,
        obstacle=obstacle_of(members, result.suite, pairings, missing, against)
        or obstacle,
        comparisons=against.comparisons,
    )
    results = judge(measurement)
    # The answers of a test in Python may be none of a model's.
    for ends in () if result.probe == "test" else AT_WORST:
        worst = [at_worst(table, ends, None) for table in tables]
        if worst == [*tables]:
            continue
        paired = [
            dataclasses.replace(of, candidate=at_worst(of.candidate, ends, of.baseline))
            for of in pairings
        ]
        counted = measure(figures, worst, paired).figures
        others = judge(dataclasses.replace(measurement, figures=counted))
        results = tuple(map(_worse, results, others))
    asked = against.baseline is not None and not against.paper
    return dataclasses.replace(
        result,
        verdict=verdict_of(results, baseline_asked=asked),
        metrics=measurement.values,
        gates=results,
        churn=churn,
    )


def _worse(result: GateResult, other: GateResult) -> GateResult:
    """Return a gate's result, or where it is worse that with empty answers counted against the model."""
    if SEVERITY.index(other.verdict) >= SEVERITY.index(result.verdict):
        return result
    reason = f"{other.reason}; with the empty answers counted against it"
    return dataclasses.replace(other, reason=reason)


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


def unjudged(gates: Iterable[Gate], reason: str) -> tuple[GateResult, ...]:
    """Return all gates as invalid, for ``reason``."""
    why = f"not judged: {reason}"
    return tuple(gate_result(gate, "invalid", why) for gate in gates)


def obstacle_of(
    cases: Sequence[str],
    suite: str,
    pairings: Sequence[Pairing],
    missing: Sequence[str],
    against: Against,
) -> Obstacle | None:
    """Return what stands in the way of comparing with the baseline, ``None`` when nothing does.

    ``cases`` are the ids of the cases measured, ``missing`` those of them that the baseline does not have.
    """
    if against.baseline is None:
        return (
            "no baseline",
            "no baseline was given to compare with; allowed: --kb-baseline=NAME or PATH",
        )
    if missing and against.paper:
        return "no baseline", f"{against.paper} has no figures of {', '.join(missing)}"
    if missing:
        others = ", ".join(against.baseline.other_suites(suite))
        renamed = f" (it has the suite files {others})" if others else ""
        return "no baseline", (
            f"the baseline has no case {', '.join(missing)}{renamed}: bless a run of all suites anew"
        )
    if against.incomparable:
        return "not comparable", (
            f"candidate and baseline differ in {'; '.join(against.incomparable)}; "
            "allowed: a baseline that shares these with the candidate"
        )
    if against.paper:
        return None
    for case, pairing in zip(cases, pairings, strict=True):
        if why := not_comparable(pairing, against.another_tokenizer):
            return "not comparable", (
                f"{case}: {why}; allowed: what the baseline was asked, or bless a run that was asked this"
            )
    return None


def not_comparable(pairing: Pairing, another_tokenizer: bool) -> str:
    """Return why two tables cannot be compared: facts asked otherwise, or most of them without a partner."""
    differing, added = pairing.differing, pairing.added
    facts = len(pairing.candidate.rows) + len(differing) + len(added)
    reasons = []
    if differing:
        what = prompt_differences(
            pairing.asked, pairing.settings, another_tokenizer=another_tokenizer
        )
        reasons.append(f"candidate and baseline differ in {what}")
    if not facts:
        reasons.append("all facts are waived, and none is left to compare")
    if 2 * len(added) > facts:
        reasons.append(
            f"{len(added)} of {count(facts, 'fact')} are not in the baseline (first: {added[0]}), and at "
            "least half must be"
        )
    return "; ".join(reasons)
