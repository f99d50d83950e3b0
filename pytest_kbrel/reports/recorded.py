"""A recorded ``report.json`` as the run that it was written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import (
    CaseResult,
    Correlation,
    Fingerprint,
    Run,
    ShardedRun,
    Table,
)
from pytest_kbrel.reports.json_report import read_report
from pytest_kbrel.serialization import from_wire


def read_run(path: Path) -> Run:
    """Read a ``report.json``; ``path`` may be the directory it is in.

    Its cases have what the report says of them: their tables of outcomes are empty. Raises
    :class:`KbrelError` where the file is missing or is no report.
    """
    return run_of(read_report(path), {}, path)


def run_of(report: dict[str, Any], tables: Mapping[str, Table], path: Path) -> Run:
    """Return the run that a ``report`` read at ``path`` tells of, its cases with the outcomes in ``tables``.

    ``tables`` are by node id. Raises :class:`KbrelError` where a part of the report has not the form that it
    was written in.
    """
    try:
        run = _run(report)
        cases = tuple(
            replace(case, table=tables.get(case.nodeid, case.table))
            for case in run.cases
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{path}: cannot be read as a report: {type(error).__name__}: {error}; allowed: a report as a "
            "run wrote it"
        ) from None
    return replace(run, cases=cases)


def _run(report: dict[str, Any]) -> Run:
    return Run(
        kbrel_version=str(report["kbrel_version"]),
        created=str(report["created"]),
        model=_model(report["model"]),
        environment=_pairs(report["environment"]),
        settings=_pairs(report["settings"]),
        cases=tuple(map(_case, report["cases"])),
        baseline=_text(report.get("baseline")),
        complete=bool(report["complete"]),
        problems=tuple(map(str, report["problems"])),
        exit_status=int(report["exit_status"]),
        helpers=from_wire(tuple[Fingerprint, ...], report.get("helpers", [])),
        correlations=from_wire(tuple[Correlation, ...], report["correlations"]),
        base=_model(report.get("base")),
        differences=tuple(map(str, report.get("differences", ()))),
        recorded=_text(report.get("recorded")),
        comparisons=int(report.get("comparisons", {}).get("counted", 0)),
        files=_pairs(report.get("files", {})),
        shard=_shard(report.get("shard")),
        blessed=_text(report.get("blessed")),
        compared=_compared(report.get("compared")),
    )


def _model(data: Any) -> Fingerprint | None:
    return None if data is None else from_wire(Fingerprint, data)


def _text(data: Any) -> str:
    return "" if data is None else from_wire(str, data)


def _pairs(data: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in data.items())


def _compared(data: Any) -> tuple[int, int] | None:
    return (
        None
        if data is None
        else (from_wire(int, data["facts"]), from_wire(int, data["of"]))
    )


def _shard(data: Any) -> ShardedRun | None:
    if data is None:
        return None
    parts = {key: data[key] for key in ("index", "count", "by")}
    suites = [list(pair) for pair in data["suites"].items()]
    return from_wire(
        ShardedRun, {"shard": parts, "suites": suites, "commit": data["commit"]}
    )


def _case(data: dict[str, Any]) -> CaseResult:
    metrics = [{"name": name, **figure} for name, figure in data["metrics"].items()]
    settings = [[name, value] for name, value in data.get("settings", {}).items()]
    # A report has the node id: the suite's path and the case's id.
    name = str(data["id"]).removeprefix(f"{data['suite']}::")
    # Earlier versions gave the cases of a shard a verdict of their own.
    verdict = "inconclusive" if data["verdict"] == "part" else data["verdict"]
    more = {"id": name, "metrics": metrics, "settings": settings, "verdict": verdict}
    return from_wire(CaseResult, {**data, **more})
