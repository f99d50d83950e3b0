"""What a run under way keeps: of whom, what is told of it, and what becomes of it at its end."""

from __future__ import annotations

import contextlib

import pytest

from pytest_kbrel.models.cache import journal
from pytest_kbrel.models.cache.session import CacheSession, JournalSummary, RunLock
from pytest_kbrel.models.cache.store import Lock, Store
from pytest_kbrel.records import Failed
from tests.models.cache.served_model import Served, ask, rows, run_requests


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(Store(tmp_path)) as made:
        yield made


def locks(folder):
    # SQLite has files of its own beside them.
    return {
        path.name for path in folder.glob("run-*") if path.suffix in (".lock", ".check")
    }


@pytest.mark.parametrize("ended", [True, False])
def test_a_run_forgets_when_it_ends_and_only_then(tmp_path, store, ended):
    run_lock = RunLock(tmp_path, "one")
    run_lock.acquire()
    run_requests(store, "one", ask(1))
    assert locks(tmp_path) == {"run-one.lock", "run-one.check"}
    run_lock.release(ended=ended)
    assert rows(store, "SELECT count(*) FROM answers") == [(0 if ended else 1,)]
    assert not list(tmp_path.glob("run-*"))


def test_the_files_of_runs_that_were_killed_are_taken_away(tmp_path, store):
    alive = Lock(journal.lock_path(store.path.parent, "alive"))
    assert alive.take()
    for name in ("dead", "alive"):
        for what in ("lock", "check"):
            journal.lock_path(store.path.parent, name, what).touch()
    RunLock(tmp_path, "own").acquire()
    assert locks(tmp_path) == {"run-alive.lock", "run-alive.check", "run-own.lock"}
    alive.free()


def test_nothing_is_locked_in_a_folder_that_was_not_announced(tmp_path):
    run_lock = RunLock(tmp_path / "new", "one")
    run_lock.acquire()
    assert not (tmp_path / "new").exists()
    run_lock.release(ended=True)
    assert run_lock.summary() == JournalSummary()
    run_lock.prepare()
    run_lock.acquire()
    assert (tmp_path / "new" / "run-one.lock").exists()
    run_lock.release(ended=False)


def test_where_nothing_can_be_kept_the_first_reason_is_told(tmp_path):
    (tmp_path / "file").touch()
    session = CacheSession(tmp_path / "file" / "x", "one")
    model = session.wrap(Served())
    first = session.trouble
    assert "kept answers cannot be read or written" in first
    assert model.generate([ask(1)])[0].text == "QUESTION 1"
    session.wrap(Served(name="other"))
    assert session.trouble == first
    none = CacheSession(None, "one")
    none.wrap(Served()).generate([ask(1)])
    assert (none.trouble, none.new_counts()) == ("", (1, 0))


def test_failures_are_not_kept_and_are_counted(tmp_path):
    session = CacheSession(tmp_path, "one")
    mute = Served(fails=lambda prompt: "no" if prompt == "question 1" else None)
    result = session.wrap(mute).generate([ask(1), ask(2)])
    assert isinstance(result[0], Failed)
    kept = RunLock(tmp_path, "one").summary()
    assert (kept.answers, kept.failed) == (1, 1)
    session.close()
