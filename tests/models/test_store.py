from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest

from pytest_kbrel.errors import ModelError, StoreError
from pytest_kbrel.models.openai import OpenAIModel
from pytest_kbrel.models.openai_spec import parse_openai
from pytest_kbrel.models.remembering import RememberingModel
from pytest_kbrel.models.scripted import ScriptedModel
from pytest_kbrel.models.store import FILE, Store, key_of
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Scored, ScoreRequest
from tests.openai_server import TOO_MANY, Fault

WHERE = GenerateRequest(prompt="Where?", max_new_tokens=4)
SAID = Generated(text="Kraków \ud800", token_ids=(3,), finish="stop", prompt_tokens=1, prompt_digest="d")
SCORE = ScoreRequest(prompt="Where?", continuation=" here")
SCORED = Scored(probabilities=(0.25,), token_ids=(1,), prompt_tokens=1, prompt_digest="d")


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "deep" / "cache")
    yield made
    made.close()


def ask(n: int) -> GenerateRequest:
    return GenerateRequest(prompt=f"question {n}", max_new_tokens=4)


def test_what_was_put_is_there_also_for_the_next(store):
    store.put([("a", SAID), ("b", SCORED)])
    other = Store(store.path.parent)
    assert other.get(["a", "b", "c"]) == {"a": SAID, "b": SCORED}
    other.close()


def test_a_reader_is_not_kept_waiting_by_a_writer(store):
    store.put([("a", SAID)])
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    try:
        assert store.get(["a"]) == {"a": SAID}
    finally:
        writer.close()


def test_the_first_answer_stays(store):
    store.put([("a", SAID)])
    store.put([("a", replace(SAID, text="other"))])
    assert store.get(["a"]) == {"a": SAID}


def test_many_keys_are_looked_up_in_pieces(store):
    store.put((str(n), SAID) for n in range(1200))
    assert len(store.get([str(n) for n in range(-100, 1200)])) == 1200


def test_a_key_is_made_of_who_answers_and_of_what_was_asked():
    one = ScriptedModel(name="one").describe()
    keys = [
        key_of(one, WHERE),
        key_of(one, SCORE),
        key_of(one, replace(WHERE, prompt="Who?")),
        key_of(one, replace(WHERE, stop=("x",))),
        key_of(one, replace(WHERE, max_new_tokens=5)),
        *(
            key_of(replace(one, **{name: value}), WHERE)
            for name, value in {
                "weights_digest": "w",
                "tokenizer_digest": "t",
                "dtype": "bfloat16",
                "backend": "hf",
                "derived": "int4",
                "chat_template": True,
                "adds_bos": True,
            }.items()
        ),
    ]
    assert len(set(keys)) == len(keys)
    moved = replace(one, spec="elsewhere", device="cuda:1", architecture="Other", backend_version="2")
    assert key_of(moved, WHERE) == key_of(one, WHERE)


def test_a_served_model_is_known_by_name_and_server():
    here = replace(
        ScriptedModel().describe(),
        backend="openai",
        weights_digest="",
        architecture="judge",
        device="http://a/v1",
    )
    assert key_of(here, WHERE) != key_of(replace(here, architecture="other"), WHERE)
    assert key_of(here, WHERE) != key_of(replace(here, device="http://b/v1"), WHERE)
    assert key_of(here, WHERE) == key_of(replace(here, backend_version="2", spec="x"), WHERE)


def test_a_second_run_asks_nothing(store):
    for asked in (2, 0):
        inner = ScriptedModel(answers=lambda prompt: f"said {prompt}", probability=lambda p, c: 0.5)
        model = RememberingModel(inner, store)
        first, second, again = model.generate([ask(1), ask(2), ask(1)])
        assert (first.text, second.text, again) == ("said question 1", "said question 2", first)
        assert model.score([SCORE])[0].probabilities == (0.5,)
        assert len([r for r in inner.requests if isinstance(r, GenerateRequest)]) == asked
        assert model.reused == (0 if asked else 4)


@pytest.mark.parametrize(
    "inner",
    [
        ScriptedModel(fails=lambda prompt: "out of order"),
        ScriptedModel(answers=lambda prompt: ""),
        ScriptedModel(answers=lambda prompt: " \n"),
    ],
)
def test_only_sound_answers_are_kept(store, inner):
    model = RememberingModel(inner, store)
    first = model.generate([WHERE])
    assert model.generate([WHERE]) == first
    assert len(inner.requests) == 2
    assert model.reused == 0


def test_a_probability_that_is_no_number_is_not_kept(store):
    inner = ScriptedModel(probability=lambda prompt, continuation: float("nan"))
    model = RememberingModel(inner, store)
    for _ in range(2):
        model.score([SCORE])
    assert len(inner.requests) == 2


def test_what_came_before_a_failure_is_kept(store, openai_server):
    spec = parse_openai("openai/judge", f"base_url={openai_server.base_url},max_concurrent=1,max_retries=0")
    openai_server.inject(Fault(), TOO_MANY, Fault(), Fault(status=401))
    model = RememberingModel(OpenAIModel(spec), store)
    with pytest.raises(ModelError):
        model.generate([ask(n) for n in range(6)])
    asked = len(openai_server.calls)
    found = model.generate([ask(n) for n in range(3)])
    assert not any(isinstance(answer, Failed) for answer in found)
    assert [call.text for call in openai_server.calls[asked:]] == ["question 1"]
    assert model.reused == 2
    model.model.close()


def test_an_answer_is_kept_the_moment_it_exists(store, openai_server):
    """The second question is under way when the answer to the first is looked for."""
    seen = []

    def say(text):
        if text == "question 1":
            for _ in range(100):
                seen[:] = Store(store.path.parent).get([key_of(model.describe(), ask(0))])
                if seen:
                    break
                time.sleep(0.02)
        return "said"

    openai_server.say = say
    spec = parse_openai("openai/judge", f"base_url={openai_server.base_url},max_concurrent=2")
    model = RememberingModel(OpenAIModel(spec), store)
    model.generate([ask(0), ask(1)])
    assert seen
    model.model.close()


def _write(folder, worker):
    store = Store(folder)
    for n in range(50):
        store.put([(f"{worker}-{n}", SAID), (f"shared-{n}", SAID)])
    store.close()


def test_several_processes_open_and_write_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(tmp_path / "c", w)) for w in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    store = Store(tmp_path / "c")
    keys = [f"{w}-{n}" for w in (0, 1, 2, 3, "shared") for n in range(50)]
    assert len(store.get(keys)) == 250
    store.close()


def test_a_killed_process_loses_nothing_that_it_had_put(tmp_path):
    code = """
        import sys, time
        from pathlib import Path
        from pytest_kbrel.models.store import Store
        from pytest_kbrel.records import Generated
        said = Generated(text="x", token_ids=(), finish="stop", prompt_tokens=1, prompt_digest="d")
        store = Store(Path(sys.argv[1]))
        for n in range(1000000):
            store.put([(str(n), said)])
            print(n, flush=True)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with process:
        for line in process.stdout:
            if int(line) >= 20:
                break
        os.kill(process.pid, signal.SIGKILL)
        written = [line, *process.stdout.readlines()]
    last = max(int(line) for line in written if line.endswith("\n"))
    store = Store(tmp_path)
    assert len(store.get([str(n) for n in range(last + 1)])) == last + 1
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
    store.put((str(n), SAID) for n in range(500))
    store.close()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.write_bytes(b"no database " * 100), "not a database"),
        (_other_program, "the database of another program"),
        (_newer, r"schema version 99, this pytest-kbrel knows 1; update pytest-kbrel"),
        (_torn, "malformed"),
        (lambda path: path.mkdir(), "unable to open"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_way_out(tmp_path, spoil, said):
    path = tmp_path / FILE
    spoil(path)
    with pytest.raises(StoreError, match=said) as caught:
        Store(tmp_path).get([str(n) for n in range(500)])
    way_out = (
        f"delete {path} (its answers are then asked for anew), or give another folder with --kb-use-cache"
    )
    assert way_out in str(caught.value)


def test_a_broken_answer_is_an_error_and_no_answer(store):
    with sqlite3.connect(store.path) as connection:
        connection.execute("INSERT INTO answers VALUES ('a', '{\"kind\": \"generated\"}', '')")
    connection.close()
    with pytest.raises(StoreError, match="the answer a is broken"):
        store.get(["a"])


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be read or written"):
        Store(tmp_path / "file" / "cache")
