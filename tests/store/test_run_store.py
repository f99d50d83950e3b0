"""The store of a run: what is found again, what is dumped, and what a recorded run has to answer."""

import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError, StoreError
from pytest_kbrel.records import (
    Ask,
    Exchange,
    Failed,
    Generated,
    GenerateRequest,
)
from pytest_kbrel.store.lines import to_line
from pytest_kbrel.store.run_store import RunStore
from tests.reported import read_responses
from tests.store.test_lines import ASKED, exchange

WHAT, WHICH = (
    GenerateRequest(prompt=prompt, max_new_tokens=4) for prompt in ("What?", "Which?")
)


def said(case, text, *, to="", fact="f", request=WHAT):
    """Return an exchange in which a model said this, or failed where it said nothing."""
    response = Failed(error="first") if not text else Generated(
        text=text, token_ids=(1,), finish="stop", prompt_tokens=3, prompt_digest="d"
    )  # fmt: skip
    ask = Ask(fact_id=fact, role="answer", to=to, request=request)
    return Exchange(case=case, ask=ask, response=response)


def texts(responses):
    return [
        getattr(one, "text", None) or getattr(one, "error", None) for one in responses
    ]


def dumped(store, path, order=()):
    counts = store.dump(path, order)
    return list(read_responses(path)), counts


def loaded(folder, *exchanges, spoil=lambda text: text):
    path = folder / "responses.jsonl"
    path.write_bytes(spoil(b"".join(map(to_line, exchanges))))
    store = RunStore(folder / "run.sqlite")
    store.load(
        [path], lambda source, case, fact: "is not there" if case == "no" else ""
    )
    return store


def test_cases_are_dumped_in_their_order_and_each_as_it_was_asked(tmp_path):
    store, other = (RunStore(tmp_path / "parts" / "run.sqlite") for _ in range(2))
    made = [exchange("ab"[at % 2], f"f{at}") for at in range(6)]
    store.add(made[:4])
    # What another process stores behind it comes behind it.
    other.add([*made[4:], exchange("z", "f"), exchange("y", "f")])
    actual, counts = dumped(store, tmp_path / "out.jsonl", ["b", "a"])
    assert [(one.case, one.ask.fact_id) for one in actual] == [
        *(("b", f"f{at}") for at in (1, 3, 5)),
        *(("a", f"f{at}") for at in (0, 2, 4)),
        ("y", "f"),
        ("z", "f"),
    ]
    assert counts == {"a": 3, "b": 3, "y": 1, "z": 1}


def test_places_go_before_the_time_of_asking(tmp_path):
    store = RunStore()
    for place in "cab":
        store.add([exchange("a", place)], place)
    actual, _ = dumped(store, tmp_path / "out.jsonl")
    assert [one.ask.fact_id for one in actual] == ["a", "b", "c"]


def test_what_was_asked_again_is_kept_once_with_its_last_answer(tmp_path):
    again = [exchange("a", "f0", probability=0.1), exchange("a", "f1")]
    store = RunStore()
    store.add([*again, exchange("a", "f0", probability=0.9)])
    actual, counts = dumped(store, tmp_path / "out.jsonl")
    assert [one.response.probabilities for one in actual] == [(0.9,), (0.5,)]
    assert counts == {"a": 3}


def test_what_a_baseline_model_was_asked_is_dumped_and_not_counted(tmp_path):
    store = RunStore()
    base = replace(ASKED, ask=replace(ASKED.ask, to="baseline"))
    judged = replace(ASKED, ask=replace(ASKED.ask, to="openai/judge"))
    store.add([ASKED, base, judged, replace(base, case="c")])
    actual, counts = dumped(store, tmp_path / "o.jsonl")
    assert (len(actual), counts) == (4, {"a": 2, "c": 0})


def test_an_answer_of_this_run_is_found_by_every_process_and_a_failure_is_not(tmp_path):
    store, other = (RunStore(tmp_path / "run.sqlite") for _ in range(2))
    store.add(
        [said("a", "x"), said("a", "", request=WHICH), said("a", "j", to="judge")]
    )
    assert texts(other.find("bb", "", [WHAT, WHICH])) == ["x", None]
    assert texts(other.find("bb", "judge", [WHAT, WHICH])) == ["j", None]


def test_a_recorded_case_is_told_what_it_was_told_and_others_what_anybody_was(tmp_path):
    store = loaded(tmp_path, said("a", ""), said("b", "from b"), said("c", ""))
    # Of others' responses a usable one goes before a failure, wherever it stands.
    found = [
        texts(store.find([case] * 2, "", [WHAT, WHICH])) for case in ("a", "b", "new")
    ]
    assert found == [["first", None], ["from b", None], ["from b", None]]


@pytest.mark.parametrize("asking", ["a", "new"])
def test_of_several_responses_the_last_usable_one_counts_else_the_first_failure(
    asking, tmp_path
):
    again = replace(said("a", ""), response=Failed(error="last"))
    which = [
        replace(one, ask=said("a", "", request=WHICH).ask)
        for one in (said("a", ""), again)
    ]
    made = [said("a", ""), said("a", "one"), said("a", "last"), again, *which]
    store = loaded(tmp_path, *made)
    assert texts(store.find([asking] * 2, "", [WHAT, WHICH])) == ["last", "first"]


def test_a_recorded_run_is_loaded_once_and_dumped_as_far_as_it_was_asked_again(
    tmp_path,
):
    one, two = said("a", "x"), said("a", "y", request=WHICH)
    store = loaded(tmp_path, two, one, said("b", "z"))
    other = loaded(tmp_path, said("a", "changed"))
    assert texts(other.find("a", "", [WHAT])) == ["x"]
    other.add([one, two])
    actual, counts = dumped(store, tmp_path / "out.jsonl")
    assert (actual, counts) == ([one, two], {"a": 2})
    assert store.recorded("b", "answer") == {"f": WHAT}
    assert store.recorded("nowhere", "answer") == store.recorded("a", "judge") == {}
    assert store.source_of("a", "", WHAT) == store.source_of("a", "x", WHAT) == 0


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda text: text.replace(b'"text"', b'"tixt"'), ":1: is no recorded response: Generated"),
        (lambda text: text.replace(b'"generate"', b'"sing"'), ":1: is no .*: 'request' must be an object whose"),
        (lambda text: b"{" + text, ":1: is no recorded response: Expecting property name"),
        (lambda text: text + b"[1]\n", ":2: is no recorded response: .* found list"),
        (lambda text: text.replace(b'"a"', b'"no"'), ":1: is a response of fact f of no, which is not there"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(tmp_path, spoil, words):
    with pytest.raises(ResponseError, match=f"responses.jsonl{words}"):
        loaded(tmp_path, said("a", "x"), spoil=spoil).find("a", "", [WHAT])


DIES = """
import os, sys
from pathlib import Path
from pytest_kbrel.store.run_store import RunStore
from tests.store.test_run_store import said

store = RunStore(Path(sys.argv[1]))
store.add([said("a", "whole", fact="g")])
with store.writing() as file:
    file.execute("UPDATE exchanges SET line = x'00'")
    os._exit(9)
"""


def test_a_process_that_dies_leaves_what_it_stored_before(tmp_path):
    path = tmp_path / "run.sqlite"
    line = [sys.executable, "-c", DIES, str(path)]
    assert subprocess.run(line, check=False).returncode == 9
    store = RunStore(path)
    store.add([said("b", "after")])
    actual, _ = dumped(store, tmp_path / "out.jsonl")
    assert texts(one.response for one in actual) == ["whole", "after"]


@pytest.mark.parametrize("damage", ["full", "no database", "a file for the folder"])
def test_a_store_that_takes_nothing_is_an_error(tmp_path, damage):
    path = tmp_path / "parts" / "run.sqlite"
    if damage == "a file for the folder":
        path.parent.write_text("")
    else:
        path.parent.mkdir()
    if damage == "no database":
        path.write_bytes(b"no database" * 100)
    store = RunStore(path)
    if damage == "full":
        store.add([said("a", "x")])
        store._file.execute("PRAGMA max_page_count = 12")
    large = [said("a", "x" * 500, fact=str(at)) for at in range(100)]
    with pytest.raises(StoreError, match=r"parts: responses cannot be kept: "):
        store.add(large)
