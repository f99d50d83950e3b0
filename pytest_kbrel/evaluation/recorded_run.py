"""Recorded run in place of models: its settings, and the fingerprints of its models."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.bounds import SHARDS
from pytest_kbrel.errors import KbrelError, nearest
from pytest_kbrel.models.base import Model
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
    ShardedRun,
)
from pytest_kbrel.reports import REPORT, RESPONSES, earlier_note, runs_beside
from pytest_kbrel.reports.phrases import INTERRUPTED, STOPPED
from pytest_kbrel.words import in_suite

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

    def prompt(self, source: int, case: str) -> str:
        """Return the prompt that the report of this source shows of a case, empty where it shows none."""
        return self.sources[source].prompts.get(case, "")

    def lacks(self, source: int, case: str, fact: str) -> str:
        """Return why a response about this fact is none of a source's; empty where it is one.

        A test in Python may ask whatever it likes.
        """
        if not in_suite(case):
            return ""
        run = self.sources[source]
        if case not in run.cases:
            return "the report does not have"
        shard = run.shard.shard if run.shard else None
        if shard and not shard.has(case if shard.by == "case" else fact):
            return f"another shard than {shard} asks"
        return ""

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
    from pytest_kbrel.reports.json_report import check_file, read_report
    from pytest_kbrel.reports.recorded import run_of

    if not folder.is_dir():
        fault = "is a file" if folder.exists() else "is not there"
        raise KbrelError(
            f"{folder}: {fault}; allowed: {ALLOWED}{nearest(folder.name, runs_beside(folder))}"
        )
    path = folder / REPORT
    if not path.is_file():
        raise KbrelError(
            f"{folder}: has no {REPORT}; allowed: {ALLOWED}{earlier_note(path)}"
        )
    report = read_report(folder)
    run = run_of(report, path)
    if run.model is None:
        raise KbrelError(
            f"{path}: no one model answered in this run; allowed: {ALLOWED}"
        )
    if RESPONSES not in dict(run.files):
        raise KbrelError(
            f"{path}: names no digest of {RESPONSES}, so that nothing shows that both are of one run (an "
            f"older version's report, or a changed one); allowed: {ALLOWED}, as this version records it"
        )
    check_file(report, folder / RESPONSES)
    if run.shard is not None:
        shard = run.shard.shard
        if shard.count not in SHARDS or not 1 <= shard.index <= shard.count:
            raise KbrelError(
                f"{path}: is shard {shard}; allowed: I/N with I from 1 to N, N {SHARDS}"
            )
    # Their responses are scored now.
    model, base = (
        None if of is None else dataclasses.replace(of, scoring_version=SCORING_VERSION)
        for of in (run.model, run.base)
    )
    assert model is not None
    unended = {
        case.nodeid: " ".join(case.errors)
        for case in run.cases
        if case.verdict == "not run"
        or (case.verdict == "invalid" and not case.settings)
    }
    stopped = unended and not {STOPPED, INTERRUPTED}.isdisjoint(run.problems)
    return RecordedRun(
        folder=folder,
        kbrel_version=run.kbrel_version,
        settings=run.settings,
        model=model,
        base=base,
        helpers=run.helpers,
        cases=frozenset(case.nodeid for case in run.cases),
        prompts={case.nodeid: case.prompt for case in run.cases},
        looks={case.nodeid: case.looks.taken for case in run.cases if case.looks},
        notes=tuple(dict(run.environment).get("model_notes", "").splitlines()),
        shard=run.shard,
        unended=unended,
        stopped=bool(stopped) or any(case.verdict == "not run" for case in run.cases),
    )


NOT_RECORDED = Failed(error="not recorded")


class RecordedModel(Model):
    """Model that a recorded run asked; its recorded responses are in the store of the run."""

    def __init__(self, fingerprint: Fingerprint, notes: tuple[str, ...] = ()) -> None:
        self._fingerprint = fingerprint
        self._notes = notes

    @property
    def notes(self) -> tuple[str, ...]:
        """The recorded remarks on the models."""
        return self._notes

    def describe(self) -> Fingerprint:
        """Return the recorded fingerprint."""
        return self._fingerprint

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return a failure for each request."""
        return [NOT_RECORDED] * len(requests)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return a failure for each request."""
        return [NOT_RECORDED] * len(requests)
