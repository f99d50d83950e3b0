"""What the controller does with a run's journals: say that the run goes on, and forget them when it ends."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.location import make_folder, network_of
from pytest_kbrel.models.cache.locks import Lock
from pytest_kbrel.models.cache.store import FILE, Store
from pytest_kbrel.models.resume import journal
from pytest_kbrel.records import record

_RUN = "run-"
# Seconds that a run waits for who looks whether it is alive.
_PATIENCE = 5.0


@record
class Kept:
    """What the journals of a run hold.

    ``notes`` say where it went on; ``unused`` of the ``answers`` were taken over and not needed; so many
    requests ``failed``, which is to get no answer.
    """

    notes: tuple[str, ...] = ()
    answers: int = 0
    failed: int = 0
    unused: int = 0


class Underway:
    """A run against served models, whose answers are kept in ``folder`` until it ends.

    Where the store cannot be used, nothing happens: those who ask the models say so.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: Lock | None = None

    def announce(self) -> None:
        """Say to all processes of this run that a model will be asked: the folder is there from then on."""
        if not network_of(self._folder):
            with contextlib.suppress(OSError):
                make_folder(self._folder)

    def start(self) -> None:
        """Let others see that this run goes on, until it ends or dies; nothing before it is announced."""
        with contextlib.suppress(StoreError, OSError):
            if self._lock is not None or not self._folder.is_dir() or network_of(self._folder):
                return
            lock = Lock(self._folder / f"run-{self._run}.{journal.LOCKS[0]}")
            # Who sweeps may look at it just now, or have taken its file away.
            while lock.take(_PATIENCE) and not lock.path.exists():
                lock.free()
            self._lock = lock
            _sweep(self._folder, self._run)

    def kept(self) -> Kept:
        """Return what is in the journals of this run."""
        found = Kept()
        if not (self._folder / FILE).is_file():
            return found
        with contextlib.suppress(StoreError), contextlib.closing(Store(self._folder)) as store:
            rows: list[Any] = store.query(
                (
                    "SELECT note, failed, count(answers.key), ifnull(sum(NOT used AND checked), 0) "
                    "FROM journals LEFT JOIN models ON models.digest = journals.digest "
                    "LEFT JOIN answers ON answers.model = models.id "
                    "WHERE run = ? GROUP BY journals.digest ORDER BY started",
                    (self._run,),
                )
            )
            found = Kept(
                notes=tuple(note for note, _, _, _ in rows if note),
                answers=sum(answers for _, _, answers, _ in rows),
                failed=sum(failed for _, failed, _, _ in rows),
                unused=sum(unused for _, _, _, unused in rows),
            )
        return found

    def end(self, *, ended: bool) -> None:
        """Forget what a run used that has ``ended``; the answers of another stay for the next run."""
        if ended and (self._folder / FILE).is_file():
            with contextlib.suppress(StoreError), contextlib.closing(Store(self._folder)) as store:
                journal.end(store, self._run)
        if self._lock is not None:
            self._lock.free()
            _unlink(self._folder, self._run)
        self._lock = None


def _sweep(folder: Path, run: str) -> None:
    """Take away the files of runs that were killed: of all but ``run`` that no living process holds."""
    runs = {path.name.removeprefix(_RUN).partition(".")[0] for path in folder.glob(f"{_RUN}*")}
    for one in runs - {run}:
        lock = Lock(folder / f"{_RUN}{one}.{journal.LOCKS[0]}")
        if lock.take():
            # While it is held: whoever waits for it then sees that the file is gone.
            _unlink(folder, one)
            lock.free()
            _unlink(folder, one)


def _unlink(folder: Path, run: str) -> None:
    for path in folder.glob(f"{_RUN}{run}.*"):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
