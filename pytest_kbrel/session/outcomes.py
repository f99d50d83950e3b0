"""A report with the outcomes of its facts, which stand in a file beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_kbrel.baselines.format import load_tables, read_compressed
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Json, Run
from pytest_kbrel.reports import OUTCOMES, REPORT
from pytest_kbrel.reports.json_report import check_file, read_report, run_of

_ALLOWED = "allowed: a report folder as a run wrote it"


def run_with_outcomes(report: Json, folder: Path) -> Run:
    """Return the run that a ``report`` in ``folder`` tells of, without tables where older versions left none.

    Raises ``KbrelError`` where one of them cannot be read, or they are not of one run.
    """
    run = run_of(report, folder)
    path = folder / OUTCOMES
    if not path.is_file():
        return run
    check_file(report, path)
    try:
        tables = load_tables(read_compressed(path, sum(case.n for case in run.cases)))
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OSError,
        EOFError,
    ) as error:
        raise KbrelError(
            f"{path}: cannot be read beside its report: {type(error).__name__}: {error}; {_ALLOWED}"
        ) from None
    cases = (
        replace(case, table=tables.get(case.nodeid, case.table)) for case in run.cases
    )
    return replace(run, cases=tuple(cases))


def recorded_run(path: Path) -> Run:
    """Read the run in a report folder, or of its ``report.json``, with the outcomes of all its facts.

    Raises ``KbrelError`` where it has none, or not those of its report.
    """
    folder = path.parent if path.is_file() else path
    run = run_with_outcomes(read_report(path), folder)
    if not (folder / OUTCOMES).is_file():
        raise KbrelError(
            f"{path}: there is no {OUTCOMES} beside its report, as older versions left it; {_ALLOWED}"
        )
    for case in run.cases:
        rows = len(case.table.rows)
        if not case.aggregate and case.verdict != "invalid" and rows != case.n:
            raise KbrelError(
                f"{folder}: {case.nodeid} has {case.n} facts in {REPORT} and {rows} in {OUTCOMES}; {_ALLOWED}"
            )
    return run
