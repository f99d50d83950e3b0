"""The reports of the run before: set aside as soon as another one begins in their folder."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from pytest_kbrel.reports.atomic_files import PREVIOUS, REPORT, REPORT_FILES


def set_aside(directory: Path) -> bool:
    """Move the reports in ``directory`` into its folder ``previous``, in place of those there.

    Whoever finds a report in ``directory`` afterwards has one of a later run, also where that run is killed.
    Parts that lie there without a report.json are those of a killed run, and go. Returns whether a report was
    moved; raises ``UsageError`` where that is not possible.
    """
    previous = directory / PREVIOUS
    found = [name for name in REPORT_FILES if (directory / name).is_file()]
    try:
        if REPORT not in found:
            for name in found:
                (directory / name).unlink(missing_ok=True)
            return False
        previous.mkdir(exist_ok=True)
        for name in REPORT_FILES:
            (previous / name).unlink(missing_ok=True)
        _move(found, directory, previous)
    except OSError as error:
        raise pytest.UsageError(
            f"--kb-output-path: the reports of an earlier run in {directory} cannot be moved to {previous}: "
            f"{error.strerror}; allowed: a folder where they can, or another one"
        ) from None
    return True


def bring_back(directory: Path) -> None:
    """Undo :func:`set_aside`: it came to no run."""
    previous = directory / PREVIOUS
    # What cannot be moved back is not lost.
    with contextlib.suppress(OSError):
        _move([name for name in REPORT_FILES if (previous / name).is_file()], previous, directory)
        previous.rmdir()


def _move(names: list[str], source: Path, target: Path) -> None:
    for name in names:
        (source / name).replace(target / name)
