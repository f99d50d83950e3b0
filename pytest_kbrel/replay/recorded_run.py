"""Recorded run in place of models: its settings, and the fingerprints of its models."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.records import (
    Fingerprint,
    Shard,
    ShardedRun,
)
from pytest_kbrel.reports import REPORT, RESPONSES, earlier_note, runs_beside
from pytest_kbrel.reports.phrases import INTERRUPTED, STOPPED
from pytest_kbrel.serialization import from_wire

ALLOWED = f"the folder of a finished run, with {REPORT} and {RESPONSES}"
# Reports that are read once in a process, as many as a run may well have shards.
SHARDS_READ = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """Contents of a recorded run's report, without its figures.

    ``settings`` are pairs of name and value, ``base`` is the baseline model, ``cases`` the node ids of the
    cases, ``prompts`` the rendered prompt that the report shows of each, ``looks`` how many it took at those
    that might have stopped early. ``notes`` are remarks on its models.
    ``unended`` are the cases without a result, each with the reason. ``shard`` is its share of a run,
    ``stopped`` whether its session was stopped in or before one of its cases; ``parts`` are the shards that
    it is joined from.
    """

    folder: Path
    kbrel_version: str
    settings: tuple[tuple[str, str], ...]
    model: Fingerprint
    helpers: tuple[Fingerprint, ...]
    base: Fingerprint | None
    cases: frozenset[str]
    prompts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    looks: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unended: Mapping[str, str] = dataclasses.field(default_factory=dict)
    shard: ShardedRun | None = None
    stopped: bool = False
    parts: tuple[RecordedRun, ...] = ()

    @property
    def sources(self) -> tuple[RecordedRun, ...]:
        """The runs that were recorded: this one, or the shards it is joined from."""
        return self.parts or (self,)

    def setting(self, name: str) -> str:
        """Return a setting as text, empty where the report does not have it."""
        return dict(self.settings).get(name, "")

    def helper(self, spec: str) -> Fingerprint | None:
        """Return the fingerprint of the helper model that ``spec`` names, ``None`` where there was none."""
        return next((helper for helper in self.helpers if helper.spec == spec), None)


def read_run(folder: Path) -> RecordedRun:
    """Return the run recorded in ``folder``; its models get today's scoring version.

    Raises :class:`KbrelError` where the folder is no finished run's, or its responses are not whole.
    """
    try:
        stamp = (folder / REPORT).stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _read_run(folder, stamp)


@functools.lru_cache(maxsize=SHARDS_READ)
def _read_run(folder: Path, _: int) -> RecordedRun:
    from pytest_kbrel.reports.json_report import (
        check_file,
        read_report,
    )

    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "is not there"
        raise KbrelError(
            f"{folder}: {fault}; allowed: {ALLOWED}{nearest(folder.name, runs_beside(folder))}"
        )
    if not (folder / REPORT).is_file():
        raise KbrelError(
            f"{folder}: has no {REPORT}; allowed: {ALLOWED}{earlier_note(folder / REPORT)}"
        )
    report = read_report(folder)
    try:
        # Their responses are scored now.
        model, base = (
            None
            if wire is None
            else dataclasses.replace(
                from_wire(Fingerprint, wire), scoring_version=SCORING_VERSION
            )
            for wire in (report["model"], report.get("base"))
        )
        if model is None:
            raise KbrelError(
                f"{folder / REPORT}: no one model answered in this run; allowed: {ALLOWED}"
            )
        unended = {
            str(case["id"]): " ".join(case.get("errors", ()))
            for case in filter(_is_unended, report["cases"])
        }
        run = RecordedRun(
            folder=folder,
            kbrel_version=str(report["kbrel_version"]),
            settings=tuple(
                sorted(
                    (str(name), str(value))
                    for name, value in report["settings"].items()
                )
            ),
            model=model,
            base=base,
            helpers=tuple(
                from_wire(Fingerprint, helper) for helper in report.get("helpers", ())
            ),
            cases=frozenset(str(case["id"]) for case in report["cases"]),
            prompts={
                str(case["id"]): str(case.get("prompt", "")) for case in report["cases"]
            },
            looks={
                str(case["id"]): int(case["looks"]["taken"])
                for case in report["cases"]
                if case.get("looks")
            },
            notes=tuple(str(report["environment"].get("model_notes", "")).splitlines()),
            shard=_shard(report.get("shard")),
            unended=unended,
            stopped=any(case.get("verdict") == "not run" for case in report["cases"])
            or (
                bool(unended)
                and not {STOPPED, INTERRUPTED}.isdisjoint(report["problems"])
            ),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise KbrelError(
            f"{folder / REPORT}: is no whole report: {type(error).__name__}: {error}; allowed: {ALLOWED}"
        ) from None
    if not isinstance(files := report.get("files"), dict) or RESPONSES not in files:
        raise KbrelError(
            f"{folder / REPORT}: names no digest of {RESPONSES}, so that nothing shows that both are of "
            f"one run (an older version's report, or a changed one); allowed: {ALLOWED}, as this version "
            "records it"
        )
    check_file(report, folder / RESPONSES)
    return run


def _is_unended(case: Mapping[str, Any]) -> bool:
    """Return True if a case in a report was not run, or ended with an error in place of a result."""
    return case.get("verdict") == "not run" or (
        case.get("verdict") == "invalid" and not case.get("settings")
    )


def _shard(wire: Any) -> ShardedRun | None:
    """Return the shard that a report names; raises ``ValueError`` for one that is none."""
    if wire is None:
        return None
    shard = from_wire(Shard, {key: wire[key] for key in ("index", "count", "by")})
    if not 1 <= shard.index <= shard.count:
        raise ValueError(f"shard.index {shard.index} of {shard.count}")
    suites = tuple((str(path), str(digest)) for path, digest in wire["suites"].items())
    return ShardedRun(shard=shard, suites=suites, commit=str(wire["commit"]))
