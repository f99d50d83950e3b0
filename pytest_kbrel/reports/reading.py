"""A run as its report folder holds it: ``report.json`` with the outcomes of its facts."""

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
    JudgeError,
    Run,
    Shard,
    ShardedRun,
    Table,
)
from pytest_kbrel.reports import REPORT
from pytest_kbrel.reports.json_report import read_judge_error
from pytest_kbrel.serialization import from_wire


def run_of(report: dict[str, Any], tables: Mapping[str, Table], folder: Path) -> Run:
    """Return the run that a ``report`` from ``folder`` tells of, its cases with the outcomes in ``tables``.

    Raises ``KbrelError`` where a part of the report has not the form that it was written in.
    """
    try:
        return _run_of(report, tables)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{folder / REPORT}: has another form than it was written in: {type(error).__name__}: {error}; "
            "allowed: a report as a run wrote it"
        ) from None


def _run_of(report: dict[str, Any], tables: Mapping[str, Table]) -> Run:
    judge_error = read_judge_error(report)
    return Run(
        kbrel_version=str(report["kbrel_version"]),
        created=str(report["created"]),
        model=_model(report["model"]),
        environment=_texts(report["environment"]),
        settings=_texts(report["settings"]),
        cases=tuple(_case(case, tables, judge_error) for case in report["cases"]),
        baseline=str(report["baseline"] or ""),
        complete=bool(report["complete"]),
        problems=tuple(map(str, report["problems"])),
        exit_status=int(report["exit_status"]),
        helpers=tuple(from_wire(Fingerprint, one) for one in report.get("helpers", ())),
        correlations=tuple(from_wire(Correlation, one) for one in report["correlations"]),
        base=_model(report.get("base")),
        differences=tuple(map(str, report.get("differences", ()))),
        recorded=str(report.get("recorded") or ""),
        comparisons=int(report.get("comparisons", {}).get("counted", 0)),
        files=_texts(report.get("files", {})),
        shard=_shard(report.get("shard")),
    )


def _model(wire: Any) -> Fingerprint | None:
    return None if wire is None else from_wire(Fingerprint, wire)


def _texts(wire: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in wire.items())


def _case(wire: dict[str, Any], tables: Mapping[str, Table], judge_error: JudgeError | None) -> CaseResult:
    nodeid = str(wire["id"])
    fields = {
        **wire,
        "id": nodeid.removeprefix(f"{wire['suite']}::"),
        "settings": [[name, value] for name, value in wire["settings"].items()],
        "metrics": [{"name": name, **value} for name, value in wire["metrics"].items()],
    }
    case = from_wire(CaseResult, {"duration": 0.0, **fields, "judge_error": None})
    return replace(case, table=tables.get(nodeid, case.table), judge_error=judge_error)


def _shard(wire: Any) -> ShardedRun | None:
    if wire is None:
        return None
    return ShardedRun(
        shard=from_wire(Shard, {key: wire[key] for key in ("index", "count", "by")}),
        suites=_texts(wire["suites"]),
        commit=str(wire["commit"]),
    )
