"""A run becomes a baseline, and what the terminal says of that."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pytest_kbrel.records import Run, record
from pytest_kbrel.settings import Settings


@record
class Blessed:
    """Where a run was blessed, and the noise floor that the baseline before it had and this one has not.

    ``dropped`` is (answers that changed when asked again, of how many); ``None`` where nothing is lost.
    """

    folder: Path
    dropped: tuple[int, int] | None


def with_commit(run: Run, rootdir: Path) -> Run:
    """Return a run that says at which commit of the project it was made."""
    from pytest_kbrel.baselines import commit_of

    environment = {**dict(run.environment), "commit": commit_of(rootdir)}
    return replace(run, environment=tuple(sorted(environment.items())))


def bless(run: Run, name: str, settings: Settings, rootdir: Path) -> Blessed:
    """Write a run as the baseline ``name``; raises as ``baselines.write_baseline``."""
    from pytest_kbrel.baselines import baseline_directory, measured_floor, write_baseline

    folder = baseline_directory(name, rootdir)
    floor = measured_floor(folder)
    write_baseline(folder, run, settings.baseline_reason)
    return Blessed(folder=folder, dropped=None if settings.noise_floor else floor)


def blessed_lines(blessed: Blessed, run: Run, settings: Settings, here: Path) -> Iterator[str]:
    """Yield what the terminal says; ``here`` is where pytest was called."""
    yield f"blessed as {settings.baseline_update}: {os.path.relpath(blessed.folder, here)}"
    if blessed.dropped is not None:
        changed, of = blessed.dropped
        measured = f"the noise floor of the old baseline ({changed} of {of} answers)"
        yield f"{measured} is dropped: add --kb-noise-floor to measure it again"
    if settings.noise_floor:
        from pytest_kbrel.baselines import changed_labels

        found = [changed_labels(case) for case in run.cases]
        changed, of = (sum(counts) for counts in zip(*found, strict=True))
        yield f"noise floor: {changed} of {of} answers changed when asked again in other batches"
