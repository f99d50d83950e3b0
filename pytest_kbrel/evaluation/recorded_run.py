"""Recorded runs in place of models: read, and shards joined where none is missing, doubled or damaged."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.bounds import FLAG_SEED, SHARDS, TOP_K, limit_value
from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.store import identity
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Pairs,
    ShardedRun,
    record,
)
from pytest_kbrel.reports import PREVIOUS, REPORT, RESPONSES
from pytest_kbrel.reports.phrases import INTERRUPTED, STOPPED
from pytest_kbrel.settings import RULES
from pytest_kbrel.words import budget_value, in_suite

ALLOWED = f"the folder of a finished run, with {REPORT} and {RESPONSES}"
# Reports that are read once in a process, as many as a run may well have shards.
SHARDS_READ = 256


@record
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
    settings: Pairs
    model: Fingerprint
    helpers: tuple[Fingerprint, ...]
    base: Fingerprint | None
    cases: frozenset[str]
    prompts: Mapping[str, str] = field(default_factory=dict)
    looks: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unended: Mapping[str, str] = field(default_factory=dict)
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

    @property
    def base_spec(self) -> str:
        """The baseline model as the user named it, ``""`` without one."""
        return self.setting("baseline_model") if self.base is not None else ""

    def settings_of_model(self) -> dict[str, Any]:
        """Return the recorded settings by their names in ``Settings``; those that hold of a model's answers.

        Raises :class:`KbrelError` where one of them is not allowed.
        """
        of = self.setting
        limit, seed = of("limit"), of("seed")
        try:
            return {
                "model": of("model") or self.model.spec,
                "model_args": of("model_args"),
                "device": of("device") or "auto",
                "dtype": of("dtype") or "auto",
                "batch_size": of("batch_size") or "auto",
                "apply_chat_template": of("apply_chat_template") == "true",
                "judge": of("judge") or RULES,
                "judge_args": of("judge_args"),
                "top_k": TOP_K.integer(of("top_k") or "0"),
                "limit": limit_value(limit) if limit else None,
                "seed": FLAG_SEED.integer(seed) if seed else None,
                "until_decided": budget_value(of("until_decided")),
            }
        except ValueError as error:
            raise KbrelError(f"{self.folder}: the recorded settings: {error}") from None

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
    from pytest_kbrel.reports.json_report import check_file, read_report, run_of

    report = read_report(folder)
    folder = folder.parent if folder.is_file() else folder
    path = folder / REPORT
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
    model = replace(run.model, scoring_version=SCORING_VERSION)
    base = run.base and replace(run.base, scoring_version=SCORING_VERSION)
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
    """Model that a recorded run asked, and that nobody asks now: its responses are in the store of the run."""

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


# Settings that all shards must share. Paths, devices and batch sizes are those of a machine.
_SHARED = ("limit", "seed", "judge", "top_k", "apply_chat_template")
_ALLOWED = (
    "allowed: a folder for each shard of one run, by the same files, model and settings"
)


def runs_in(folder: Path) -> tuple[Path, ...]:
    """Return the runs below a folder that is no run itself, such as one of downloaded shards; else itself."""
    folder = folder_of(folder)
    if is_run(folder) or not folder.is_dir():
        return (folder,)
    runs = sorted(
        path for path in folder.iterdir() if path.name != PREVIOUS and is_run(path)
    )
    return tuple(runs) or (folder,)


def folder_of(run: Path) -> Path:
    """Return the folder of a run that may be named by its report."""
    return run.parent if run.name == REPORT else run


def is_run(folder: Path) -> bool:
    """Return True if a folder has at least one of the two files of a recorded run."""
    return (folder / REPORT).is_file() or (folder / RESPONSES).is_file()


def read_runs(folders: Sequence[Path]) -> RecordedRun:
    """Return the run recorded in a folder, or that whose shards are recorded in several.

    Raises :class:`KbrelError` that names each shard that is missing, doubled, mismatched or damaged.
    """
    folders = [run for folder in folders for run in runs_in(folder)]
    runs, problems = [], []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except KbrelError as error:
            problems.append(str(error))
    if len(folders) == 1 and not problems and runs[0].shard is None:
        return runs[0]
    if len(folders) > 1 or not problems:
        problems += _problems(runs, damaged=bool(problems))
    if problems:
        raise KbrelError("\n".join(problems))
    runs.sort(key=lambda run: run.shard.shard.index if run.shard else 0)
    first = runs[0]
    return replace(
        first,
        shard=None,
        helpers=tuple(
            {helper.spec: helper for run in runs for helper in run.helpers}.values()
        ),
        notes=tuple(dict.fromkeys(note for run in runs for note in run.notes)),
        unended={
            case: f"{_name(run)}: {why}"
            for run in runs
            for case, why in run.unended.items()
        },
        parts=tuple(runs),
    )


def _problems(runs: Sequence[RecordedRun], *, damaged: bool) -> Iterator[str]:
    """Yield why these runs are not the shards of one run; ``damaged`` ones are not among them."""
    sharded = [(run, run.shard.shard) for run in runs if run.shard is not None]
    for run in runs:
        if run.shard is None:
            yield f"{_name(run)}: is no shard but a whole run; {_ALLOWED}"
    if not sharded:
        return
    (first, of), indices = sharded[0], dict[int, RecordedRun]()
    for run, shard in sharded:
        if (shard.count, shard.by) != (of.count, of.by):
            yield (
                f"{_name(run)}: is shard {shard} by {shard.by}, and {_name(first)} is shard {of} by {of.by}; "
                f"{_ALLOWED}"
            )
            continue
        other = indices.get(shard.index)
        indices.setdefault(shard.index, run)
        if other is not None and other.folder.resolve() == run.folder.resolve():
            yield f"{_name(run)}: is given twice; {_ALLOWED}"
            continue
        if other is not None:
            yield f"{_name(run)}: is shard {shard}, as {_name(other)} is; {_ALLOWED}"
        if run.stopped:
            yield f"{_name(run)}: shard {shard} stopped before all its cases were asked; run it again"
        if words := ", ".join(_differences(run, first)):
            yield f"{_name(run)}: shard {shard} differs from {_name(first)} in {words}; {_ALLOWED}"
    ends = [0, *sorted(indices), of.count + 1]
    missing = [
        str(first) if first == last else f"{first}-{last}"
        for first, last in ((a + 1, b - 1) for a, b in itertools.pairwise(ends))
        if first <= last
    ]
    if missing:
        among = ", unless it is among those above" if damaged else ""
        yield f"of {of.count} shards, missing: {', '.join(missing)}{among}; {_ALLOWED}"


def _differences(run: RecordedRun, first: RecordedRun) -> Iterator[str]:
    """Yield in what a shard is of another run than the first one."""
    assert run.shard is not None
    assert first.shard is not None
    suites, others = dict(run.shard.suites), dict(first.shard.suites)
    for path in sorted(suites.keys() | others.keys()):
        if suites.get(path) != others.get(path):
            yield f"suite {path} (its file or its facts)"
    # Of those that only one of them has.
    if any(map(in_suite, run.cases ^ first.cases)):
        yield "the cases that were selected"
    for name in _SHARED:
        if run.setting(name) != first.setting(name):
            yield f"--kb-{name.replace('_', '-')} ({run.setting(name)!r} and {first.setting(name)!r})"
    if (run.base is None) != (first.base is None):
        yield "the baseline model: only one of them has one"
    models, others_models = _models(run), _models(first)
    for name in models:
        now = identity(models[name])
        was = identity(others_models.get(name, models[name]))
        # Each machine may have a server of its own.
        keys = [
            key
            for key in {**now, **was}
            if key != "server" and now.get(key) != was.get(key)
        ]
        if keys:
            yield f"the {name} ({', '.join(keys)})"
    if run.shard.commit != first.shard.commit:
        yield f"the commit ({run.shard.commit or 'none'} and {first.shard.commit or 'none'})"
    if run.kbrel_version != first.kbrel_version:
        yield f"the version of pytest-kbrel ({run.kbrel_version} and {first.kbrel_version})"


def _models(run: RecordedRun) -> dict[str, Fingerprint]:
    base = {} if run.base is None else {"baseline model": run.base}
    return {"model": run.model, **base, **{of.spec: of for of in run.helpers}}


def _name(run: RecordedRun) -> str:
    return os.path.relpath(run.folder)


def names_of(folders: Iterable[Path], start: Path | None = None) -> str:
    """Return the names of the folders of a run, seen from ``start``, for people."""
    return ", ".join(os.path.relpath(folder, start or Path.cwd()) for folder in folders)
