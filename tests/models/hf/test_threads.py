"""One checkpoint that several threads ask at once gives each the answers it would have given it alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pytest_kbrel.records import Generated, GenerateRequest, Scored, ScoreRequest

THREADS, ROUNDS = 4, 6


def asked(thread: int, turn: int):
    start = f"w{thread} w{turn} w7"
    scored = [
        ScoreRequest(prompt=f"{start} w{n}", continuation=f" w{n + 1} w2")
        for n in range(1 + thread)
    ]
    return scored, [
        GenerateRequest(prompt=f"{start} w{n}", max_new_tokens=5) for n in range(2)
    ]


def answers(model, thread: int, turn: int):
    scored, written = asked(thread, turn)
    return model.score(scored), model.generate(written)


@pytest.mark.slow
def test_threads_do_not_get_into_each_others_way(model_of):
    model = model_of("llama")
    turns = [(thread, turn) for turn in range(ROUNDS) for thread in range(THREADS)]
    alone = [answers(model, *one) for one in turns]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda one: answers(model, *one), turns))
    for (scored, written), (scored_then, written_then) in zip(
        alone, together, strict=True
    ):
        for one, other in zip(scored, scored_then, strict=True):
            assert isinstance(one, Scored)
            assert isinstance(other, Scored)
            assert (
                max(
                    abs(a - b)
                    for a, b in zip(one.probabilities, other.probabilities, strict=True)
                )
                < 1e-4
            )
        assert all(isinstance(one, Generated) for one in written_then)
        assert written == written_then


def test_a_model_may_be_asked_in_between(model_of):
    model = model_of("llama")
    first, written = asked(0, 0)
    batches = model.score_as_ready([*first, *asked(3, 1)[0]])
    assert next(batches)
    assert len(model.generate(written)) == len(written)
    batches.close()
