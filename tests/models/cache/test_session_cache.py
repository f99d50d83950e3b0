"""Responses of one session: each thing is asked once, and none of it lies in memory."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.cache.caching_model import DeduplicatingModel
from pytest_kbrel.records import (
    Failed,
    GenerateRequest,
    Scored,
    ScoreRequest,
)
from tests.function_model import Forgetful, FunctionModel


def rounds(count: int, size: int = 100):
    for start in range(0, count, size):
        yield [
            ScoreRequest(
                prompt=f"question {n} about something or other", continuation=" yes"
            )
            if n % 2
            else GenerateRequest(
                prompt=f"question {n} about something or other", max_new_tokens=4
            )
            for n in range(start, start + size)
        ]


SCORE = [ScoreRequest(prompt=f"p{k}", continuation=" x y") for k in range(3)]


GENERATE = [GenerateRequest(prompt=f"p{k}", max_new_tokens=4) for k in range(3)]


def test_order_is_kept_and_each_thing_asked_once():
    model = FunctionModel(
        answers=lambda prompt: f"said {prompt}",
        probability=lambda p, c: float(p[1]) / 10,
    )
    asker = DeduplicatingModel(model)
    mixed = [GENERATE[1], SCORE[2], SCORE[0], GENERATE[1], GENERATE[0], SCORE[2]]
    answers = asker.ask(mixed)
    assert [getattr(answer, "text", None) for answer in answers] == [
        "said p1",
        None,
        None,
        "said p1",
        "said p0",
        None,
    ]
    assert [answers[k].probabilities for k in (1, 2, 5)] == [
        (0.2, 0.2),
        (0.0, 0.0),
        (0.2, 0.2),
    ]
    assert len(model.requests) == 4
    assert asker.ask([SCORE[2], SCORE[1]])[0] == answers[1]
    assert (len(model.requests), model.score_calls, model.generate_calls) == (5, 2, 1)
    assert asker.ask([]) == []
    assert asker.ask([SCORE[0]]) == [answers[2]]
    assert model.score_calls == 2


def test_failures_are_asked_again():
    down = [True]
    model = FunctionModel(
        fails=lambda prompt: "down" if down[0] and prompt == "p1" else None
    )
    asker = DeduplicatingModel(model)
    assert [isinstance(answer, Failed) for answer in asker.ask(SCORE)] == [
        False,
        True,
        False,
    ]
    down[0] = False
    assert isinstance(asker.ask([SCORE[1]])[0], Scored)


def test_a_model_that_miscounts():
    model = FunctionModel()
    model.score = lambda requests: []
    with pytest.raises(ResponseError, match="0 answers to 3 requests"):
        DeduplicatingModel(model).ask(SCORE)


@pytest.mark.slow
def test_memory_does_not_grow_with_what_was_asked():
    asker = DeduplicatingModel(Forgetful(answers=lambda prompt: prompt * 4))
    asker.ask(next(rounds(100)))
    tracemalloc.start()
    try:
        held = []
        for asked in rounds(2000):
            asker.ask(asked)
            # When the collector runs by itself depends on all that this process holds.
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        del asked
        gc.collect()
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    # One answer with its question takes more than 500 bytes.
    assert left < 200_000
    assert max(held[10:]) - max(held[:10]) < 100_000


@pytest.mark.parametrize("broken", ["put", "get"])
def test_where_the_file_is_lost_questions_are_asked_anew(broken):
    model = FunctionModel()
    asker = DeduplicatingModel(model)
    asked = next(rounds(10, 10))
    first = asker.ask(asked) if broken == "get" else None
    file = asker._cache._file
    assert file is not None
    # As on a full disk: every statement fails from here on.
    file.execute("DROP TABLE responses")
    again = asker.ask(asked)
    assert again == asker.ask(asked)
    assert first in (None, again)
    assert len(model.requests) == (30 if broken == "get" else 20)
