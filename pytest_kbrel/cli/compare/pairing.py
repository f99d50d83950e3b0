"""Recorded runs compared fact by fact: the first is the baseline, each other a candidate."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from pytest_kbrel import __version__, stats
from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    case_key,
    listed_differences,
    read_baseline,
    same_draw,
)
from pytest_kbrel.catalogue.probes import probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.cli.compare.models import probe_and_slice
from pytest_kbrel.errors import BaselineError, KbrelError
from pytest_kbrel.gates import (
    Comparison,
    compare_case,
    decide_aggregate,
    with_family,
    with_looks_told,
)
from pytest_kbrel.gates.cases import under_waivers
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
    is_published,
    record,
)
from pytest_kbrel.reports import OUTCOMES, REPORT, earlier_note
from pytest_kbrel.reports.json_report import read_report
from pytest_kbrel.session.outcomes import run_with_outcomes


@record
class PairedRun:
    """A candidate compared with the baseline. ``run`` has its decided cases and what may differ.

    ``p_holm`` are Holm's p-values by (node id, figure), over all figures of all candidates shown;
    ``obstacles`` say by node id why a case cannot be compared. ``strict``: what is inconclusive fails.
    ``unit`` is what is paired: a fact, or a row of another tool. The candidate is called ``name``, and has
    the ``number`` among the models, of which the baseline is the first.
    """

    number: int
    name: str
    run: Run
    p_holm: Mapping[tuple[str, str], float | None]
    obstacles: Mapping[str, str]
    strict: bool = False
    unit: str = "fact"

    @property
    def fails(self) -> bool:
        """True if a gate of the candidate fails against the baseline unwaived, or a waiver has expired.

        A case that a run of ours lacks is a failure: a blessed run does not say which gates it had.
        """
        # The first one is the baseline: what it lacks is a failure.
        failures = failing(compared=True, strict=self.strict)
        return any(
            case.expired
            or (case.verdict == "not run" and self.unit == "fact")
            or any(gate.verdict in failures for gate in case.gates)
            for case in self.run.cases
            if not case.waived
        )


def pair_runs(
    baseline: RecordedOutcomes,
    candidates: Mapping[tuple[int, str], RecordedOutcomes],
    name: str,
    *,
    strict: bool = False,
) -> tuple[PairedRun, ...]:
    """Compare candidates, by number and name, with the baseline, which is called ``name``.

    ``strict`` is that of :class:`PairedRun`.
    All cases of all candidates together are one family of tests, which Šidák's correction is for.
    """
    family = sum(map(family_size, candidates.values()))
    runs, obstacles = [], []
    for side in candidates.values():
        cases = decide_outcomes(side, baseline.run, family)
        why = f"{name} has this case, and the candidate does not"
        lacking = _not_run(baseline, side, why)
        runs.append(_run_of(side, [*cases, *lacking], baseline.run, name))
        obstacles.append(
            _obstacles(side, cases, baseline.run)
            | {case.nodeid: f"not run: {why}" for case in lacking}
        )
    return corrected_runs(list(candidates), runs, obstacles, strict=strict)


def corrected_runs(
    names: Sequence[tuple[int, str]],
    runs: Sequence[Run],
    obstacles: Sequence[Mapping[str, str]],
    *,
    strict: bool,
    unit: str = "fact",
) -> tuple[PairedRun, ...]:
    """Return decided runs with the p-values of all of them corrected together, of gates and of figures."""
    adjusted = iter(with_family([case for run in runs for case in run.cases]))
    runs = [
        dataclasses.replace(run, cases=tuple(next(adjusted) for _ in run.cases))
        for run in runs
    ]
    ps = [value.p for run in runs for case in run.cases for value in case.metrics]
    holm = iter(stats.holm(ps))
    return tuple(
        PairedRun(
            number=number,
            name=name,
            run=run,
            p_holm={
                (case.nodeid, value.name): next(holm)
                for case in run.cases
                for value in case.metrics
            },
            obstacles=of_run,
            strict=strict,
            unit=unit,
        )
        for (number, name), run, of_run in zip(names, runs, obstacles, strict=True)
    )


def bare_run(baseline: str, cases: Iterable[CaseResult]) -> Run:
    """Return cases as a run of which nothing else is known."""
    return Run(
        kbrel_version=__version__,
        created="",
        model=None,
        environment=(),
        settings=(),
        cases=tuple(cases),
        baseline=baseline,
    )


def family_size(side: RecordedOutcomes) -> int:
    """Return the number of cases of a recorded run that compare with a baseline."""
    cases: tuple[CaseResult | AggregateCase, ...] = (*side.cases, *side.aggregates)
    return sum(
        any(GATE_RULES[gate.rule].relative for gate in case.gates) for case in cases
    )


def decide_outcomes(
    side: RecordedOutcomes, baseline: Baseline, comparisons: int
) -> list[CaseResult]:
    """Decide the cases of a recorded run anew against ``baseline``, aggregates behind their members.

    ``comparisons`` is the size of the family of tests, such as :func:`family_size`.
    """
    cases: list[CaseResult] = []
    comparison = _comparison(side, baseline, comparisons)
    for case in side.cases:
        before = baseline.case(case)
        if case.verdict == "invalid" or not case.table.rows:
            cases.append(case)
            continue
        table = before.table if isinstance(before, BaselineCase) else None
        completed = dataclasses.replace(case, table=_with_texts(case, table))
        gates = [gate_of(gate) for gate in case.gates]
        decided = compare_case(completed, gates, comparison)
        cases.append(under_waivers(with_looks_told(decided), waivers_of(case)))
    for aggregate in side.aggregates:
        members = [
            case
            for case in cases
            if case.suite == aggregate.suite and case.id in aggregate.members
        ]
        cases.append(decide_aggregate(aggregate, members, comparison))
    return cases


def _not_run(
    baseline: RecordedOutcomes, candidate: RecordedOutcomes, why: str
) -> list[CaseResult]:
    """Return the cases that only the baseline has, with their gates as far as it knows them."""
    there = _by_key(candidate)
    return [
        CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            verdict="not run",
            n=0,
            gates=tuple(gate_result(gate_of(of), "not run", why) for of in case.gates),
            aggregate=isinstance(case, AggregateCase),
        )
        for key, case in _by_key(baseline).items()
        if key not in there
        and not (candidate.is_blessed and isinstance(case, AggregateCase))
    ]


def _by_key(side: RecordedOutcomes) -> dict[str, CaseResult | AggregateCase]:
    return {
        **{case_key(of.suite, of.id): of for of in side.cases},
        **{case_key(of.suite, of.id): of for of in side.aggregates},
    }


def _obstacles(
    side: RecordedOutcomes, cases: Sequence[CaseResult], baseline: Baseline
) -> dict[str, str]:
    """Return why cases cannot be compared, whether they have gates or not."""
    comparison, obstacles = _comparison(side, baseline), {}
    for case in cases:
        if not case.aggregate and case.metrics:
            pairing = comparison.pairing(case)
            pairings, missing = ([], [case.id]) if pairing is None else ([pairing], [])
            if obstacle := comparison.obstacle([case], pairings, missing):
                obstacles[case.nodeid] = ": ".join(obstacle)
    return obstacles


def _comparison(
    side: RecordedOutcomes, baseline: Baseline, comparisons: int = 1
) -> Comparison:
    run, drawn = side.run, dict(side.run.settings)
    return Comparison(
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
            for case in side.cases
            if (case.looks is None or not case.looks.early)
            and same_draw(baseline, drawn.get("limit"), drawn.get("seed"))
        },
    )


def _with_texts(case: CaseResult, other: Table | None) -> Table:
    """Return the case's table with the questions and answers of ``other`` where it kept none itself."""
    rows = case.table.rows
    if any(row.question for row in rows):
        return case.table
    texts = (
        {row.fact_id: row for row in other.rows if row.question}
        if other is not None
        else {}
    )
    # Of unseen knowledge nothing is expected; what else was expected, nobody knows any more.
    probe = probe_named(case.probe)
    unseen = probe is not None and probe.kind(case.slice) == "unseen"
    lines = []
    for row in rows:
        twin = texts.get(row.fact_id)
        expected = twin.expected if twin is not None else "" if unseen else NOT_KNOWN
        question = twin.question if twin is not None else row.fact_id
        lines.append(dataclasses.replace(row, question=question, expected=expected))
    return Table(columns=case.table.columns, rows=tuple(lines))


def _run_of(
    side: RecordedOutcomes, cases: Sequence[CaseResult], baseline: Baseline, name: str
) -> Run:
    run = Run(
        kbrel_version=side.run.kbrel_version,
        created=side.run.created,
        model=side.run.model,
        environment=side.run.versions,
        settings=side.run.settings,
        cases=tuple(cases),
        baseline=name,
        helpers=side.run.helpers,
        base=baseline.model,
    )
    return dataclasses.replace(run, differences=listed_differences(run, baseline))


@record
class RecordedOutcomes:
    """A recorded run with its outcomes: as a baseline (``run``), and its cases with their gates.

    ``aggregates`` are empty where nothing says which cases they are over, and gates where none were kept: a
    run that ``is_blessed`` has neither.
    """

    run: Baseline
    cases: tuple[CaseResult, ...]
    aggregates: tuple[AggregateCase, ...] = ()
    is_blessed: bool = False


def read_outcomes(source: str, rootdir: Path) -> RecordedOutcomes | str:
    """Return a report folder or a blessed run with its outcomes, or the reason why it has none to pair.

    Raises ``KbrelError`` where the outcomes are broken or not those of the report beside them.
    """
    if is_published(source):
        return "a paper's figures have no facts behind them"
    path = Path(source).expanduser()
    if path.is_file() or (path / REPORT).is_file():
        folder = path if path.is_dir() else path.parent
        if not (folder / OUTCOMES).is_file():
            return (
                f"there is no {OUTCOMES} beside its report, as older versions left it"
            )
        return _of_report(run_with_outcomes(read_report(path), folder), folder)
    try:
        return _of_baseline(read_baseline(source, rootdir))
    except BaselineError as error:
        return str(error)


def outcomes_of(path: Path) -> RecordedOutcomes:
    """Return the outcomes of a report folder or a ``report.json``; raises ``KbrelError`` where there are none."""
    if not path.is_file() and not (path / REPORT).is_file():
        earlier = earlier_note(path / REPORT)
        raise KbrelError(
            f"{path}: has no {REPORT}; allowed: the folder of a run's reports{earlier}"
        )
    side = read_outcomes(str(path), Path())
    if isinstance(side, str):
        raise KbrelError(f"{path}: {side}; allowed: a report folder as a run wrote it")
    return side


def gate_of(result: Gate | GateResult) -> Gate:
    """Return the gate of a gate's result."""
    return Gate(
        metric=result.metric,
        rule=result.rule,
        bound=result.bound,
        line=result.line,
        beyond=result.beyond,
    )


def waivers_of(case: CaseResult) -> tuple[Waiver, ...]:
    """Return the waivers that a recorded case stands under, as they were when it was run."""
    return case.expired or (() if case.waiver is None else (case.waiver,))


def _of_report(run: Run, folder: Path) -> RecordedOutcomes:
    measured = {}
    for case in run.cases:
        rows, key = len(case.table.rows), case_key(case.suite, case.id)
        if case.aggregate or case.verdict == "invalid":
            continue
        if rows != case.n:
            raise KbrelError(
                f"{folder}: {case.nodeid} has {case.n} facts in {REPORT} and {rows} in {OUTCOMES}; allowed: a "
                "report folder as a run wrote it"
            )
        if rows:
            measured[key] = BaselineCase(
                key=key, table=case.table, metrics=(), settings=case.settings
            )
    return RecordedOutcomes(
        run=Baseline(
            path=folder,
            kbrel_version=run.kbrel_version,
            created=run.created,
            reason="",
            commit="",
            versions=run.environment,
            model=run.model,
            settings=run.settings,
            cases=measured,
            helpers=run.helpers,
        ),
        cases=tuple(case for case in run.cases if not case.aggregate),
        aggregates=tuple(
            AggregateCase(
                id=case.id,
                suite=case.suite,
                probe=case.probe,
                slice=case.slice,
                members=case.members,
                gates=tuple(map(gate_of, case.gates)),
                waivers=waivers_of(case),
            )
            for case in run.cases
            if case.aggregate and case.members
        ),
    )


def _of_baseline(run: Baseline) -> RecordedOutcomes:
    cases = []
    for key, case in run.cases.items():
        if not isinstance(case, BaselineCase):
            continue
        suite, _, case_id = key.partition("::")
        probe, slice_name = probe_and_slice(case_id)
        cases.append(
            CaseResult(
                id=case_id,
                suite=PurePath(suite).name,
                probe="test" if probe is None else probe.name,
                slice=case_id if probe is None else slice_name,
                verdict="pass",
                n=len(case.table.rows),
                table=case.table,
                settings=case.settings,
            )
        )
    return RecordedOutcomes(run=run, cases=tuple(cases), is_blessed=True)
