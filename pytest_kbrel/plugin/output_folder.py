"""Where the parts of a run's record wait until they are joined: a folder for each run, apart from others'."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.reports.files import PREVIOUS, REPORT, REPORT_FILES

if TYPE_CHECKING:
    from pytest_kbrel.models.cache.store import Lock

PARTS = ".parts"
_ALIVE = ".alive"
_WRITING = "writing.lock"
# Seconds after which parts that nobody ever locked are those of a dead run.
_OLD = 86400.0
# Seconds to wait for another run that writes its reports into the same folder.
_PATIENCE = 60.0


def spool_folder(output: Path, run: str) -> Path:
    """Return the folder of a run's parts, under the folder ``output`` of its reports."""
    return output / PARTS / run


class SpoolDirectory:
    """The parts of one run, and of others that use the same folder for their reports.

    Where no lock can be had (a network's file system), parts count as alive for a day.
    """

    def __init__(self, output: Path, run: str) -> None:
        self._all = output / PARTS
        self.folder = spool_folder(output, run)
        self._lock: Lock | None = None

    def clear(self) -> None:
        """Clear away what runs left that were killed; that of living ones stays."""
        if not self._all.is_dir():
            return
        for place in list(self._all.iterdir()):
            if place.is_dir() and place != self.folder:
                with contextlib.suppress(StoreError, OSError):
                    _clear(place)
            elif place.suffix == ".jsonl":
                # Of an older version, which kept no run apart.
                place.unlink(missing_ok=True)

    def start(self) -> None:
        """Let others see that this run goes on, until it ends or dies."""
        from pytest_kbrel.models.cache.store import Lock, network_of

        if self._lock is not None or network_of(self._all):
            return
        with contextlib.suppress(StoreError, OSError):
            self._all.mkdir(parents=True, exist_ok=True)
            lock = Lock(_alive(self.folder))
            if lock.take(1.0):
                self._lock = lock

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Write the reports while no other run writes there: a report must name its own parts."""
        if self._lock is None:
            yield
            return
        from pytest_kbrel.models.cache.store import Lock

        writing = Lock(self._all / _WRITING)
        with contextlib.suppress(StoreError):
            writing.take(_PATIENCE)
        try:
            yield
        finally:
            writing.free()

    def end(self) -> None:
        """Clear this run's parts away."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._lock is not None:
            self._lock.free()
        self._lock = None
        with contextlib.suppress(OSError):
            _alive(self.folder).unlink(missing_ok=True)
            if {place.name for place in self._all.iterdir()} <= {_WRITING}:
                (self._all / _WRITING).unlink(missing_ok=True)
                self._all.rmdir()


def _alive(folder: Path) -> Path:
    return folder.with_name(folder.name + _ALIVE)


def _clear(folder: Path) -> None:
    from pytest_kbrel.models.cache.store import is_held

    if not _alive(folder).exists():
        if time.time() - folder.stat().st_mtime < _OLD:
            return
    elif is_held(_alive(folder), patience=0.0):
        return
    shutil.rmtree(folder, ignore_errors=True)
    _alive(folder).unlink(missing_ok=True)


def move_aside(directory: Path) -> bool:
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


def move_back(directory: Path) -> None:
    """Undo :func:`move_aside`: it came to no run."""
    previous = directory / PREVIOUS
    # What cannot be moved back is not lost.
    with contextlib.suppress(OSError):
        _move([name for name in REPORT_FILES if (previous / name).is_file()], previous, directory)
        previous.rmdir()


def _move(names: list[str], source: Path, target: Path) -> None:
    for name in names:
        (source / name).replace(target / name)
