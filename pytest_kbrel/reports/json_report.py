"""The report for programs, written and read: ``report.json``, whose keys ``docs/report-keys.md`` explains."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from pytest_kbrel import resources
from pytest_kbrel.catalogue.probes import PROBES
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.outputs import write_text
from pytest_kbrel.records import (
    CaseResult,
    GateResult,
    Json,
    MetricValue,
    Run,
)
from pytest_kbrel.reports import (
    REPORT,
    earlier_note,
    phrases,
    runs_beside,
    sha256_of,
)
from pytest_kbrel.reports.changes import Part
from pytest_kbrel.reports.formatting import ordered, verdict_counts
from pytest_kbrel.reports.view import View, named_apart
from pytest_kbrel.serialization import fields_of, from_wire, to_wire
from pytest_kbrel.untrusted import read_json

SCHEMA_VERSION = 1
# What a report does not say of a case.
_LEFT_OUT = ("requests", "table", "base", "moved")

# Escaped although JSON need not: terminals obey the first, the next mislead readers, UTF-8 lacks the last.
_UNPRINTABLE = re.compile(
    "[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def report_dict(run: Run) -> Json:
    """Return the report of ``run`` as JSON's own types.

    Raises ``ValueError`` where a number is NaN or infinite.
    """
    view = View(run)
    moved = view.changed
    report = {
        "schema_version": SCHEMA_VERSION,
        **fields_of(run),
        "baseline": run.baseline or None,
        "blessed": run.blessed or None,
        "recorded": run.recorded or None,
        "comparisons": _comparisons(run),
        "environment": dict(sorted(run.environment)),
        "settings": dict(sorted(run.settings)),
        "cases": [case_wire(case) for case in ordered(run)],
        "aggregates": {
            kind: dict(
                named_apart(
                    (value.name, case, value.value)
                    for case in view.aggregates
                    if case.probe == kind
                    for value in case.metrics
                )
            )
            for kind in (*PROBES, "pooled")
        },
        "summary": {
            "verdict": view.verdict,
            **verdict_counts(run),
            "waived": sum(phrases.is_waived(case, run) for case in run.cases),
            "facts_lost": len(moved.lost),
            "facts_gained": len(moved.gained),
            "by_bucket": _by_name(moved.buckets),
            "by_relation": _by_name(moved.relations),
            "worst_relations": [part.name for part in moved.worst],
            "headline": view.changes,
        },
        "problems": sorted(run.problems),
        "files": dict(sorted(run.files)),
    }
    if run.shard is not None:
        report["shard"] = {
            **fields_of(run.shard.shard),
            "commit": run.shard.commit,
            "suites": dict(run.shard.suites),
        }
    if run.compared is not None:
        facts, of_all = run.compared
        report["compared"] = {"facts": facts, "of": of_all}
    wired: Json = to_wire(report)
    return wired


def _comparisons(run: Run) -> Json:
    made = sum(gate.p is not None for case in run.cases for gate in case.gates)
    note = ""
    if made != run.comparisons:
        note = f"Šidák's p-values count {run.comparisons} comparisons, Holm's and Benjamini-Hochberg's {made}"
    return {"counted": run.comparisons, "made": made, "note": note}


def _by_name(records: Iterable[Part | MetricValue]) -> Json:
    named = {}
    for record in records:
        fields = fields_of(record)
        named[fields.pop("name")] = fields
    return named


def case_wire(case: CaseResult) -> Json:
    """Return what a report says of a case."""
    told = {key: of for key, of in fields_of(case).items() if key not in _LEFT_OUT}
    return told | {
        "id": case.nodeid,
        "label": case.label,
        "settings": dict(case.settings),
        "metrics": _by_name(case.metrics),
        "gates": [_gate(gate) for gate in case.gates],
    }


def _gate(gate: GateResult) -> Json:
    fields = fields_of(gate)
    del fields["reasons"]
    fields["reason"] = gate.reason
    if gate.facts_needed is not None:
        fields["facts_needed"] = gate.facts_needed
    return fields


def write_json(run: Run, path: Path) -> None:
    """Write the report of ``run`` to ``path``; a reader finds the old file or the whole new one."""
    text = json.dumps(report_dict(run), indent=1, ensure_ascii=False, allow_nan=False)
    escaped = _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    write_text(path, escaped + "\n", force=True)


def read_report(path: Path) -> Json:
    """Read a ``report.json`` of this or an older format; ``path`` may be the directory it is in."""
    folder = path.parent if path.name == REPORT or path.is_file() else path
    path = path if path.is_file() else folder / REPORT
    try:
        report = read_json(path)
    except FileNotFoundError:
        hint = "" if folder.is_dir() else nearest(folder.name, runs_beside(folder))
        raise KbrelError(
            f"{folder}: has no {REPORT}; allowed: the folder of a finished run, or its {REPORT}"
            f"{earlier_note(path)}{hint}"
        ) from None
    except OSError as error:
        raise KbrelError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise KbrelError(
            f"{path}: is not JSON: {error}; allowed: a run's {REPORT} or its folder"
        ) from None
    if not isinstance(report, dict):
        kind = type(report).__name__
        raise KbrelError(f"{path}: a report is a JSON object, found {kind}")
    version, why = report.get("schema_version"), ""
    missing = [key for key in schema()["required"] if key not in report]
    if type(version) is not int or version < 1:
        why = (
            f"is no report of pytest-kbrel: schema_version is {version!r}, needed is a "
            "number from 1"
        )
    elif version > SCHEMA_VERSION:
        why = (
            f"has schema_version {version}, this pytest-kbrel reads up to "
            f"{SCHEMA_VERSION}: upgrade"
        )
    elif missing:
        why = f"is no whole report: {', '.join(missing)} missing"
    if why:
        raise KbrelError(f"{path}: {why}")
    return report


def check_file(report: Json, path: Path) -> None:
    """Check that the file at ``path`` was written by the run of the ``report`` beside it.

    Raises :class:`KbrelError` where it is another run's, or was changed. Older reports do not say.
    """
    files = report.get("files")
    recorded = files.get(path.name) if isinstance(files, dict) else None
    if recorded is None:
        return
    try:
        digest = sha256_of(path)
    except OSError as error:
        raise KbrelError(f"{path}: cannot be read: {error.strerror}") from None
    if digest != recorded:
        raise KbrelError(
            f"{path}: is not the file that {path.with_name(REPORT)} was written with (sha256 "
            f"{digest[:12]}, not {str(recorded)[:12]}); allowed: a report folder as one run wrote it"
        )


def schema() -> Json:
    """Return the JSON Schema of ``report.json``."""
    loaded: Json = json.loads(resources.schema("report"))
    return loaded


def read_run(path: Path) -> Run:
    """Read a ``report.json``; ``path`` may be the directory it is in.

    Its cases have what the report says of them: their tables of outcomes are empty. Raises
    :class:`KbrelError` where the file is missing or is no report.
    """
    return run_of(read_report(path), path)


def run_of(report: Json, path: Path) -> Run:
    """Return the run that a ``report`` read at ``path`` tells of.

    Raises :class:`KbrelError` where a part of the report has not the form that it was written in.
    """
    try:
        return _read_run(report)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{path}: cannot be read as a report: {type(error).__name__}: {error}; allowed: a report as a "
            "run wrote it"
        ) from None


def _read_run(report: Json) -> Run:
    # What is not known is null in a report, and has a default in a run.
    given = {key: value for key, value in report.items() if value is not None}
    for key in ("environment", "settings", "files"):
        given[key] = _pairs(report.get(key, {}))
    given["cases"] = list(map(_read_case, report["cases"]))
    given["comparisons"] = report.get("comparisons", {}).get("counted", 0)
    if shard := given.get("shard"):
        given["shard"] = {**shard, "shard": shard, "suites": _pairs(shard["suites"])}
    if compared := given.get("compared"):
        given["compared"] = [compared["facts"], compared["of"]]
    return from_wire(Run, given)


def _pairs(data: Json) -> list[list[str]]:
    return [[name, str(value)] for name, value in data.items()]


def _read_case(data: Json) -> Json:
    # Earlier versions gave the cases of a shard a verdict of their own.
    verdict = "inconclusive" if data["verdict"] == "part" else data["verdict"]
    return {
        **data,
        # A report has the node id: the suite's path and the case's id.
        "id": str(data["id"]).removeprefix(f"{data['suite']}::"),
        "metrics": [
            {"name": name, **figure} for name, figure in data["metrics"].items()
        ],
        "settings": _pairs(data.get("settings", {})),
        "gates": list(map(_read_gate, data["gates"])),
        "verdict": verdict,
    }


def _read_gate(data: Json) -> Json:
    values = {"text": data["reason"], "needed": data.get("facts_needed")}
    told = [[name, value] for name, value in values.items() if value is not None]
    return {**data, "reasons": [{"kind": "told", "values": told}]}
