"""Batches and budgets: which errors mean too little memory, and what is left of an error in one line."""

from __future__ import annotations

import pytest

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.tokens import (
    check_request,
    generated,
    scored,
)
from pytest_kbrel.records import Failed, GenerateRequest, Scored


def probabilities(*values):
    return Scored(
        probabilities=values,
        token_ids=(1,) * len(values),
        prompt_tokens=1,
        prompt_digest="d",
    )


NAN = float("nan")


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
        ({"watch": (10,)}, (1,), r"token ids are numbers from 0 to 9, found \(10,\)"),
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


def test_a_row_that_never_fits_fails_alone():
    batches = Batcher(10).ready(range(3), len, Rows(room=0))
    answers = dict(one for batch in batches for one in batch)
    assert [*answers] == [0, 1, 2]
    assert all(
        isinstance(answer, Failed) and "out of memory" in answer.error
        for answer in answers.values()
    )
