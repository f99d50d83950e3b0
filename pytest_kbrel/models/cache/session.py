"""Response cache of one run: a session in each process, and the lock of the run."""

from __future__ import annotations

import contextlib
from pathlib import Path

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import Model, ServedModel
from pytest_kbrel.models.cache import journal
from pytest_kbrel.models.cache.caching_model import CachingModel
from pytest_kbrel.models.cache.measurements import store_rates
from pytest_kbrel.models.cache.store import FILE, Lock, Store, make_folder, network_of
from pytest_kbrel.records import record

# Seconds that a run waits for another one that looks whether it is alive.
_PATIENCE = 5.0


class CacheSession:
    """One process's use of the store in ``folder``; a run goes on without it if it fails.

    A ``folder`` of None stores nothing; ``run`` is the run's id. Responses of a served model are stored as
    long as the run is unfinished (see ``journal.py``), and without a ``run`` for all others. ``models`` are
    those wrapped so far, ``trouble`` is the first reason why responses are not stored, else empty.
    """

    def __init__(self, folder: Path | None, run: str = "") -> None:
        self._folder = folder
        self._run = run
        self.models: list[CachingModel] = []
        self.trouble = ""

    def wrap(self, model: Model) -> CachingModel:
        """Return the model with its responses stored, if they can be.

        Raises :class:`ModelError` if a server gives no answer to what tells its model from another.
        """
        store, own_journal = None, None
        if self._folder is not None and model.is_storable:
            with contextlib.ExitStack() as stack:
                try:
                    store = Store(self._folder)
                    stack.callback(store.close)
                    if self._run and not model.describe().weights_digest:
                        assert isinstance(model, ServedModel)
                        own_journal = journal.begin(store, self._run, model)
                    stack.pop_all()
                except StoreError as error:
                    self._note(error)
                    store = None
        wrapped = CachingModel(model, store, on_trouble=self._note, journal=own_journal)
        self.models.append(wrapped)
        return wrapped

    def new_counts(self) -> tuple[int, int]:
        """Return the numbers of requests and of those that the store answered since the last call."""
        requested = reused = 0
        for model in self.models:
            requested, reused = requested + model.requested, reused + model.reused
            model.requested = model.reused = 0
        return requested, reused

    def close(self) -> None:
        """Store the models' rates and close the store; the models belong to the caller."""
        for model in self.models:
            if self._folder is not None and model.store is not None:
                store_rates(self._folder, model.describe(), model.meter.rates())
            model.close_store()

    def _note(self, error: StoreError) -> None:
        self.trouble = self.trouble or str(error)


@record
class JournalSummary:
    """Contents of a run's journals.

    ``notes`` say where it went on; ``unused`` of the ``answers`` were taken over and not needed; ``failed``
    requests got no answer.
    """

    notes: tuple[str, ...] = ()
    answers: int = 0
    failed: int = 0
    unused: int = 0


class RunLock:
    """Lock in ``folder`` that a run against served models holds; its journals are deleted when it ends.

    If the store cannot be used, nothing happens: the processes that ask the models say so.
    """

    def __init__(self, folder: Path, run: str) -> None:
        self._folder = folder
        self._run = run
        self._lock: Lock | None = None

    def prepare(self) -> None:
        """Create the folder, which says to all processes of this run that a model will be asked."""
        if not network_of(self._folder):
            with contextlib.suppress(OSError):
                make_folder(self._folder)

    def acquire(self) -> None:
        """Take the lock, once :meth:`prepare` was called, and delete the lock files of killed runs."""
        with contextlib.suppress(StoreError, OSError):
            if (
                self._lock is not None
                or not self._folder.is_dir()
                or network_of(self._folder)
            ):
                return
            lock = Lock(journal.lock_path(self._folder, self._run))
            # A run that sweeps may look at it just now, or have deleted its file.
            while lock.take(_PATIENCE) and not lock.path.exists():
                lock.free()
            self._lock = lock
            _sweep(self._folder, self._run)

    def summary(self) -> JournalSummary:
        """Return what is in the journals of this run."""
        if (self._folder / FILE).is_file():
            with (
                contextlib.suppress(StoreError),
                contextlib.closing(Store(self._folder)) as store,
            ):
                rows = store.query(
                    "SELECT note, failed, count(answers.key), ifnull(sum(NOT used), 0) "
                    "FROM journals LEFT JOIN models ON models.digest = journals.digest "
                    "LEFT JOIN answers ON answers.model = models.id "
                    "WHERE run = ? GROUP BY journals.digest ORDER BY started",
                    self._run,
                )
                return JournalSummary(
                    notes=tuple(note for note, _, _, _ in rows if note),
                    answers=sum(answers for _, _, answers, _ in rows),
                    failed=sum(failed for _, failed, _, _ in rows),
                    unused=sum(unused for _, _, _, unused in rows),
                )
        return JournalSummary()

    def release(self, *, ended: bool) -> None:
        """Release the lock, and delete what a run that has ``ended`` used; else all stays for the next."""
        if ended and (self._folder / FILE).is_file():
            with (
                contextlib.suppress(StoreError),
                contextlib.closing(Store(self._folder)) as store,
            ):
                journal.end(store, self._run)
        if self._lock is not None:
            self._lock.free()
            _unlink(self._folder, self._run)
        self._lock = None


def _sweep(folder: Path, run: str) -> None:
    """Delete the files of all runs but ``run`` that no living process holds."""
    runs = {
        path.name.removeprefix(journal.RUN).partition(".")[0]
        for path in folder.glob(f"{journal.RUN}*")
    }
    for dead in runs - {run}:
        lock = Lock(journal.lock_path(folder, dead))
        if lock.take():
            # While it is held: a process that waits for it then sees that the file is gone.
            _unlink(folder, dead)
            lock.free()
            _unlink(folder, dead)


def _unlink(folder: Path, run: str) -> None:
    for path in folder.glob(f"{journal.RUN}{run}.*"):
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
