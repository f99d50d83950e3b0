"""The answers of a served model, from run to run: who may go on with them, and what is forgotten."""

from __future__ import annotations

import contextlib
import time

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache import journal
from pytest_kbrel.models.cache.store import Store
from pytest_kbrel.store.database import Lock, is_held
from tests.models.cache.served_model import Served, answered, ask, rows, run_requests


@pytest.fixture
def store(tmp_path):
    with contextlib.closing(Store(tmp_path)) as made:
        yield made


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    # Else a lock that is held is tried for a second.
    monkeypatch.setattr(journal, "is_held", lambda path: is_held(path, 0.0))


def test_a_journal_answers_what_its_own_run_asked(store):
    kept = run_requests(store, "one", ask(1), ask(2))
    assert answered(store, kept, ask(1), ask(2), ask(3), ask(1, max_new_tokens=5)) == [
        0,
        1,
    ]
    again = journal.begin(store, "one", Served())
    assert again.digest == kept.digest
    assert answered(store, again, ask(1)) == [0]
    assert rows(store, "SELECT run, note FROM journals") == [("one", "")]


@pytest.mark.parametrize(
    ("seconds", "stays"), [(24 * 3600 - 60, True), (24 * 3600 + 60, False)]
)
def test_a_run_goes_on_within_a_day_of_its_last_answer(store, seconds, stays):
    kept = run_requests(store, "one", ask(1), ask(2))
    store.rows("UPDATE answers SET created = ?", int(time.time()) - 9 * 24 * 3600)
    store.rows(
        "UPDATE answers SET created = ? WHERE rowid = (SELECT max(rowid) FROM answers)",
        int(time.time()) - seconds,
    )
    assert (journal.begin(store, "two", Served()).digest == kept.digest) is stays
    assert rows(store, "SELECT count(*) FROM answers") == [(2 if stays else 0,)]


def test_a_journal_without_answers_is_not_taken_over(store):
    empty = run_requests(store, "one")
    assert journal.begin(store, "two", Served()).digest != empty.digest
    assert len(rows(store, "SELECT digest FROM journals")) == 1


@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        (Served(about="v1"), Served(about="v1"), ""),
        (
            Served(about="v1"),
            Served(about="v2"),
            "then the server said of the model 'v1', now 'v2'",
        ),
        (
            Served(about="v1"),
            Served(),
            "then the server said of the model 'v1', now 'nothing'",
        ),
        (
            Served(),
            Served(str.title),
            "asked again, the server said 'Question 1', and then 'QUESTION 1'",
        ),
        (Served(replies=("a",)), Served(replies=("a",)), ""),
        (
            Served(replies=("b", "a")),
            Served(replies=("d", "c")),
            "then the server said of itself 'a, b', now 'c, d'",
        ),
    ],
)
def test_what_tells_a_model_from_the_one_of_the_run_that_did_not_end(
    store, then, now, reason
):
    kept = run_requests(store, "one", ask(1), model=then)
    assert (journal.begin(store, "two", now).digest == kept.digest) is (not reason)
    ((run, note),) = rows(store, "SELECT run, note FROM journals")
    assert run == "two"
    if reason:
        assert note.startswith("1 answers of openai/judge from the run of 20")
        assert note.endswith(
            f" UTC, which did not end, are not used, and all is asked anew: {reason}"
        )
    assert rows(store, "SELECT count(*) FROM answers") == [(0 if reason else 1,)]


def test_of_two_runs_that_did_not_end_both_serve_and_what_one_lost_is_said(store):
    locks = [Lock(journal.lock_path(store.path.parent, run)) for run in ("one", "two")]
    for lock in locks:
        assert lock.take()
    run_requests(store, "one", ask(1))
    run_requests(store, "two", ask(2), model=Served(about="v2"))
    run_requests(store, "three", ask(3))
    for lock in locks:
        lock.free()
    taken = journal.begin(store, "four", Served())
    assert answered(store, taken, ask(1), ask(2), ask(3)) == [0, 2]
    notes = "\n".join(note for (note,) in rows(store, "SELECT note FROM journals"))
    assert notes.count("taken over") == 2
    assert (
        notes.count(
            "are not used, and all is asked anew: then the server said of the model 'v2'"
        )
        == 1
    )


def test_a_worker_that_waits_too_long_for_another_says_so(store, monkeypatch):
    monkeypatch.setattr(journal, "_PATIENCE", 0.0)
    lock = Lock(store.path.with_name("run-one.check"))
    assert lock.take()
    with pytest.raises(
        StoreError,
        match=r"run-one\.check: another worker did not find out in 0 seconds",
    ):
        journal.begin(store, "one", Served())
    lock.free()
    journal.begin(store, "one", Served())
