"""Runs of other tools decided row by row, as sessions decide facts: the first is the baseline, each other a candidate.

What the candidate lost makes no verdict better: a gate has its worst one over the rows that both have, and with
those that were lost at either end of what their scores may be. Demands are thresholds of every metric, and a
file of gates by case and metric.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mode

from pytest_kbrel import __version__
from pytest_kbrel.bounds import FIGURE, Bounds
from pytest_kbrel.catalogue.metrics import Better, Metric
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY, worst
from pytest_kbrel.cli.compare.recorded import judged
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.facts.located import Node, read_document, unknown
from pytest_kbrel.foreign import (
    ONE_TASK,
    SCORE,
    ScoredRun,
    Scores,
    is_unbounded,
    names_metric,
)
from pytest_kbrel.gates import decide, fact_changes
from pytest_kbrel.gates.figures import Figure, mean_figure
from pytest_kbrel.gates.measurement import (
    Measurement,
    Obstacle,
    Pairing,
    measure_figures,
    pair,
)
from pytest_kbrel.gates.rules import gate_result
from pytest_kbrel.records import (
    CaseResult,
    Gate,
    GateResult,
    Judgement,
    MetricValue,
    Rule,
    Run,
    Table,
    Unmatched,
    reason,
    record,
)
from pytest_kbrel.reports.comparison import Side
from pytest_kbrel.suites.gates import merged_gates, metric_gates

_TEXT = re.compile("(?:within:)?([^:,]+)(?:,beyond:([^:,]+))?")
_BOUND = Bounds(0, FIGURE, whole=False)


@record
class Demands:
    """What each case must meet.

    The gates of a file come before thresholds of the same rule; ``by_case`` has its metrics by case, those of
    every case as :data:`ONE_TASK`.
    """

    thresholds: tuple[Gate, ...] = ()
    by_case: Mapping[str, Mapping[str, Node]]

    def judges(self, case: str) -> bool:
        """Whether a case may have a gate."""
        return bool(self.thresholds) or case in self.by_case or ONE_TASK in self.by_case

    def gates(self, case: str, metric: Metric) -> tuple[Gate, ...]:
        """Return the gates on a metric of a case; raises ``SuiteError`` where the file has a wrong one."""
        gates = tuple(replace(gate, metric=metric.name) for gate in self.thresholds)
        for name in dict.fromkeys((ONE_TASK, case)):
            # The shorter name of a metric is the more general one.
            entries = self.by_case.get(name, {})
            for key in sorted(entries, key=len):
                if names_metric(key, metric.name):
                    gates = merged_gates(gates, metric_gates(entries[key], metric))
        return gates

    def check_names(self, runs: Iterable[Mapping[str, Iterable[str]]]) -> None:
        """Raise ``SuiteError`` where the file names a case or a metric that no run has."""
        metrics: dict[str, dict[str, None]] = {}
        for run in runs:
            for name, scored in run.items():
                metrics.setdefault(name, {}).update(dict.fromkeys(scored))
        metrics[ONE_TASK] = {one: None for of in metrics.values() for one in of}
        for case, entries in self.by_case.items():
            for key, entry in entries.items():
                if case not in metrics:
                    raise entry.error(unknown("case", case, metrics, where="the runs"))
                if not any(names_metric(key, one) for one in metrics[case]):
                    raise entry.error(
                        unknown("metric", key, metrics[case], where=f"case {case}")
                    )


def read_demands(
    max_drop: str | None, recovery: str | None, file: Path | None
) -> Demands:
    """Read what the flags say; raises ``KbrelError`` with what is allowed.

    The file has ``{CASE: {METRIC: {RULE: NUMBER}}}``.
    """
    stated: tuple[tuple[Rule, str | None], ...] = (
        ("max_drop", max_drop),
        ("recovery", recovery),
    )
    thresholds = tuple(
        _threshold(rule, text) for rule, text in stated if text is not None
    )
    by_case = {}
    document = read_document(file).mapping("a file of gates") if file else {}
    for case, entry in document.items():
        by_case[case] = entry.mapping(f"gates of the case {case}")
        if not by_case[case]:
            raise entry.error(
                f"the case {case} has no gate; allowed: {{METRIC: {{recovery: 0.95}}}}"
            )
    return Demands(thresholds=thresholds, by_case=by_case)


def _threshold(rule: Rule, text: str) -> Gate:
    """Read the gate that a flag demands of every metric, ``0.05`` or ``within:0.08,beyond:0.02``."""
    allowed = GATE_RULES[rule]
    bounds = Bounds(0, 1, whole=False) if allowed.ratio else _BOUND
    try:
        if not (written := _TEXT.fullmatch(text)):
            raise ValueError(f"found {text!r}; allowed: NUMBER or within:N,beyond:N")
        within = bounds.number(written[1])
        beyond = bounds.number(written[2]) if written[2] else None
        if (
            beyond is not None
            and within
            and allowed.allows_more * (within - beyond) <= 0
        ):
            raise ValueError(f"found {text!r}; allowed: beyond allows less than within")
    except ValueError as error:
        raise KbrelError(f"--{rule.replace('_', '-')}: {error}") from None
    return Gate(metric="", rule=rule, bound=within, beyond=beyond)


# The share of the baseline's rows that a candidate may have no score for.
_MOST_LOST = 0.01
_NAMED = 3
# The verdict on what only the other run has: the candidate, and the baseline.
_ALONE: tuple[Judgement, Judgement] = ("no baseline", "not run")
_NOTHING = Scores(table=Table(columns=(SCORE,), rows=()), times={}, higher=None)
Runs = tuple[ScoredRun, ScoredRun]


def pair_scored(
    runs: Sequence[ScoredRun], demands: Demands, *, strict: bool
) -> list[Side]:
    """Return the runs, all but the first decided against it; all their cases are one family of tests (Šidák).

    A case or metric that only one side has is ``no baseline``, or ``not run`` where the candidate lacks it;
    with too many rows lost it is ``invalid``, or ``not comparable`` where they were asked otherwise.
    ``strict``: what is inconclusive fails.
    """
    demands.check_names(run.cases for run in runs)
    first, *others = runs
    family = sum(
        demands.judges(name)
        for run in others
        for name in first.cases.keys() & run.cases.keys()
    )
    return [
        _side(first),
        *(
            judged(
                _side(run),
                _decided((first, run), demands, max(family, 1)),
                strict=strict,
                foreign=True,
            )
            for run in others
        ),
    ]


def _side(run: ScoredRun) -> Side:
    model = f", {run.model}" if run.model else ""
    about = f"{run.tool}{model}, cases: {len(run.cases)}"
    return Side(name=str(run.path), about=about, results={})


def _decided(runs: Runs, demands: Demands, comparisons: int) -> Run:
    names = dict.fromkeys(name for run in runs for name in run.cases)
    return Run(
        kbrel_version=__version__,
        cases=tuple(_case(name, runs, demands, comparisons) for name in names),
        baseline=str(runs[0].path),
    )


@record
class _Paired:
    """The rows of a metric in both runs; ``before`` are all of the baseline's.

    ``figure`` is what the scores may be. ``lost`` are the rows whose score is not sure: the candidate has no
    such row, or none with a score, or was asked otherwise, or has it another number of times than most.
    ``obstacle`` is why the metric cannot be judged. ``higher`` is None where nothing says which way is better.
    """

    pairing: Pairing
    before: Table
    figure: Figure
    higher: bool | None
    lost: frozenset[str] = frozenset()
    obstacle: Obstacle | None = None

    @property
    def metric(self) -> Metric:
        """What is to know to read gates on it: its values say what they may be."""
        return Metric(
            name=self.figure.name,
            better=self.better(),
            about="A metric of another tool.",
            low=max(self.figure.bounds[0], -FIGURE),
            high=1.0 if self.figure.rate else math.inf,
        )

    def better(self, *, turned: bool = False) -> Better:
        """Return which way is better; ``turned`` is the other one where it is not known."""
        higher = not turned if self.higher is None else self.higher
        return "higher" if higher else "lower"

    def at(self, end: int | None) -> Pairing:
        """Return the rows paired, with those lost at an end of what scores may be, where that is finite.

        Rows of the candidate alone stand in nobody's way.
        """
        value = math.inf if end is None else self.figure.bounds[end]
        if math.isinf(value):
            return replace(self.pairing, added=(), differing=())
        ours = {row.fact_id: row for row in self.pairing.candidate.rows}
        rows = (
            replace(row, values=(value,), answer="(no score)", label="wrong")
            if row.fact_id in self.lost
            else ours[row.fact_id]
            for row in self.before.rows
        )
        return pair(replace(self.before, rows=tuple(rows)), self.before, exact=True)


def _paired(metric: str, name: str, runs: Runs) -> _Paired:
    cases = [run.cases.get(name, {}) for run in runs]
    old, new = both = [case.get(metric, _NOTHING) for case in cases]
    pairing = pair(new.table, old.table, exact=True)
    said = {of.higher for of in both} - {None}
    rows = _Paired(
        pairing=pairing,
        before=old.table,
        figure=mean_figure(metric, SCORE, [of.table for of in both]),
        higher=said.pop() if len(said) == 1 else None,
    )
    for run, case, verdict in zip(runs, cases, _ALONE, strict=True):
        if metric not in case:
            nothing = pair(_NOTHING.table, _NOTHING.table)
            why = f"{run.path} has no {metric} in {name}"
            return replace(rows, pairing=nothing, obstacle=(verdict, why))
    usual = mode(list(filter(None, new.times.values())) or [1])
    ours = {row.fact_id: row.values[0] for row in pairing.candidate.rows}

    def is_lost(id_: str) -> bool:
        due = max(old.times[id_], usual)
        there = new.times[id_] if id_ in ours else 0
        # However often a row stands that is wholly right or wrong each time, it is that.
        return there < due or (there > due and ours[id_] not in (0.0, 1.0))

    rows = replace(
        rows, lost=frozenset(filter(is_lost, filter(old.times.get, old.times)))
    )
    return replace(rows, obstacle=_obstacle(metric, rows, new.table))


def _obstacle(metric: str, rows: _Paired, after: Table) -> Obstacle | None:
    """Return why a metric that both runs have cannot be judged."""
    total, lost = len(rows.before.rows), len(rows.lost)
    missing = sorted(rows.lost.difference(rows.pairing.differing))
    allowed = f"of {total} rows of {metric}; allowed: at most {_MOST_LOST:.0%}"
    if len(missing) > _MOST_LOST * total:
        return "invalid", (
            f"{len(missing)} have no score in the candidate alone, or stand more often than others "
            f"({_first(missing)}), {allowed}"
        )
    if lost > _MOST_LOST * total:
        return "not comparable", f"{lost} were asked otherwise, {allowed}"
    if not total:
        return "not comparable", f"the baseline has no row with {metric}"
    # The end at which lost rows are worst.
    if lost and math.isinf(rows.figure.bounds[rows.higher is not True]):
        why = f"a score of {metric} may be any number, and {lost} rows have none"
        return "invalid", why
    old, new = (
        max((row.values[0] for row in of.rows), default=0.0)
        for of in (rows.before, after)
    )
    if min(old, new) <= 1 < max(old, new) and not is_unbounded(metric):
        return "not comparable", (
            f"{metric} is at most {old:g} in the baseline and {new:g} in the candidate; "
            "allowed: one scale, such as shares or percent"
        )
    return None


def _case(name: str, runs: Runs, demands: Demands, comparisons: int) -> CaseResult:
    """Return a decided case; its notes are what is to know about its rows."""
    before, after = (run.cases.get(name, {}) for run in runs)
    paired = {of: _paired(of, name, runs) for of in dict.fromkeys((*after, *before))}
    # What changed is told of the first metric that is right or wrong.
    told = [of for of in paired.values() if of.figure.rate and of.pairing.asked]
    lost, gained = (
        fact_changes(None, told[0].at(int(told[0].higher is False)))
        if told
        else ((), ())
    )
    gates = [gate for of in paired.values() for gate in demands.gates(name, of.metric)]
    results, figures = _judged(gates, paired, comparisons)
    obstacles = [of.obstacle for of in paired.values() if of.obstacle]
    if not paired:
        why = "it has no metric that is a number in each row"
        obstacles.append(("not comparable", why))
    # A metric that is not judged keeps no other from being.
    verdicts = [gate.verdict for gate in results] or [of for of, _ in obstacles]
    return CaseResult(
        id=name,
        suite=runs[1].tool,
        probe="test",
        slice=name,
        verdict="invalid" if "invalid" in verdicts else worst(verdicts),
        n=max((len(of.table.rows) for of in after.values()), default=0),
        metrics=figures,
        gates=results,
        # Without a reason of its own it would be the session that stopped.
        errors=tuple(why for of, why in obstacles if of == "not run"),
        lost=lost,
        gained=gained,
        unmatched=Unmatched(
            added=tuple(
                sorted({id_ for of in paired.values() for id_ in of.pairing.added})
            ),
            unasked=tuple(sorted({id_ for of in paired.values() for id_ in of.lost})),
        ),
        notes=(*map(": ".join, obstacles), *_notes(name, runs, paired)),
    )


def _judged(
    gates: Sequence[Gate], paired: Mapping[str, _Paired], comparisons: int
) -> tuple[tuple[GateResult, ...], tuple[MetricValue, ...]]:
    """Return the gates at their worst, and the figures over the rows that both runs have.

    Where it is not known which way a metric is better, both are tried, and a loss in the other one is no pass.
    """
    sound = {metric: rows for metric, rows in paired.items() if not rows.obstacle}
    judged = [gate for gate in gates if gate.metric in sound]
    measurement = _measured(sound, None, comparisons)
    results = decide(judged, measurement)
    ends = (None, 0, 1) if any(rows.lost for rows in sound.values()) else (None,)
    turns = (False, any(rows.higher is None for rows in sound.values()))
    for end, turned in [*product(ends, dict.fromkeys(turns))][1:]:
        others = decide(judged, _measured(sound, end, comparisons, turned=turned))
        both = zip(results, others, strict=True)
        results = tuple(_worse(*of, sound[of[0].metric], end, turned) for of in both)
    remaining = iter(results)
    return tuple(
        gate_result(gate, of[0], f"not judged: {of[1]}")
        if (of := paired[gate.metric].obstacle)
        else next(remaining)
        for gate in gates
    ), measurement.values


def _worse(
    gate: GateResult, other: GateResult, rows: _Paired, end: int | None, turned: bool
) -> GateResult:
    """Return a gate's result, or the ``other`` where it is worse."""
    verdict, leading = other.verdict, []
    if turned:
        told = rows.higher is not None or verdict == "pass"
        verdict, leading = "pass" if told else "inconclusive", [reason("were_less")]
    if SEVERITY.index(verdict) >= SEVERITY.index(gate.verdict):
        return gate
    if rows.lost and end is not None:
        value = rows.figure.bounds[end]
        leading.append(reason("lost_rows", rows=len(rows.lost), end=value))
    return replace(other, verdict=verdict, reasons=(*leading, *other.reasons))


def _measured(
    sound: Mapping[str, _Paired],
    end: int | None,
    comparisons: int,
    *,
    turned: bool = False,
) -> Measurement:
    """Measure the rows that both runs have, those lost at an ``end`` of their scores.

    ``turned``: of what is not known to be better the more there is, less is better.
    """
    pairings = [rows.at(end) for rows in sound.values()]
    figures = [
        mean_figure(
            metric,
            SCORE,
            (pairings[at].candidate, pairings[at].baseline),
            member=at,
            better=rows.better(turned=turned),
            undefined="no row",
        )
        for at, (metric, rows) in enumerate(sound.items())
    ]
    # A gate that compares with no baseline is about the same rows: others were never there to be lost.
    tables = [pairing.candidate for pairing in pairings]
    return measure_figures(figures, tables, pairings, comparisons=comparisons)


def _notes(name: str, runs: Runs, paired: Mapping[str, _Paired]) -> Iterator[str]:
    """Yield what was left out or counted otherwise than a reader may expect, each with its first rows."""
    for metric, rows in paired.items():
        if count := len(rows.lost):
            yield f"{count} rows without a sure {metric} in the candidate count as lost"
        if rows.higher is None:
            yield f"{metric}: taken to be better the higher it is; allowed: --lower-is-better {metric}"
    for run in runs:
        for metric, scores in run.cases.get(name, {}).items():
            times, lost = scores.times, paired[metric].lost
            for words, ids in (
                (
                    f"no {metric} and are left out",
                    [of for of in times if not times[of] and of not in lost],
                ),
                (
                    f"several of {metric}, of which the mean counts",
                    [of for of in times if times[of] > 1],
                ),
            ):
                if ids:
                    yield f"{len(ids)} rows of {run.path} have {words}: {_first(ids)}"


def _first(names: Iterable[str]) -> str:
    """Return the first names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return ", ".join(listed[:_NAMED]) + more
