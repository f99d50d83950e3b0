"""The store as several processes use it, damaged files, and its folder."""

from __future__ import annotations

import dataclasses
import hashlib
import multiprocessing
import sqlite3
from dataclasses import replace

import pytest

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.cache.store import FILE, Store, digest_of
from pytest_kbrel.models.cache.store import key_of as key_under
from pytest_kbrel.records import Generated, GenerateRequest, Scored, ScoreRequest
from tests.models.cache.stored import get, put

WHERE = GenerateRequest(prompt="Where?", max_new_tokens=4)


SAID = Generated(
    text="Kraków \ud800",
    token_ids=(3,),
    finish="stop",
    prompt_tokens=1,
    prompt_digest="d",
)


SCORE = ScoreRequest(prompt="Where?", continuation=" here")


# sha256 of [model, kind, [fields]] as JSON.
WHERE_KEY = "66232b236c7d312ab1786a55695048953a4f740a376fe7352799a6d927468185"


SCORE_KEY = "548261e6f8ce7a4049e01ab4710ed22848505edaffe28dce3077410449c6e657"


A, B = "a" * 64, "b" * 64


SCORED = Scored(
    probabilities=(0.25,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
)


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "deep" / "cache")
    yield made
    made.close()


def named(name):
    """Return a key made of a word."""
    return hashlib.sha256(str(name).encode()).hexdigest()


def key_of(model, request):
    return key_under(digest_of(model), request)


def _write(folder, worker):
    store = Store(folder)
    for n in range(50):
        put(store, [(named(f"{worker}-{n}"), SAID), (named(f"shared-{n}"), SAID)])
    store.close()


@pytest.mark.slow
def test_several_processes_open_and_write_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [
        context.Process(target=_write, args=(tmp_path / "c", w)) for w in range(4)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    store = Store(tmp_path / "c")
    keys = [named(f"{w}-{n}") for w in (0, 1, 2, 3, "shared") for n in range(50)]
    assert len(get(store, keys)) == 250
    store.close()


def _other_program(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()


def _newer(path):
    Store(path.parent).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _torn(path):
    store = Store(path.parent)
    put(store, ((named(n), SAID) for n in range(500)))
    store.close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(b"no database " * 100), "not a database"),
        (_other_program, "the database of another program"),
        (_newer, r"schema version 99, this pytest-kbrel knows 4; update pytest-kbrel"),
        (_torn, "malformed"),
        (lambda path: path.mkdir(), "unable to open"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_way_out(tmp_path, spoil, said):
    path = tmp_path / FILE
    spoil(path)
    with pytest.raises(StoreError, match=said) as caught:
        get(Store(tmp_path), [named(n) for n in range(500)])
    way_out = f"delete {path} (its answers are then asked for anew), or give another folder with --kb-use-cache"
    assert way_out in str(caught.value)


def _in_file(store, statement, *values):
    with sqlite3.connect(store.path) as connection:
        connection.execute(statement, values)
    connection.close()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store: _in_file(
            store, "UPDATE answers SET response = replace(response, '0.25', '0.75')"
        ),
        # A whole answer, but not that to this question.
        lambda store: _in_file(
            store, "UPDATE answers SET response = '{}', checksum = ?", _checksum("{}")
        ),
        lambda store: _in_file(
            store, "UPDATE answers SET response = CAST(x'ff' AS TEXT)"
        ),
    ],
)
def test_a_broken_answer_is_an_error_and_no_answer(store, spoil):
    put(store, [(A, SCORED)])
    spoil(store)
    with pytest.raises(StoreError, match=f"answers.sqlite: .*delete {store.path}"):
        get(store, [A, B])


def _checksum(text):
    return hashlib.blake2b(bytes.fromhex(A) + text.encode(), digest_size=8).digest()


def test_no_flipped_byte_is_ever_served(tmp_path):
    """Each byte of the file is turned once: the answer is the right one, an error, or not there."""
    store = Store(tmp_path)
    put(store, [(A, SCORED), (B, replace(SCORED, token_ids=(2,)))])
    store.close()
    path = tmp_path / FILE
    whole = path.read_bytes()
    served = errors = 0
    used = [at for at, byte in enumerate(whole) if byte]
    for at in used[:: max(1, len(used) // 250)]:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :])
        try:
            broken = Store(tmp_path, patience=0)
            try:
                result = get(broken, [A])
            finally:
                broken.close()
        except StoreError:
            errors += 1
        else:
            assert result in ({}, {A: SCORED})
            served += bool(result)
        for rest in tmp_path.glob(f"{FILE}-*"):
            rest.unlink()
    assert served > 10
    assert errors > 10


def test_a_store_that_somebody_holds_is_an_error_after_a_while(store):
    other = Store(store.path.parent, patience=0.2)
    holder = sqlite3.connect(store.path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(StoreError, match="database is locked"):
            put(other, [(A, SAID)])
    finally:
        holder.close()
    put(other, [(A, SAID)])
    other.close()


def test_a_key_is_the_same_in_every_version():
    # Else all that was kept would be asked anew.
    assert key_under(A, WHERE) == WHERE_KEY
    assert key_under(A, SCORE) == SCORE_KEY


def test_an_answer_without_top_tokens_is_not_stored_for_who_asks_for_them(store):
    asked = [dataclasses.replace(WHERE, top_k=k) for k in (0, 4, 5)]
    assert asked[0] == WHERE
    assert len({key_under(A, request) for request in asked}) == 3
    top = dataclasses.replace(SAID, top=(((3, -0.5), (1, -1.25)), ((2, 0.0),)))
    put(store, [(key_under(A, asked[0]), SAID), (key_under(A, asked[1]), top)])
    stored = get(store, [key_under(A, request) for request in asked])
    assert stored == {key_under(A, asked[0]): SAID, key_under(A, asked[1]): top}


def test_a_network_folder_is_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x {tmp_path}/shared nfs rw 0 0\n")
    monkeypatch.setattr("pytest_kbrel.store.database._MOUNTS", mounts)
    with pytest.raises(
        StoreError, match=r"is on a network folder \(nfs\).*--kb-use-cache"
    ):
        Store(tmp_path / "shared" / "cache")
    assert not (tmp_path / "shared").exists()
    Store(tmp_path / "own").close()
