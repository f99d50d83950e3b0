"""A report with the outcomes of its facts, which stand in a file beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_kbrel.baselines.format import load_tables, read_compressed
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Run
from pytest_kbrel.reports import OUTCOMES
from pytest_kbrel.reports.json_report import check_file
from pytest_kbrel.reports.recorded import run_of


def run_with_outcomes(report: dict[str, Any], folder: Path) -> Run:
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
            f"{path}: cannot be read beside its report: {type(error).__name__}: {error}; "
            "allowed: a report folder as a run wrote it"
        ) from None
    cases = (
        replace(case, table=tables.get(case.nodeid, case.table)) for case in run.cases
    )
    return replace(run, cases=tuple(cases))
