"""Merging recorded shards without pytest: every case is decided on what they recorded, and reported."""

from __future__ import annotations

import dataclasses
import datetime
import gc
import os
from collections.abc import Collection, Sequence
from pathlib import Path

from pytest_kbrel.baselines import Baseline, check_published
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import with_specs
from pytest_kbrel.evaluation.recorded_run import RecordedRun, read_runs, runs_in
from pytest_kbrel.records import Run, Suite
from pytest_kbrel.session.case_asker import CaseAsker
from pytest_kbrel.session.run_builder import (
    SessionResults,
    baseline_of_session,
    build_run,
    decide_aggregates,
    dump_responses,
    write_reports,
)
from pytest_kbrel.session.suite_changes import changed_suites, lost_cases
from pytest_kbrel.settings import Settings
from pytest_kbrel.store.run_store import RunStore
from pytest_kbrel.words import in_suite


def merge(
    folders: Sequence[Path],
    output: Path,
    *,
    root: Path,
    baseline: str = "",
    strict: bool = False,
) -> tuple[Run, Settings]:
    """Decide the run recorded in ``folders`` and write its reports to ``output``; return it and its settings.

    ``root`` is the folder in which the paths of the suites begin, ``baseline`` what to compare with, in place
    of the recorded baseline model. With ``strict``, inconclusive cases fail. Raises :class:`KbrelError` for
    shards that are not one run, suites that are not there, and cases of tests in Python.
    """
    # Looking for circular garbage takes a fifth of the time and finds little, in a process that does nothing
    # else.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    first, *others = (run for folder in folders for run in runs_in(folder))
    recorded = read_runs([first, *others])
    settings = with_specs(
        Settings(
            **recorded.settings_of_model(),
            baseline=baseline,
            baseline_model="" if baseline else recorded.base_spec,
            inconclusive="fail" if strict else "warn",
            output_path=output,
            from_run=first,
            joined=tuple(others),
            today=datetime.date.today(),
            run=os.urandom(8).hex(),
            here=Path.cwd(),
        )
    )
    suites = _suites(recorded, root, settings)
    results = SessionResults(
        suites=suites, notes=dict.fromkeys(changed_suites(settings, suites))
    )
    asker = CaseAsker(settings, root=root, store=RunStore(), suites=lambda: suites)
    try:
        compared = decide_suites(asker, recorded.cases, results, root)
        return _reported(asker, results, compared), settings
    finally:
        asker.close()


def _suites(recorded: RecordedRun, root: Path, settings: Settings) -> list[Suite]:
    from pytest_kbrel.suites import load_suite

    if others := sorted(case for case in recorded.cases if not in_suite(case)):
        raise KbrelError(
            f"{recorded.folder}: {others[0]} is the case of a test in Python, which only pytest can run; "
            "allowed: cases of suites, or pytest with --kb-from-run"
        )
    if not recorded.cases:
        raise KbrelError(
            f"{recorded.folder}: its report has no case; allowed: a run of at least one"
        )
    paths = sorted({case.partition("::")[0] for case in recorded.cases})
    return [
        load_suite(
            root / path,
            nodeid_path=path,
            limit=settings.limit,
            seed=settings.seed,
            judge=settings.judge,
            today=settings.today,
        )
        for path in paths
    ]


def decide_suites(
    asker: CaseAsker,
    wanted: Collection[str],
    results: SessionResults,
    root: Path,
) -> Baseline | None:
    """Decide these cases, by node id, and the aggregates over them; return what they are compared with."""
    settings, baseline = asker.settings, asker.baseline()
    suites = results.suites
    cases = {
        f"{suite.path}::{case.id}": case for suite in suites for case in suite.cases
    }
    if baseline is not None and baseline.paper:
        check_published(
            baseline, settings.baseline, [case.id for case in cases.values()]
        )
    over = {
        f"{suite.path}::{aggregate.id}"
        for suite in suites
        for aggregate in suite.aggregates
    }
    for nodeid in sorted(set(wanted) - over):
        results.expected[nodeid] = None
        if nodeid not in cases:
            results.failures[nodeid] = "the suite has no such case any more"
            continue
        try:
            results.add(nodeid, asker.ask_case(cases[nodeid]))
        except KbrelError as error:
            results.failures[nodeid] = str(error)
    results.add_news(asker.pool.news())
    baseline = baseline_of_session(results, settings.judge) or baseline
    results.lost |= lost_cases(settings, suites, baseline, root)
    for _, result in decide_aggregates(
        results, baseline=baseline, judge=settings.judge
    ):
        results.add(result.nodeid, result)
    return baseline


def _reported(
    asker: CaseAsker, results: SessionResults, compared: Baseline | None
) -> Run:
    from pytest_kbrel.gates import unsound_suites

    settings = asker.settings
    run = build_run(settings, results, compared)
    unrecorded = dump_responses(run.cases, asker.store, settings.output_path)
    problems = (
        *unsound_suites(results.cases.values()),
        *results.lost.values(),
        *unrecorded,
    )
    failed = any(
        case.verdict in settings.failing and not case.waived for case in run.cases
    )
    run = dataclasses.replace(
        run,
        problems=problems,
        complete=run.complete and not problems,
        exit_status=int(failed or bool(problems)),
    )
    return write_reports(run, settings.output_path, compared)
