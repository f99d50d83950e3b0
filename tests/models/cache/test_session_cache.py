"""Responses of one session: each thing is asked once, and none of it lies in memory."""

from __future__ import annotations

import gc
import tracemalloc
from dataclasses import replace

import pytest

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.cache.caching_model import DeduplicatingModel, SessionCache
from pytest_kbrel.models.cache.store import key_of
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
    Step,
)
from tests.function_model import Forgetful, FunctionModel
from tests.models.cache.stored import hexed, text

GENERATED = Generated(
    text="\ud800\x00\u2028\n<|end|>",
    token_ids=(5,),
    finish="length",
    prompt_tokens=1,
    prompt_digest="cd",
    steps=(Step(token_id=5, token="▁x", probability=0.1 + 0.2, watched=None),),
)


SCORED = Scored(
    probabilities=(1 / 3, 5e-324),
    token_ids=(1, 2**40),
    prompt_tokens=3,
    prompt_digest="ab",
)


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


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1.5, -0.1])
def test_what_is_no_probability_is_a_failure(value):
    asker = DeduplicatingModel(
        FunctionModel(probability=lambda prompt, continuation: value)
    )
    steps = GenerateRequest(prompt="p", max_new_tokens=3, steps=True)
    assert all(isinstance(answer, Failed) for answer in asker.ask([*SCORE, steps]))


def test_a_model_that_miscounts():
    model = FunctionModel()
    model.score = lambda requests: []
    with pytest.raises(ResponseError, match="0 answers to 3 requests"):
        DeduplicatingModel(model).ask(SCORE)


def test_what_was_said_comes_back_exactly():
    cache = SessionCache()
    asked = {key_of("", ScoreRequest(prompt="\udfff", continuation=" ")): SCORED}
    long = GenerateRequest(
        prompt="p", max_new_tokens=2, stop=(), steps=True, watch=(7,)
    )
    asked[key_of("", long)] = GENERATED
    cache.put(asked)
    unknown = key_of("", replace(long, max_new_tokens=3))
    assert cache.get([*asked, unknown]) == asked
    assert cache.get([]) == {}


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


def test_of_many_keys_each_is_found_and_the_latest_answer_holds():
    cache = SessionCache()
    cache.put({hexed(str(n)): text(str(n)) for n in range(1001)})
    cache.put({hexed("0"): Failed(error="x")})
    result = cache.get([hexed(str(n)) for n in range(-5, 1001)])
    assert len(result) == 1001
    assert (result[hexed("0")], result[hexed("1000")].text) == (
        Failed(error="x"),
        "1000",
    )
