"""Runs of other tools compared row by row: the first is the baseline, each other a candidate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product

from pytest_kbrel.bounds import FIGURE
from pytest_kbrel.catalogue.metrics import Better, Metric
from pytest_kbrel.catalogue.verdicts import SEVERITY, worst
from pytest_kbrel.cli.compare.models import ComparedModel
from pytest_kbrel.cli.compare.pairing import PairedRun, bare_run, corrected_runs
from pytest_kbrel.cli.compare.shared_rows import Shared, first_of, shared_rows
from pytest_kbrel.cli.compare.thresholds import Demands
from pytest_kbrel.foreign import (
    NO_ANSWER,
    ONE_TASK,
    SCORE,
    ScoredCase,
    ScoredRun,
)
from pytest_kbrel.gates import decide, verdict_of
from pytest_kbrel.gates.figures import Figure, mean_figure
from pytest_kbrel.gates.measurement import Measurement, measure_figures
from pytest_kbrel.gates.rules import gate_result
from pytest_kbrel.records import (
    CaseResult,
    Change,
    Gate,
    GateResult,
    Judgement,
    MetricValue,
    Unmatched,
    reason,
)

_NO_CASE = ScoredCase(tables={}, higher={}, repeated={}, unscored={})
# The ends of the scores at which a gate is worst, by its rule or by whether more is better.
_WORSE: Mapping[str | bool | None, tuple[int, ...]] = {
    **{"min": (0,), "max": (1,)},
    **{True: (0,), False: (1,), None: (0, 1)},
}


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

    A case that only one side has is ``no baseline``, or ``not run`` where the candidate lacks it. Rows that
    the candidate lost count at their worst; with too many of them a case is ``invalid``, or ``not
    comparable`` where they were asked otherwise. ``strict`` is that of :class:`PairedRun`.
    """
    demands.check_names([run.cases for run in (baseline, *candidates)])
    comparisons = sum(
        demands.judges(name)
        for run in candidates
        for name in baseline.cases.keys() & run.cases.keys()
    )
    comparisons = max(comparisons, 1)
    runs = [
        bare_run(
            str(baseline.path),
            [
                _case(name, (baseline, run), demands, comparisons)
                for name in dict.fromkeys((*baseline.cases, *run.cases))
            ],
        )
        for run in candidates
    ]
    return corrected_runs(
        [(at, str(run.path)) for at, run in enumerate(candidates, start=2)],
        runs,
        [
            {case.nodeid: "; ".join(case.notes) for case in run.cases if case.notes}
            for run in runs
        ],
        strict=strict,
        unit="row",
    )


def _case(
    name: str,
    runs: tuple[ScoredRun, ScoredRun],
    demands: Demands,
    comparisons: int,
) -> CaseResult:
    """Return a decided case; its notes are what is to know about its rows."""
    cases = [run.cases.get(name, _NO_CASE) for run in runs]
    shared = {
        metric: shared_rows(metric, *cases)
        for metric in cases[1].tables
        if metric in cases[0].tables
    }
    gates = [
        gate
        for metric, rows in shared.items()
        for gate in demands.gates(name, _metric(rows.figure, rows.higher))
    ]
    judged, figures = _judge(gates, shared, comparisons)
    # A metric that is not judged keeps no other from being.
    required = {gate.metric for gate in gates} or shared.keys()
    obstacles = [shared[metric].obstacle for metric in shared if metric in required]
    lacking: tuple[Judgement, Judgement] = ("no baseline", "not run")
    if not shared and all(name in run.cases for run in runs):
        lacking = "not comparable", "not comparable"
        has = [
            first_of(case.tables) or "no metric that is a number in each row"
            for case in cases
        ]
        why = f"the baseline has {has[0]}, the candidate {has[1]}"
        obstacles.append(("not comparable", why))
    for run, case, verdict in zip(runs, reversed(cases), lacking, strict=True):
        if name not in run.cases:
            obstacles.append((verdict, f"{run.path} has no case {name}"))
        alone = {of: table for of, table in case.tables.items() if of not in shared}
        for metric, table in alone.items():
            known = _metric(
                mean_figure(metric, SCORE, [table]), case.higher.get(metric)
            )
            why = f"not judged: {run.path} has no {metric} in {name}"
            demanded = demands.gates(name, known)
            judged += tuple(gate_result(gate, verdict, why) for gate in demanded)
    met = [obstacle for obstacle in obstacles if obstacle]
    verdicts = [verdict_of(judged, baseline_asked=True), *(of for of, _ in met)]
    lost, gained = _changes(name, shared.values())
    return CaseResult(
        id=name,
        suite=runs[1].tool,
        probe="test",
        slice="",
        verdict="invalid" if "invalid" in verdicts else worst(verdicts),
        n=max((len(rows.tables[1].rows) for rows in shared.values()), default=0),
        metrics=figures,
        gates=judged,
        lost=lost,
        gained=gained,
        unmatched=Unmatched(
            added=_ids(rows.pairing.added for rows in shared.values()),
            unasked=_ids(rows.lost for rows in shared.values()),
        ),
        notes=(*map(": ".join, met), *_notes(cases, shared, runs)),
    )


def _judge(
    gates: Sequence[Gate], shared: Mapping[str, Shared], comparisons: int
) -> tuple[tuple[GateResult, ...], tuple[MetricValue, ...]]:
    """Return the gates judged, and the figures over the rows that both runs have.

    A gate has its worst verdict over these rows, and with the rows that the candidate lost at either end of
    what they may be: so no verdict is better for a row that is not there. Where it is not known which way a
    metric is better, both are tried, and a loss in the other one is no pass.
    """
    ends: dict[int | None, None] = {None: None}
    for gate in gates:
        ends |= dict.fromkeys(_ends(gate, shared[gate.metric]))
    unknown = any(rows.higher is None for rows in shared.values())
    figures: tuple[MetricValue, ...] = ()
    options = [_blocked(gate, shared[gate.metric]) for gate in gates]
    for end, turned in product(ends, (False, True) if unknown else (False,)):
        measurement = _measured(shared, end, comparisons, turned=turned)
        figures = figures or measurement.values
        judged = decide(gates, measurement)
        for of_gate, result in zip(options, judged, strict=True):
            rows, leading = shared[result.metric], []
            told = turned and (rows.higher is not None or result.verdict == "pass")
            if rows.obstacle or told:
                continue
            if turned:
                result = dataclasses.replace(result, verdict="inconclusive")
                leading = [reason("were_less")]
            if rows.lost and end is not None:
                at = rows.figure.bounds[end]
                leading.append(reason("lost_rows", rows=len(rows.lost), end=at))
            reasons = (*leading, *result.reasons)
            of_gate.append(dataclasses.replace(result, reasons=reasons))
    return tuple(
        min(of_gate, key=lambda one: SEVERITY.index(one.verdict)) for of_gate in options
    ), figures


def _blocked(gate: Gate, rows: Shared) -> list[GateResult]:
    """Return what keeps a gate from a better verdict, whatever the scores are."""
    if rows.obstacle:
        verdict, why = rows.obstacle
        return [gate_result(gate, verdict, f"not judged: {why}")]
    if any(math.isinf(rows.figure.bounds[end]) for end in _ends(gate, rows)):
        why = f"a score of {gate.metric} may be any number, and {len(rows.lost)} rows have none"
        return [gate_result(gate, "invalid", f"not judged: {why}")]
    return []


def _ends(gate: Gate, rows: Shared) -> tuple[int, ...]:
    """Return the ends of the scores at which lost rows make a gate worse."""
    return _WORSE.get(gate.rule, _WORSE[rows.higher]) if rows.lost else ()


def _measured(
    shared: Mapping[str, Shared],
    end: int | None,
    comparisons: int,
    *,
    turned: bool,
) -> Measurement:
    """Measure the rows that both runs have, also those lost at an ``end`` of their scores.

    ``turned``: of what is not known to be better the more there is, less is better.
    """
    pairings = [rows.completed(end) for rows in shared.values()]
    figures = [
        mean_figure(
            rows.figure.name,
            SCORE,
            (pairing.candidate, pairing.baseline),
            member=member,
            better=_better(not turned if rows.higher is None else rows.higher),
            undefined="no row",
        )
        for member, (rows, pairing) in enumerate(
            zip(shared.values(), pairings, strict=True)
        )
    ]
    # A gate that compares with no baseline is about the same rows: others were never there to be lost.
    tables = [pairing.candidate for pairing in pairings]
    return measure_figures(figures, tables, pairings, comparisons=comparisons)


def _better(higher: bool | None) -> Better:
    return "lower" if higher is False else "higher"


def _metric(figure: Figure, higher: bool | None) -> Metric:
    """Return what is to know of a metric to read gates on it: its values say what they may be."""
    return Metric(
        name=figure.name,
        better=_better(higher),
        about="A metric of another tool.",
        low=max(figure.bounds[0], -FIGURE),
        high=1.0 if figure.rate else math.inf,
    )


def _notes(
    cases: Sequence[ScoredCase],
    shared: Mapping[str, Shared],
    runs: tuple[ScoredRun, ScoredRun],
) -> list[str]:
    """Return what was left out or counted otherwise than a reader may expect, each with its first rows."""
    notes = [
        f"{metric}: taken to be better the higher it is; allowed: --lower-is-better {metric}"
        for metric, rows in shared.items()
        if rows.higher is None
    ]
    every = shared.values()
    otherwise = (
        "asked otherwise (another prompt, document or target), and count as lost"
    )
    for words, ids in (
        (otherwise, _ids(rows.pairing.differing for rows in every)),
        ("only in the candidate", _ids(rows.pairing.added for rows in every)),
        (
            "without a score in the candidate alone, and count as lost",
            _ids(rows.missing for rows in every),
        ),
    ):
        if ids:
            notes.append(f"{len(ids)} rows are {words}: {first_of(ids)}")
    for case, run in zip(cases, runs, strict=True):
        if repeated := {id_ for ids in case.repeated.values() for id_ in ids}:
            notes.append(
                f"{run.path}: {len(repeated)} ids have several rows, of which the mean counts"
            )
        lacking: dict[tuple[str, ...], list[str]] = {}
        for metric, unscored in case.unscored.items():
            lost = shared[metric].lost if metric in shared else ()
            if left := tuple(one for one in unscored if one not in lost):
                lacking.setdefault(left, []).append(metric)
        notes += [
            f"{run.path}: {len(ids)} rows have no {first_of(metrics)} and are left out: {first_of(ids)}"
            for ids, metrics in lacking.items()
        ]
        if alone := case.tables.keys() - shared.keys():
            notes.append(f"only {run.path} has {first_of(sorted(alone))}, not compared")
    return notes


def _ids(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(groups)))


def _changes(
    name: str, shared: Iterable[Shared]
) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
    """Return the rows lost and gained by the first metric that is right or wrong.

    They have the task in their ids, since the first row of one task is no row of another.
    """
    changes: tuple[list[Change], list[Change]] = ([], [])
    if rate := next((rows for rows in shared if rows.figure.rate), None):
        for new, old in rate.completed(int(rate.higher is False)).rows:
            if new.values != old.values:
                change = Change(
                    fact_id=new.fact_id
                    if name == ONE_TASK
                    else f"{name}/{new.fact_id}",
                    question=new.question,
                    expected="" if new.expected == NO_ANSWER else new.expected,
                    old_answer=old.answer,
                    new_answer=new.answer,
                )
                changes[(new.values > old.values) == (rate.higher is not False)].append(
                    change
                )
    lost, gained = map(tuple, changes)
    return lost, gained
