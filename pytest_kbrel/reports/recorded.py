"""A recorded ``report.json`` as the run that it was written from."""

from __future__ import annotations

from pathlib import Path

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.records import Json, Run
from pytest_kbrel.reports.json_report import read_report
from pytest_kbrel.serialization import from_wire


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
        return _run(report)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{path}: cannot be read as a report: {type(error).__name__}: {error}; allowed: a report as a "
            "run wrote it"
        ) from None


def _run(report: Json) -> Run:
    # What is not known is null in a report, and has a default in a run.
    given = {key: value for key, value in report.items() if value is not None}
    for key in ("environment", "settings", "files"):
        given[key] = _pairs(report.get(key, {}))
    given["cases"] = list(map(_case, report["cases"]))
    given["comparisons"] = report.get("comparisons", {}).get("counted", 0)
    if shard := given.get("shard"):
        given["shard"] = {**shard, "shard": shard, "suites": _pairs(shard["suites"])}
    if compared := given.get("compared"):
        given["compared"] = [compared["facts"], compared["of"]]
    return from_wire(Run, given)


def _pairs(data: Json) -> list[list[str]]:
    return [[name, str(value)] for name, value in data.items()]


def _case(data: Json) -> Json:
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
        "gates": list(map(_gate, data["gates"])),
        "verdict": verdict,
    }


def _gate(data: Json) -> Json:
    values = {"text": data["reason"], "needed": data.get("facts_needed")}
    told = [[name, value] for name, value in values.items() if value is not None]
    return {**data, "reasons": [{"kind": "told", "values": told}]}
