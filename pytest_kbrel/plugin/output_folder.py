"""The folder of a run's reports: where the store of a run is while it runs, and previous reports."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.reports import PREVIOUS, REPORT, REPORT_FILES
from pytest_kbrel.store.database import Lock, network_of
from pytest_kbrel.store.run_store import ALIVE, FILE

PARTS = ".parts"
_WRITING = "writing.lock"
# Bytes at the beginning of a report that say what it is.
_HEAD = 4096
# Seconds to wait for another run that writes its reports into the same folder.
_PATIENCE = 60.0


def store_path(output: Path, run: str) -> Path:
    """Return the file of a run's store, in a folder of its own below the folder ``output`` of its reports.

    On a network file system, where processes cannot share a file, it is in the machine's own folder for
    temporary files.
    """
    if network_of(output):
        return Path(tempfile.gettempdir(), f"kbrel-{run}", FILE)
    return output / PARTS / run / FILE


class RunFolder:
    """The folder of one run's store, beside those of other runs that write their reports to the same folder."""

    def __init__(self, output: Path, run: str) -> None:
        self._all = output / PARTS
        self.store_path = store_path(output, run)

    def clear(self) -> None:
        """Remove the folders of killed runs, not those of active ones."""
        for path in list(self._all.glob("*/")):
            lock = Lock(path / ALIVE)
            with suppress(StoreError, OSError):
                if path != self.store_path.parent and lock.take():
                    shutil.rmtree(path, ignore_errors=True)
            lock.free()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock for writing reports: all files of a report must be of one run."""
        writing = Lock(self._all / _WRITING)
        with suppress(StoreError):
            if self._all.is_dir():
                writing.take(_PATIENCE)
        try:
            yield
        finally:
            writing.free()

    def end(self) -> None:
        """Remove the folder of this run."""
        shutil.rmtree(self.store_path.parent, ignore_errors=True)
        with suppress(OSError):
            if {path.name for path in self._all.iterdir()} <= {_WRITING}:
                (self._all / _WRITING).unlink(missing_ok=True)
                self._all.rmdir()


def move_aside(directory: Path) -> bool:
    """Move the reports in ``directory`` into its folder ``previous``, in place of those there.

    A report in ``directory`` is afterwards always one of a later run, even if that run is killed. Other
    report files without a report.json are those of a killed run and are removed. Returns True if a report was
    moved; raises ``UsageError`` where that is not possible, or files of these names are no report's.
    """
    previous = directory / PREVIOUS
    try:
        killed = bool(_report_files(previous)) or (directory / PARTS).is_dir()
        names = _report_files(directory, killed=killed)
        if REPORT not in names:
            for name in names:
                (directory / name).unlink(missing_ok=True)
            return False
        previous.mkdir(exist_ok=True)
        for name in REPORT_FILES:
            (previous / name).unlink(missing_ok=True)
        _move(names, directory, previous)
    except OSError as error:
        raise pytest.UsageError(
            f"--kb-output-path: the reports of an earlier run in {directory} cannot be moved to {previous}: "
            f"{error.strerror}; allowed: a folder where they can, or another one"
        ) from None
    return True


def _report_files(folder: Path, *, killed: bool = False) -> list[str]:
    """Return the names of the report's files in ``folder``; a ``killed`` run may have left no report.json."""
    names = [name for name in REPORT_FILES if os.path.lexists(folder / name)]
    if (folder / REPORT).is_file():
        with (folder / REPORT).open("rb") as stream:
            killed = b'"kbrel_version"' in stream.read(_HEAD)
    for name in names:
        if not killed or (folder / name).is_dir():
            raise pytest.UsageError(
                f"--kb-output-path: {folder / name} is no file of a report; allowed: a folder where that name "
                "is free"
            )
    return names


def move_back(directory: Path) -> None:
    """Undo :func:`move_aside`, since no case ran."""
    previous = directory / PREVIOUS
    # A report that cannot be moved back stays in ``previous``.
    with suppress(OSError):
        _move(
            [name for name in REPORT_FILES if (previous / name).is_file()],
            previous,
            directory,
        )
        previous.rmdir()


def _move(names: list[str], source: Path, target: Path) -> None:
    for name in names:
        (source / name).replace(target / name)
