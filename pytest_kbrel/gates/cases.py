"""Decision of a case: its integrity first, then every gate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from pytest_kbrel import stats
from pytest_kbrel.baselines import (
    BaselineCase,
    PublishedCase,
    prompt_differences,
    setting_differences,
)
from pytest_kbrel.catalogue.verdicts import worst
from pytest_kbrel.gates.changes import (
    change_figures,
    churn_of,
    fact_changes,
    without_tokens,
)
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.integrity import check_integrity, count, is_nan, truncated_in
from pytest_kbrel.gates.measurement import Measurement, Pairing, measure_figures, pair
from pytest_kbrel.gates.rules import Obstacle, decide
from pytest_kbrel.gates.waivers import under_waivers, waived_facts, without
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import (
    Case,
    CaseResult,
    Gate,
    GateResult,
    Judgement,
    Looks,
    Table,
    Unmatched,
    settings_of,
)


def decide_case(
    case: Case,
    table: Table,
    errors: Sequence[str],
    *,
    baseline: BaselineCase | PublishedCase | None,
    baseline_asked: bool,
    comparisons: int,
    duration: float = 0.0,
    requests: int = 0,
    incomparable: Sequence[str] = (),
    another_tokenizer: bool = False,
    paper: str = "",
    other_suites: Sequence[str] = (),
    looks: Looks | None = None,
) -> CaseResult:
    """Measure one case and judge its gates.

    ``errors`` are the responses that could not be used, ``baseline`` the same case of the blessed run,
    ``comparisons`` the number of relative gates in the whole session, ``incomparable`` what the two models'
    fingerprints must share and do not, ``another_tokenizer`` whether their tokenizers differ, ``paper`` the
    paper whose figures the baseline is, ``other_suites`` those of the baseline where it has none of the
    case's. Responses that are no ground for a measurement make the case
    ``invalid``; nothing is then measured. Where the suite lets some facts be without usable response, these
    are in no figure, and their ``errors`` stay with the result. Facts that a waiver names are in the case's
    own figures and in no comparison. ``looks`` say how far a case was asked that may stop early.
    """
    table = _with_clusters(case, table)
    sound = check_integrity(case, table, errors)
    if sound.broken:
        broken = CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            label=case.label,
            verdict="invalid",
            n=len(table.rows),
            duration=duration,
            metrics=(),
            gates=unjudged(case.gates, sound.broken[0]),
            errors=sound.broken,
            integrity=sound.shares,
            requests=requests,
            truncated=truncated_in(table),
            # NaN has no wire form, and the message counts these rows.
            table=Table(
                columns=table.columns,
                rows=tuple(r for r in table.rows if not is_nan(r.values)),
            ),
            settings=settings_of(case),
            notes=case.notes,
            looks=looks,
        )
        return under_waivers(broken, case.waivers)
    result = compare_case(
        CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            label=case.label,
            verdict="pass",
            n=len(table.rows),
            duration=duration,
            metrics=(),
            gates=(),
            errors=tuple(errors),
            integrity=sound.shares,
            requests=requests,
            truncated=truncated_in(table),
            table=table,
            settings=settings_of(case),
            notes=case.notes,
            unmatched=Unmatched(waived=waived_facts(case.waivers)),
            looks=looks,
        ),
        case.gates,
        baseline=baseline,
        baseline_asked=baseline_asked,
        comparisons=comparisons,
        incomparable=incomparable,
        another_tokenizer=another_tokenizer,
        paper=paper,
        other_suites=other_suites,
        asked=case,
        looks=looks,
    )
    return under_waivers(result, case.waivers)


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
    return CaseResult(
        id=case.id,
        suite=case.suite,
        probe=case.probe,
        slice=case.slice,
        label=case.label,
        verdict="invalid" if broken else "inconclusive",
        n=facts,
        duration=0.0,
        metrics=(),
        gates=(),
        errors=tuple(errors),
        settings=settings_of(case),
        notes=(f"{facts} of {count(len(case.facts), 'fact')} asked here", *case.notes),
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
    *,
    baseline: BaselineCase | PublishedCase | None,
    baseline_asked: bool,
    comparisons: int,
    incomparable: Sequence[str] = (),
    another_tokenizer: bool = False,
    paper: str = "",
    other_suites: Sequence[str] = (),
    asked: Case | None = None,
    looks: Looks | None = None,
) -> CaseResult:
    """Measure a case on its table and judge ``gates``, beside what else is known of it.

    ``asked`` is what was asked, where it is known: a recorded run is compared without its suite. The other
    arguments are those of :func:`decide_case`; facts that ``result`` calls waived are in no comparison, and
    the judge's error is the one that ``result`` has.
    """
    table, settings, waived = result.table, result.settings, result.unmatched.waived
    alpha = stats.sidak(comparisons)
    run, published = split(baseline)
    compared = without(table, waived)
    before = None if run is None else without(run.table, waived)
    differing = () if run is None else setting_differences(settings, run.settings)
    pairings = () if before is None else (pair(compared, before, differing),)
    figures = figures_of(metrics_for(result.probe, result.slice, table.columns))
    measurement = measure_figures(
        figures,
        (table,),
        pairings,
        alpha=alpha,
        published=published,
        paper=paper,
        looks=looks,
    )
    churn = churn_of(pairings, another_tokenizer=another_tokenizer)
    measurement = dataclasses.replace(
        measurement,
        changes=change_figures(churn, pairings),
        no_tokens=without_tokens(pairings, another_tokenizer=another_tokenizer),
    )
    missing = () if baseline is not None else (result.id,)
    results = decide(
        gates,
        measurement,
        obstacle=obstacle_of(
            [result.id],
            measurement,
            missing,
            asked=baseline_asked,
            incomparable=incomparable,
            another_tokenizer=another_tokenizer,
            paper=paper,
            other_suites=other_suites,
        ),
        comparisons=comparisons,
    )
    # A recorded run says itself who was asked in vain.
    in_vain = set(
        result.unmatched.unanswered
        if asked is None
        else (fact.id for fact in asked.facts)
    )
    unasked = [fact for pairing in pairings for fact in pairing.unasked]
    lost, gained = ((), ()) if before is None else fact_changes(asked, compared, before)
    return dataclasses.replace(
        result,
        verdict=verdict_of(results, baseline_asked=baseline_asked and not paper),
        metrics=measurement.values,
        gates=results,
        lost=lost,
        gained=gained,
        churn=churn,
        unmatched=Unmatched(
            added=tuple(fact for pairing in pairings for fact in pairing.added),
            unasked=tuple(fact for fact in unasked if fact not in in_vain),
            waived=waived,
            unanswered=tuple(fact for fact in unasked if fact in in_vain),
        ),
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


def split(
    baseline: BaselineCase | PublishedCase | None,
) -> tuple[BaselineCase | None, PublishedCase | None]:
    """Return the case as one of a run and as one of a paper: at least one of the two is ``None``."""
    if isinstance(baseline, PublishedCase):
        return None, baseline
    return baseline, None


def unjudged(gates: Iterable[Gate], reason: str) -> tuple[GateResult, ...]:
    """Return all gates as invalid, for ``reason``."""
    return tuple(
        GateResult(
            metric=gate.metric,
            rule=gate.rule,
            bound=gate.bound,
            verdict="invalid",
            reason=f"not judged: {reason}",
            line=gate.line,
        )
        for gate in gates
    )


def obstacle_of(
    cases: Sequence[str],
    measurement: Measurement,
    missing: Sequence[str],
    *,
    asked: bool,
    incomparable: Sequence[str],
    another_tokenizer: bool = False,
    paper: str = "",
    other_suites: Sequence[str] = (),
) -> Obstacle | None:
    """Return what stands in the way of comparing with the baseline, ``None`` when nothing does.

    ``cases`` are the ids of the cases measured, ``missing`` those of them that the baseline does not have.
    """
    if not asked:
        return (
            "no baseline",
            "no baseline was given to compare with; allowed: --kb-baseline=NAME or PATH",
        )
    if missing and paper:
        return "no baseline", f"{paper} has no figures of {', '.join(missing)}"
    if missing:
        renamed = (
            f" (it has the suite files {', '.join(other_suites)})"
            if other_suites
            else ""
        )
        return "no baseline", (
            f"the baseline has no case {', '.join(missing)}{renamed}: bless a run of all suites anew"
        )
    if incomparable:
        return "not comparable", (
            f"candidate and baseline differ in {'; '.join(incomparable)}; "
            "allowed: a baseline that shares these with the candidate"
        )
    if paper:
        return None
    for case, pairing in zip(cases, measurement.pairings, strict=True):
        if (why := _not_comparable(pairing, another_tokenizer)) is not None:
            return "not comparable", (
                f"{case}: {why}; allowed: what the baseline was asked, or bless a run that was asked this"
            )
    return None


def _not_comparable(pairing: Pairing, another_tokenizer: bool) -> str | None:
    """Return why two tables cannot be compared: facts asked otherwise, or most of them without a partner.

    Fewer facts without a partner are left out of the comparison.
    """
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
    return "; ".join(reasons) or None
