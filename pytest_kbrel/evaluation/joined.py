"""Joining the recorded runs of all shards into one, where none is missing, doubled, mismatched or damaged."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.recorded_run import RecordedRun, read_run
from pytest_kbrel.models.cache.store import identity
from pytest_kbrel.records import Fingerprint
from pytest_kbrel.reports import PREVIOUS, REPORT, RESPONSES

# Settings that all shards must share. Paths, devices and batch sizes are those of a machine.
_SHARED = ("limit", "seed", "judge", "top_k", "apply_chat_template")
_ALLOWED = (
    "allowed: a folder for each shard of one run, by the same files, model and settings"
)
_SUITE = ".kb.yaml::"


def runs_in(folder: Path) -> tuple[Path, ...]:
    """Return the runs below a folder that is no run itself, such as one of downloaded shards; else itself."""
    if is_run(folder) or not folder.is_dir():
        return (folder,)
    runs = sorted(
        path for path in folder.iterdir() if path.name != PREVIOUS and is_run(path)
    )
    return tuple(runs) or (folder,)


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
    return dataclasses.replace(
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
    if _suite_cases(run) != _suite_cases(first):
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


def _suite_cases(run: RecordedRun) -> set[str]:
    return {case for case in run.cases if _SUITE in case}


def _name(run: RecordedRun) -> str:
    return os.path.relpath(run.folder)


def names_of(folders: Iterable[Path], start: Path | None = None) -> str:
    """Return the names of the folders of a run, seen from ``start``, for people."""
    return ", ".join(os.path.relpath(folder, start or Path.cwd()) for folder in folders)
