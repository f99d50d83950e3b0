"""Recorded runs read with their outcomes, as ``kbrel compare`` pairs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any

from pytest_kbrel.baselines import Baseline, BaselineCase, case_key, read_baseline
from pytest_kbrel.baselines.outcomes_file import read_packed, tables_of
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import BaselineError, KbrelError
from pytest_kbrel.records import (
    AggregateCase,
    CaseKind,
    CaseResult,
    Fingerprint,
    Gate,
    GateResult,
    Table,
    Unmatched,
    Waiver,
    is_published,
    record,
)
from pytest_kbrel.reports.atomic_files import OUTCOMES, REPORT
from pytest_kbrel.reports.json_report import check_file, read_report
from pytest_kbrel.serialization import from_wire


@record
class Side:
    """One run with its outcomes: as a baseline (``run``), and its cases with their gates.

    ``aggregates`` are empty where nothing says which cases they are over, and gates where none were kept: a
    blessed run has neither.
    """

    run: Baseline
    cases: tuple[CaseResult, ...]
    aggregates: tuple[AggregateCase, ...] = ()


def read_side(source: str, rootdir: Path) -> Side | str:
    """Read a report folder or a blessed run with its outcomes, or say why it has none to pair.

    Raises ``KbrelError`` where the outcomes are broken or not those of the report beside them.
    """
    if is_published(source):
        return "a paper's figures have no facts behind them"
    path = Path(source).expanduser()
    if path.is_file() or (path / REPORT).is_file():
        folder = path if path.is_dir() else path.parent
        if not (folder / OUTCOMES).is_file():
            return f"there is no {OUTCOMES} beside its report, as older versions left it"
        report = read_report(path)
        check_file(report, folder / OUTCOMES)
        return _of_report(report, folder)
    try:
        return _of_baseline(read_baseline(source, rootdir))
    except BaselineError as error:
        return str(error)


def gate_of(result: GateResult) -> Gate:
    """Return the demand that a gate's result judged."""
    return Gate(metric=result.metric, rule=result.rule, bound=result.bound, line=result.line)


def waivers_of(case: CaseResult) -> tuple[Waiver, ...]:
    """Return the waivers that a recorded case stands under, as they were when it was run."""
    return case.expired or (() if case.waiver is None else (case.waiver,))


def _of_report(report: dict[str, Any], folder: Path) -> Side:
    try:
        facts = sum(int(entry["n"]) for entry in report["cases"])
        tables = tables_of(read_packed(folder / OUTCOMES, facts))
        cases = [_case(entry, tables) for entry in report["cases"]]
        model = report["model"]
        run = Baseline(
            path=folder,
            kbrel_version=str(report["kbrel_version"]),
            created=str(report["created"]),
            reason="",
            commit="",
            versions=tuple(sorted((str(key), str(value)) for key, value in report["environment"].items())),
            model=None if model is None else from_wire(Fingerprint, model),
            settings=tuple(sorted((str(key), str(value)) for key, value in report["settings"].items())),
            cases={
                case_key(case.suite, case.id): BaselineCase(
                    key=case_key(case.suite, case.id), table=case.table, metrics=(), settings=case.settings
                )
                for case in cases
                if not case.aggregate and case.verdict != "invalid" and case.table.rows
            },
            helpers=tuple(from_wire(Fingerprint, helper) for helper in report.get("helpers", ())),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OSError, EOFError) as error:
        raise KbrelError(
            f"{folder}: report and {OUTCOMES} cannot be read together: {type(error).__name__}: {error}; "
            "allowed: a report folder as a run wrote it"
        ) from None
    aggregates = tuple(
        AggregateCase(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            members=case.members,
            gates=tuple(map(gate_of, case.gates)),
            waivers=waivers_of(case),
        )
        for case in cases
        if case.aggregate and case.members
    )
    return Side(run=run, cases=tuple(case for case in cases if not case.aggregate), aggregates=aggregates)


def _case(entry: dict[str, Any], tables: Mapping[str, Table]) -> CaseResult:
    table = tables.get(entry["id"], Table(columns=(), rows=()))
    if not entry["aggregate"] and entry["verdict"] != "invalid" and len(table.rows) != entry["n"]:
        raise ValueError(f"{entry['id']} has {entry['n']} facts in one and {len(table.rows)} in the other")
    suite, _, case_id = str(entry["id"]).rpartition("::")
    return CaseResult(
        id=case_id,
        suite=suite,
        probe=entry["probe"],
        slice=str(entry["slice"]),
        verdict=entry["verdict"],
        n=int(entry["n"]),
        duration=0.0,
        metrics=(),
        gates=tuple(from_wire(GateResult, gate) for gate in entry["gates"]),
        errors=tuple(map(str, entry["errors"])),
        aggregate=bool(entry["aggregate"]),
        table=table,
        settings=tuple(sorted((str(k), str(v)) for k, v in entry.get("settings", {}).items())),
        unmatched=from_wire(Unmatched, entry.get("unmatched") or {}),
        waiver=None if entry.get("waiver") is None else from_wire(Waiver, entry["waiver"]),
        expired=tuple(from_wire(Waiver, waiver) for waiver in entry.get("expired", ())),
        members=tuple(map(str, entry.get("members", ()))),
    )


def _of_baseline(run: Baseline) -> Side:
    cases = []
    for key, case in run.cases.items():
        if not isinstance(case, BaselineCase):
            continue
        suite, _, case_id = key.partition("::")
        name, _, rest = case_id.partition("[")
        probe: CaseKind = next(probe for probe in PROBES if probe == name)
        cases.append(
            CaseResult(
                id=case_id,
                suite=PurePath(suite).name,
                probe=probe,
                slice=rest.removesuffix("]"),
                verdict="pass",
                n=len(case.table.rows),
                duration=0.0,
                metrics=(),
                gates=(),
                table=case.table,
                settings=case.settings,
            )
        )
    return Side(run=run, cases=tuple(cases))
