"""Batches and budgets: which errors mean too little memory, and what is left of an error in one line."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.base import (
    check_probabilities,
    check_request,
    failed,
    generated,
    in_order,
    scored,
)
from pytest_kbrel.models.batching import (
    Batcher,
    Budget,
    describe_error,
    is_out_of_memory,
)
from pytest_kbrel.models.measurements import FILE, MeasurementFile
from pytest_kbrel.models.memory import cpu_bytes
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Scored, Step


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("could not create a primitive descriptor"), True),
        (RuntimeError("could not execute a primitive"), True),
        (RuntimeError("OUT OF MEMORY"), True),
        (MemoryError(), True),
        (RuntimeError("an index is out of range in memory"), False),
        (RuntimeError("could not create a tensor"), False),
        (KeyError("x"), False),
    ],
)
def test_which_errors_mean_too_little_memory(error, result):
    assert is_out_of_memory(error) is result


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("\n one\ntwo\n"), "ValueError: one"),
        (RuntimeError(), "RuntimeError"),
        (RuntimeError(" \n "), "RuntimeError"),
        (RuntimeError("x" * 301), "RuntimeError: " + "x" * 300),
    ],
)
def test_an_error_in_one_line(error, line):
    assert describe_error(error) == line


def test_our_own_words_are_said_as_they_are():
    assert failed(ValueError("too long\nby far")) == Failed(error="too long\nby far")
    assert failed(RuntimeError("too long")) == Failed(error="RuntimeError: too long")


@pytest.mark.parametrize(
    ("tokens", "met", "least", "left"),
    [
        (1000, 900, 1, 450),
        (1000, 2000, 1, 500),
        (1000, 901, 1, 450),
        (1000, 900, 450, 450),
        (1000, 900, 451, 451),
        (1000, 900, 2000, 1000),
        (1, 1, 1, 1),
        (3, 1, 1, 1),
    ],
)
def test_half_is_taken_of_what_did_not_fit(tokens, met, least, left):
    budget = Budget(tokens)
    budget.halve(met, least)
    assert budget.tokens == left


@pytest.mark.parametrize(("allowed", "kept"), [(4096.0, 8.0), (0.0, None)])
def test_what_was_learned_is_kept_where_it_is_known_how_much_there_was(
    tmp_path, allowed, kept
):
    Budget(1024, allowed=allowed, notes=MeasurementFile(tmp_path), key="k").halve(1024)
    assert MeasurementFile(tmp_path).get("k") == kept
    assert MeasurementFile(tmp_path).get("") is None


@pytest.mark.parametrize(
    ("value", "kept"),
    [(1e-9, True), (9.9e11, True), (0.0, False), (-1.0, False), (1e12, False)],
)
def test_bytes_that_a_token_can_take(tmp_path, value, kept):
    MeasurementFile(tmp_path).put("k", value)
    assert MeasurementFile(tmp_path).get("k") == (value if kept else None)
    assert (tmp_path / FILE).exists() is kept


def test_what_is_learned_again_counts_as_the_latest(tmp_path):
    notes = MeasurementFile(tmp_path)
    for number in range(200):
        notes.put(str(number), 1.0)
    notes.put("0", 2.0)
    notes.put("new", 3.0)
    assert [notes.get(key) for key in ("0", "1", "2", "new")] == [2.0, None, 1.0, 3.0]


def test_a_batch_may_have_its_budget_and_no_more():
    sizes = []

    def answer(rows):
        sizes.append(list(rows))
        return list(rows)

    assert Batcher(5).run([2, 3, 4, 1, 6, 1], sum, answer) == [2, 3, 4, 1, 6, 1]
    assert sizes == [[2, 3], [4, 1], [6], [1]]
    assert Batcher(5).run([], sum, answer) == []


def machine(folder, *, own="0::/mine\n", root=None, mine=None):
    """A machine with 8 GiB and groups of these (limit, use)."""
    proc, groups = folder / "proc", folder / "groups"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemAvailable: 8388608 kB\nSwapMemAvailable: 1 kB\n")
    (proc / "self" / "cgroup").write_text(own)
    for place, result in (("", root), ("mine", mine)):
        (groups / place).mkdir(parents=True, exist_ok=True)
        if result is not None:
            (groups / place / "memory.max").write_text(f"{result[0]}\n")
            (groups / place / "memory.current").write_text(f"{result[1]}\n")
    return cpu_bytes(proc, groups)


@pytest.mark.parametrize(
    ("groups", "free"),
    [
        ({}, 8 * 2**30),
        ({"root": (100, 40)}, 60),
        ({"mine": (100, 40)}, 60),
        ({"root": (100, 40), "mine": (90, 10)}, 60),
        ({"root": (100, 10), "mine": (90, 40)}, 50),
        ({"root": ("max", 40), "mine": (90, 40)}, 50),
        ({"mine": (90, 40), "own": "12:memory:/mine\n"}, 8 * 2**30),
        ({"mine": (90, 91)}, 0),
        ({"mine": (90, 90)}, 0),
    ],
)
def test_the_tightest_of_a_containers_groups_holds(tmp_path, groups, free):
    assert machine(tmp_path, **groups) == free


def steps(*pairs):
    result = tuple(
        Step(token_id=1, token="x", probability=p, watched=w) for p, w in pairs
    )
    return Generated(
        text="",
        token_ids=(),
        finish="stop",
        prompt_tokens=1,
        prompt_digest="",
        steps=result,
    )


def probabilities(*values):
    return Scored(
        probabilities=values,
        token_ids=(1,) * len(values),
        prompt_tokens=1,
        prompt_digest="d",
    )


NAN = float("nan")


@pytest.mark.parametrize(
    ("response", "sound"),
    [
        (probabilities(0.0, 1.0), True),
        (probabilities(0.5, 1.0000001), False),
        (probabilities(0.5, -1e-9), False),
        (probabilities(NAN), False),
        (probabilities(), True),
        (steps((0.5, None)), True),
        (steps((0.5, 0.0)), True),
        (steps((0.5, 0.5), (0.5, NAN)), False),
        (steps((0.5, 0.5), (1.5, 0.5)), False),
        (steps(), True),
        (Failed(error="x"), True),
    ],
)
def test_every_number_of_a_response_is_a_probability(response, sound):
    assert (check_probabilities(response) is response) is sound


def test_answers_come_back_in_the_order_of_their_places():
    assert in_order([[(2, "c")], [], [(0, "a"), (1, "b")]]) == ["a", "b", "c"]
    assert in_order([]) == []


class Encoder:
    def digest(self, prompt):
        return f"digest of {len(prompt)}"


def test_a_probability_is_cut_at_one_and_no_number_is_a_failure():
    from pytest_kbrel.models.tokens import Pair

    pair = Pair(prompt=(1, 2), context=(1, 2), targets=(3, 4))
    assert scored(Encoder(), pair, (1.0000001, 0.5)) == Scored(
        probabilities=(1.0, 0.5),
        token_ids=(3, 4),
        prompt_tokens=2,
        prompt_digest="digest of 2",
    )
    assert scored(Encoder(), pair, (0.5, NAN)) == Failed(
        error="not a number among the probabilities"
    )
    for answer in (
        scored(Encoder(), pair, Failed(error="x")),
        generated(Encoder(), (1,), Failed(error="x")),
    ):
        assert answer == Failed(error="x")


@pytest.mark.parametrize(
    ("request_", "prompt", "said"),
    [
        ({}, (1,), None),
        ({"max_new_tokens": 1, "watch": (0, 9)}, (1,), None),
        ({"max_new_tokens": 0}, (1,), "must be at least 1"),
        ({"num_beams": 0}, (1,), "must be at least 1"),
        ({"watch": (10,)}, (1,), r"token ids are numbers from 0 to 9, found \(10,\)"),
        ({"watch": (0, -1)}, (1,), "token ids are numbers from 0 to 9"),
        ({}, (), "an empty prompt needs a BOS token"),
    ],
)
def test_a_request_that_no_model_can_answer(request_, prompt, said):
    request = GenerateRequest(**({"prompt": "x", "max_new_tokens": 4} | request_))
    if said is None:
        check_request(request, prompt, 10)
        return
    with pytest.raises(ValueError, match=said):
        check_request(request, prompt, 10)


class Rows:
    """Rows of one token each; more than ``room`` at once do not fit, and ``bad`` ones raise."""

    def __init__(self, room=10, bad=()):
        self.room, self.bad, self.sizes = room, bad, []

    def __call__(self, rows):
        self.sizes.append(len(rows))
        if len(rows) > self.room:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        if set(rows) & set(self.bad):
            raise KeyError("a bad row")
        return [row * 2 for row in rows]


def test_batches_keep_the_budget():
    rows = Rows()
    assert Batcher(4).run(range(10), len, rows) == [row * 2 for row in range(10)]
    assert rows.sizes == [4, 4, 2]


def test_out_of_memory_halves_the_budget_and_remembers():
    rows, batcher = Rows(room=3), Batcher(10)
    assert batcher.run(range(10), len, rows) == [row * 2 for row in range(10)]
    assert batcher.budget == 2
    assert max(rows.sizes[2:]) == 2


def test_a_row_that_never_fits_fails_alone():
    answers = Batcher(10).run(range(3), len, Rows(room=0))
    assert all(
        isinstance(answer, Failed) and "out of memory" in answer.error
        for answer in answers
    )


def test_a_bad_row_spoils_no_other():
    answers = Batcher(10).run(range(5), len, Rows(bad=(3,)))
    assert answers == [0, 2, 4, Failed(error="KeyError: 'a bad row'"), 8]


def test_a_row_beyond_the_budget_runs_alone():
    rows = Rows()
    Batcher(1).run([5, 6], sum, rows)
    assert rows.sizes == [1, 1]
