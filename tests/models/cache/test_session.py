"""What a run under way keeps: of whom, what is told of it, and what becomes of it at its end."""

from __future__ import annotations

import contextlib

import pytest

from pytest_kbrel.models.cache import journal
from pytest_kbrel.models.cache.journal import RunLock
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.store.database import Lock


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(Store(tmp_path)) as made:
        yield made


def locks(folder):
    # SQLite has files of its own beside them.
    return {
        path.name for path in folder.glob("run-*") if path.suffix in (".lock", ".check")
    }


def test_the_files_of_runs_that_were_killed_are_taken_away(tmp_path, store):
    alive = Lock(journal.lock_path(store.path.parent, "alive"))
    assert alive.take()
    for name in ("dead", "alive"):
        for what in ("lock", "check"):
            journal.lock_path(store.path.parent, name, what).touch()
    RunLock(tmp_path, "own").acquire()
    assert locks(tmp_path) == {"run-alive.lock", "run-alive.check", "run-own.lock"}
    alive.free()
