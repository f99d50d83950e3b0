"""Runs of other tools compared row by row: the first is the baseline, each other a candidate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

from pytest_kbrel import stats
from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.catalogue.metrics import Metric
from pytest_kbrel.cli.compare.models import ComparedModel
from pytest_kbrel.cli.compare.pairing import PairedRun, bare_run, corrected_runs
from pytest_kbrel.cli.compare.thresholds import Demands
from pytest_kbrel.foreign import NO_ANSWER, ONE_TASK, SCORE, ScoredCase, ScoredRun
from pytest_kbrel.gates import decide, fact_changes, verdict_of
from pytest_kbrel.gates.cases import unjudged
from pytest_kbrel.gates.figures import Figure, mean_figure
from pytest_kbrel.gates.measurement import Pairing, measure_figures, pair
from pytest_kbrel.records import (
    CaseResult,
    Change,
    GateResult,
    Judgement,
    Table,
    Unmatched,
)

_NAMED = 3


def compared_model(run: ScoredRun) -> ComparedModel:
    """Return the run as one of the models compared."""
    rows = sum(
        max((len(table.rows) for table in case.tables.values()), default=0)
        for case in run.cases.values()
    )
    parts = filter(
        None, (run.tool, run.model, f"cases: {len(run.cases)}", f"rows: {rows}")
    )
    return ComparedModel(name=str(run.path), about=", ".join(parts), cases={})


def pair_scored(
    baseline: ScoredRun,
    candidates: Sequence[ScoredRun],
    demands: Demands,
    *,
    strict: bool,
) -> tuple[PairedRun, ...]:
    """Compare each candidate with the baseline, case by case; all cases are one family of tests (Šidák).

    A case that only one side has is ``no baseline``, or ``not run`` where the candidate lacks it. Rows asked
    otherwise are listed and not compared; a case is ``not comparable`` where fewer than half are compared.
    ``strict`` is that of :class:`PairedRun`.
    """
    metrics: dict[str, list[str]] = {}
    for one in (baseline, *candidates):
        for name, scored in one.cases.items():
            metrics.setdefault(name, []).extend(scored.tables)
    demands.check_names(metrics)
    comparisons = sum(
        demands.judges(name)
        for run in candidates
        for name in baseline.cases.keys() & run.cases.keys()
    )
    comparisons = max(comparisons, 1)
    decided = [
        [
            _case(name, baseline, run, demands, comparisons)
            for name in dict.fromkeys((*baseline.cases, *run.cases))
        ]
        for run in candidates
    ]
    return corrected_runs(
        [(at, str(run.path)) for at, run in enumerate(candidates, start=2)],
        [
            bare_run(str(baseline.path), (case for case, _ in cases))
            for cases in decided
        ],
        [
            {case.nodeid: "; ".join(notes) for case, notes in cases if notes}
            for cases in decided
        ],
        strict=strict,
        unit="row",
    )


def _case(
    name: str,
    baseline: ScoredRun,
    candidate: ScoredRun,
    demands: Demands,
    comparisons: int,
) -> tuple[CaseResult, list[str]]:
    """Return a decided case, and what is to know about its rows."""
    before, after = baseline.cases.get(name), candidate.cases.get(name)
    result = CaseResult(
        id=name,
        suite=candidate.tool,
        probe="test",
        slice="",
        verdict="pass",
        n=0,
    )
    if before is None:
        why = f"{baseline.path} has no case {name}"
        return _unpaired(result, (candidate,), demands, "no baseline", why)
    if after is None:
        why = f"{candidate.path} has no case {name}"
        return _unpaired(result, (baseline,), demands, "not run", why)
    metrics = [metric for metric in after.tables if metric in before.tables]
    if not metrics:
        has = [
            _first(case.tables) or "no metric that is a number in each row"
            for case in (before, after)
        ]
        why = f"the baseline has {has[0]}, the candidate {has[1]}"
        return _unpaired(result, (candidate, baseline), demands, "not comparable", why)
    pairings = tuple(
        pair(after.tables[metric], before.tables[metric], exact=True)
        for metric in metrics
    )
    notes = _notes(before, after, pairings, (baseline, candidate))
    lower = before.lower | after.lower
    figures = tuple(
        mean_figure(
            metric,
            SCORE,
            (pairing.candidate, pairing.baseline),
            member=member,
            better="lower" if metric in lower else "higher",
            undefined="no row",
        )
        for member, (metric, pairing) in enumerate(zip(metrics, pairings, strict=True))
    )
    tables = tuple(after.tables[metric] for metric in metrics)
    measurement = measure_figures(
        figures, tables, pairings, alpha=stats.sidak(comparisons)
    )
    gates = [
        gate
        for metric in metrics
        for gate in demands.gates(
            name,
            _metric(
                metric, (before.tables[metric], after.tables[metric]), metric in lower
            ),
        )
    ]
    # A metric that is not judged keeps no other from being.
    required = {gate.metric for gate in gates} or set(metrics)
    by_metric = dict(zip(metrics, pairings, strict=True))
    why = _too_few(
        before,
        after,
        {metric: by_metric[metric] for metric in metrics if metric in required},
    )
    judged = decide(
        gates,
        measurement,
        obstacle=("not comparable", why) if why else None,
        comparisons=comparisons,
    )
    judged += _one_sided(name, (baseline, candidate), demands)
    lost, gained = _changes(name, figures, pairings)
    widest = max(
        pairings, key=lambda pairing: len(pairing.added) + len(pairing.unasked)
    )
    return dataclasses.replace(
        result,
        verdict=verdict_of(judged, baseline_asked=True),
        n=max(len(table.rows) for table in tables),
        metrics=measurement.values,
        gates=judged,
        lost=lost,
        gained=gained,
        unmatched=Unmatched(added=widest.added, unasked=widest.unasked),
    ), ([f"not comparable: {why}", *notes] if why else notes)


def _unpaired(
    result: CaseResult,
    runs: Sequence[ScoredRun],
    demands: Demands,
    verdict: Judgement,
    why: str,
) -> tuple[CaseResult, list[str]]:
    """Return a case that cannot be compared; its gates are those on the metrics of the first run with any."""
    case = next((of for run in runs if (of := run.cases[result.id]).tables), None)
    judged = (
        ()
        if case is None
        else _unjudged(result.id, case, case.tables, demands, verdict, why)
    )
    return dataclasses.replace(result, verdict=verdict, gates=judged), [
        f"{verdict}: {why}"
    ]


def _one_sided(
    name: str, runs: tuple[ScoredRun, ScoredRun], demands: Demands
) -> tuple[GateResult, ...]:
    """Return the gates on metrics of a case that only the baseline or only the candidate has."""
    judged: tuple[GateResult, ...] = ()
    verdicts: tuple[Judgement, Judgement] = ("not run", "no baseline")
    for run, other, verdict in zip(runs, reversed(runs), verdicts, strict=True):
        case = run.cases[name]
        for metric in (
            one for one in case.tables if one not in other.cases[name].tables
        ):
            why = f"{other.path} has no {metric} in {name}"
            judged += _unjudged(name, case, [metric], demands, verdict, why)
    return judged


def _unjudged(
    name: str,
    case: ScoredCase,
    metrics: Iterable[str],
    demands: Demands,
    verdict: Judgement,
    why: str,
) -> tuple[GateResult, ...]:
    """Return the gates on some metrics of a case, all with the same verdict."""
    gates = [
        gate
        for metric in metrics
        for gate in demands.gates(
            name, _metric(metric, (case.tables[metric],), metric in case.lower)
        )
    ]
    return tuple(
        dataclasses.replace(gate, verdict=verdict) for gate in unjudged(gates, why)
    )


def _metric(name: str, tables: Sequence[Table], less_is_better: bool) -> Metric:
    """Return what is to know of a metric to read gates on it: its values say what they may be."""
    values = {row.values[0] for table in tables for row in table.rows}
    return Metric(
        name=name,
        better="lower" if less_is_better else "higher",
        about="A metric of another tool.",
        low=0.0 if min(values, default=0.0) >= 0 else -FIGURE,
        high=1.0 if values <= {0.0, 1.0} else math.inf,
    )


def _too_few(
    before: ScoredCase, after: ScoredCase, pairings: Mapping[str, Pairing]
) -> str:
    for metric, pairing in pairings.items():
        rows = max(len(after.tables[metric].rows), len(before.tables[metric].rows))
        shared = len(pairing.baseline.rows)
        if 2 * shared < rows or not shared:
            return f"{shared} of {rows} rows of {metric} are in both runs and asked alike; allowed: half or more"
    return ""


def _notes(
    before: ScoredCase,
    after: ScoredCase,
    pairings: Sequence[Pairing],
    runs: tuple[ScoredRun, ScoredRun],
) -> list[str]:
    """Return what was left out or counted otherwise than a reader may expect, each with its first rows."""
    asked_otherwise = (
        "asked otherwise (another prompt, document or target) and not compared"
    )
    notes = []
    for words, ids in (
        (asked_otherwise, [pairing.differing for pairing in pairings]),
        ("only in the candidate", [pairing.added for pairing in pairings]),
        ("only in the baseline", [pairing.unasked for pairing in pairings]),
    ):
        if rows := dict.fromkeys(one for of_metric in ids for one in of_metric):
            notes.append(f"{len(rows)} rows are {words}: {_first(rows)}")
    for case, run in ((before, runs[0]), (after, runs[1])):
        if case.repeated:
            notes.append(
                f"{run.path}: {case.repeated} ids have several rows, of which the mean counts"
            )
        lacking: dict[tuple[str, ...], list[str]] = {}
        for metric, unscored in case.unscored:
            lacking.setdefault(unscored, []).append(metric)
        notes += [
            f"{run.path}: {len(ids)} rows have no {_first(metrics)} and are left out: {_first(ids)}"
            for ids, metrics in lacking.items()
        ]
        if alone := case.tables.keys() - (before.tables.keys() & after.tables.keys()):
            notes.append(f"only {run.path} has {_first(sorted(alone))}, not compared")
    return notes


def _first(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:_NAMED]) + (
        f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    )


def _changes(
    name: str, figures: Sequence[Figure], pairings: Sequence[Pairing]
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the rows lost and gained by the first metric that is right or wrong.

    They have the task in their ids, since the first row of one task is no row of another.
    """
    for figure, pairing in zip(figures, pairings, strict=True):
        if figure.rate:
            lost, gained = (
                tuple(_row_change(name, change) for change in changes)
                for changes in fact_changes(None, pairing)
            )
            return lost, gained
    return (), ()


def _row_change(name: str, change: Change) -> Change:
    return dataclasses.replace(
        change,
        fact_id=change.fact_id if name == ONE_TASK else f"{name}/{change.fact_id}",
        expected="" if change.expected == NO_ANSWER else change.expected,
    )
