"""Models side by side: recorded and blessed runs, decided again as their sessions decided them, and papers.

The first is the baseline, each other recorded one a candidate.
"""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from pytest_kbrel.baselines import (
    Baseline,
    BaselineCase,
    case_key,
    find_baseline,
    listed_differences,
    read_baseline,
    same_draw,
    session_baseline,
)
from pytest_kbrel.baselines.format import ALLOWED as WRITTEN
from pytest_kbrel.baselines.format import PACK, read_meta
from pytest_kbrel.baselines.reading import published_names, search_path
from pytest_kbrel.catalogue.metrics import METRICS
from pytest_kbrel.catalogue.probes import PROBES, probe_named
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import failing
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.gates import (
    Comparison,
    compare_case,
    decide_aggregate,
    under_waivers,
    with_family,
)
from pytest_kbrel.gates.rules import gate_result
from pytest_kbrel.metrics.correlations import correlations, joined
from pytest_kbrel.records import (
    NOT_KNOWN,
    AggregateCase,
    CaseKind,
    CaseResult,
    MetricValue,
    Run,
    Table,
    Waiver,
    is_published,
)
from pytest_kbrel.reports import OUTCOMES, REPORT, runs_beside
from pytest_kbrel.reports.comparison import CaseRow, Scatter, Side
from pytest_kbrel.reports.json_report import read_run
from pytest_kbrel.session.outcomes import recorded_run

ALLOWED = "a report folder, a report.json, a baseline's name or path, published/..., or a run of another tool"
# The size in the name of a model: 7b, 0.08B, 560m, and 1b3 for 1.3 billion.
_SIZE = re.compile(
    r"(?<![a-z0-9.])(\d{1,4})(?:\.(\d{1,3}))?([bm])(\d{1,3})?(?![a-z0-9])",
    re.IGNORECASE,
)
_UNITS = {"b": 1e9, "m": 1e6}
# A model has not nearly as many parameters.
_MOST = 10**15


def read_sides(names: Sequence[str], rootdir: Path) -> list[Side]:
    """Read all models that are named; names below ``published/`` may be folders or patterns.

    Raises ``KbrelError`` where one cannot be read, or when there are fewer than two.
    """
    read = [side for name in names for side in _read(name, rootdir)]
    # One that stands in a folder named beside it is one model.
    sides = list({side.name: side for side in read}.values())
    if len(sides) == 1 and len(names) > 1:
        raise KbrelError(
            f"{names[0]}: found more than once; allowed: two or more different models or runs"
        )
    if len(sides) < 2:
        raise KbrelError(
            f"found {len(sides)} model to compare; allowed: two or more, each {ALLOWED}"
        )
    return sides


def _read(name: str, rootdir: Path) -> list[Side]:
    if is_published(name):
        pattern = name.rstrip("/")
        chosen = [
            one
            for one in published_names(search_path(rootdir))
            if fnmatch.fnmatchcase(one, pattern) or one.startswith(f"{pattern}/")
        ]
        return [_of_paper(one, read_baseline(one, rootdir)) for one in chosen or [name]]
    path = Path(name).expanduser()
    is_report = path.is_file() and path.suffix != PACK
    if is_report or (path / REPORT).is_file():
        folder, why = path if path.is_dir() else path.parent, ""
        if (folder / OUTCOMES).is_file():
            run = recorded_run(path)
        else:
            run = read_run(path)
            why = f"there is no {OUTCOMES} beside its report, as older versions left it"
    else:
        allowed = f"a report folder, or {WRITTEN}"
        find_baseline(name, rootdir, allowed=allowed, others=runs_beside(path))
        run, why = _run_of(read_baseline(name, rootdir)), ""
    side = _recorded(name, run)
    return [replace(side, unpaired=why, recorded=None if why else run)]


def _of_paper(name: str, baseline: Baseline) -> Side:
    settings = dict(baseline.settings)
    about = ", ".join(value for value in settings.values() if value)
    spec = settings.get("model", "")
    return Side(
        name=name,
        about=f"{about}: {baseline.paper}",
        results={
            case.id: _case(case.id, {of.name: of.value for of in case.figures})
            for case in baseline.published.values()
        },
        spec=spec,
        parameters=size_in(spec),
        family=family_of(spec),
        setting=settings.get("setting", ""),
        unpaired="a paper's figures have no facts behind them",
    )


def _recorded(name: str, run: Run) -> Side:
    model = run.model
    spec = model.title if model else "no model"
    results: dict[str, CaseResult] = {}
    for case in run.cases:
        key = case_key(case.suite, case.id)
        if key in results:
            raise KbrelError(
                f"{name}: two suites of the same file name, {PurePath(case.suite).name}, have the case "
                f"{case.id}; allowed: runs whose suites have names of their own"
            )
        results[key] = case
    return Side(
        name=name,
        about=f"{spec}, {run.created}, pytest-kbrel {run.kbrel_version}",
        results=results,
        spec=spec,
        parameters=model.parameters if model and 0 < model.parameters <= _MOST else 0,
        family=family_of(spec, model.architecture if model else ""),
    )


def _run_of(blessed: Baseline) -> Run:
    """Return a blessed run as a run: of its aggregates the figures, since it has neither gates nor members."""
    over = {
        key: _case(key, case["metrics"])
        for key, case in read_meta(blessed.path).get("aggregates", {}).items()
    }
    cases = [
        replace(
            _case(key, dict(case.metrics)),
            n=len(case.table.rows),
            table=case.table,
            settings=case.settings,
        )
        for key, case in blessed.cases.items()
    ]
    return Run(
        kbrel_version=blessed.kbrel_version,
        created=blessed.created,
        model=blessed.model,
        environment=blessed.versions,
        settings=blessed.settings,
        cases=(*cases, *over.values()),
        helpers=blessed.helpers,
    )


def baseline_of(run: Run, path: Path) -> Baseline:
    """Return a recorded run, read at ``path``, as one that others are compared with."""
    cases = (
        (case.suite, case.id, case.table, case.settings)
        for case in run.cases
        if case.table.rows and case.verdict != "invalid"
    )
    return replace(
        session_baseline(run.model, cases, judge="", helpers=run.helpers),
        path=path,
        kbrel_version=run.kbrel_version,
        created=run.created,
        versions=run.environment,
        settings=run.settings,
    )


def _case(key: str, figures: Mapping[str, float | None]) -> CaseResult:
    """Return a case of which only figures are known; its key has a suite, or none in a paper."""
    suite, _, case_id = key.rpartition("::")
    name, _, rest = case_id.partition("[")
    probe, slice_name = probe_named(name), rest.removesuffix("]")
    other: CaseKind = "pooled" if name == "pooled" else "test"
    return CaseResult(
        id=case_id,
        suite=suite,
        probe=probe.name if probe else other,
        slice=slice_name,
        verdict="pass",
        n=0,
        metrics=tuple(
            MetricValue(
                name=name,
                better=METRICS[name].better if name in METRICS else "higher",
                value=value,
            )
            for name, value in figures.items()
        ),
        aggregate=probe.is_overall(slice_name) if probe else name == "pooled",
    )


def size_in(name: str) -> int:
    """Return the number of parameters that a model's name states; 0 where it states none."""
    if not (match := _SIZE.search(name)):
        return 0
    whole, part, unit, behind = match.groups()
    return round(float(f"{whole}.{part or behind or 0}") * _UNITS[unit.lower()])


def family_of(spec: str, architecture: str = "") -> str:
    """Return what models of several sizes have in common: their name without the size.

    Where the last part of the name states no size it is the ``architecture``, or else the name.
    """
    name = PurePath(spec).name
    if not _SIZE.search(name):
        return architecture or name
    without = re.sub(r"[-_ .]{2,}", "-", _SIZE.sub("", name).replace("()", ""))
    return without.strip("-_ .").lower() or name


def case_rows(sides: Sequence[Side]) -> tuple[CaseRow, ...]:
    """Return every case of any of the models, called by its id, and by its suite where a model has it in two."""
    ids = [Counter(case.id for case in side.results.values()) for side in sides]
    twice = {id_ for of in ids for id_, times in of.items() if times > 1}
    named = [
        {key if case.id in twice else case.id: case for key, case in of.results.items()}
        for of in sides
    ]
    return tuple(
        CaseRow(
            name=name,
            results=tuple(of.get(name) for of in named),
        )
        for name in dict.fromkeys(name for of in named for name in of)
    )


def correlated(sides: Sequence[Side], rows: Iterable[CaseRow]) -> tuple[Scatter, ...]:
    """Return the figures that are correlated over the models, with their points.

    Seen and unseen slices of one group and setting are one, as over the slices of a run. What a paper prints
    of a case in several prompt settings is correlated within each of them, and the setting named: a model
    in three settings is not three models, and neither is one whose figures are another's. Pairs of figures
    that fewer than two models have are left out.
    """
    rows = list(rows)
    points, seen = [], []
    for at, side in enumerate(sides):
        cases = [(row.name, case) for row in rows if (case := row.results[at])]
        own = side.setting, [(name, case.figures) for name, case in cases]
        points.append({} if own in seen else joined(_placed(cases)))
        seen.append(own)
    scatters = []
    for key in dict.fromkeys(key for of in points for key in of):
        suite, probe, name = key
        within = f"{suite}::{probe}[{name}]" if suite else f"{probe}[{name}]"
        whole = PROBES[probe].is_overall(name) or len(PROBES[probe].kinds) > 1
        pairs = list(zip(points, sides, strict=True))
        having = (side.setting for of, side in pairs if key in of and side.setting)
        # One that is empty where no model has any.
        settings = list(dict.fromkeys(having)) or [""]
        for setting in settings:
            # Over all slices a run without slices is one model in whatever setting.
            of_models = {
                number: of.get(key, {})
                for number, (of, side) in enumerate(pairs, start=1)
                if side.setting in ("", setting) and of
            }
            scatters += [
                Scatter(
                    within=f"{within}, {setting}" if settings[1:] else within,
                    whole=whole,
                    figures=of_models,
                    pearson=pearson,
                    spearman=spearman,
                )
                for pearson, spearman in correlations(
                    probe, list(of_models.values()), over="models"
                )
                if pearson.n > 1
            ]
    return tuple(scatters)


def _placed(
    cases: Sequence[tuple[str, CaseResult]],
) -> Iterator[CaseResult]:
    """Yield the cases of probes by name, with the suite that their name has.

    Figures over both kinds of slice are left out where there are those of the slices, which make one point.
    """
    several = {
        case.probe
        for _, case in cases
        if not case.aggregate
        and (probe := probe_named(case.probe))
        and len(probe.kinds) > 1
    }
    for name, case in cases:
        probe = probe_named(case.probe)
        if probe and not (case.aggregate and probe.name in several):
            yield replace(case, suite=name.rpartition("::")[0])


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
            decided.append(_decide_case(case, comparison))
    return decided


def _decide_case(case: CaseResult, comparison: Comparison) -> CaseResult:
    table = _with_texts(case, comparison.case(case))
    case = replace(case, table=table, notes=())
    paired = [comparison.pairing(case)]
    decided = compare_case(case, case.gates, comparison)
    if obstacle := comparison.obstacle(case, [case], paired):
        decided = replace(decided, notes=(": ".join(obstacle), *decided.notes))
    return under_waivers(decided, _waivers(case))


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
        gates=case.gates,
        waivers=_waivers(case),
    )
    return decide_aggregate(aggregate, decided, comparison)


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
    return replace(case.table, rows=tuple(completed))
