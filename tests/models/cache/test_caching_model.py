"""What a model wrapped in the store asks, and which responses it stores."""

from __future__ import annotations

import contextlib
import time

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.cache.session import CachingModel
from pytest_kbrel.models.cache.store import Store, digest_of
from pytest_kbrel.models.cache.store import key_of as key_under
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import (
    Failed,
    GenerateRequest,
    Scored,
    ScoreRequest,
)
from tests.function_model import FunctionModel
from tests.models.cache.stored import MODEL, SERVED, get, text
from tests.openai_server import Fault

WHERE = GenerateRequest(prompt="Where?", max_new_tokens=4)


SCORE = ScoreRequest(prompt="Where?", continuation=" here")


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "deep" / "cache")
    yield made
    made.close()


def key_of(model, request):
    return key_under(digest_of(model), request)


def ask(n: int) -> GenerateRequest:
    return GenerateRequest(prompt=f"question {n}", max_new_tokens=4)


def test_a_second_run_asks_nothing(store):
    for asked in (2, 0):
        inner = FunctionModel(
            answers=lambda prompt: f"said {prompt}", probability=lambda p, c: 0.5
        )
        model = CachingModel(inner, store)
        first, second, again = model.generate([ask(1), ask(2), ask(1)])
        assert (first.text, second.text, again) == (
            "said question 1",
            "said question 2",
            first,
        )
        assert model.score([SCORE])[0].probabilities == (0.5,)
        assert (
            len([r for r in inner.requests if isinstance(r, GenerateRequest)]) == asked
        )
        assert model.reused == (0 if asked else 4)


def test_what_came_before_a_failure_is_kept(store, openai_server):
    spec = parse_openai(
        "openai/judge",
        f"base_url={openai_server.base_url},max_concurrent=1,max_retries=0",
    )
    openai_server.inject(Fault(), Fault(status=500), Fault(), Fault(status=401))
    model = CachingModel(OpenAIModel(spec), store)
    with pytest.raises(ModelError):
        model.generate([ask(n) for n in range(6)])
    asked = len(openai_server.calls)
    result = model.generate([ask(n) for n in range(3)])
    assert not any(isinstance(answer, Failed) for answer in result)
    assert [call.text for call in openai_server.calls[asked:]] == ["question 1"]
    assert model.reused == 2
    model.model.close()


def test_an_answer_is_kept_the_moment_it_exists(store, openai_server):
    """The second question is under way when the answer to the first is looked for."""
    seen = []

    def say(text):
        if text == "question 1":
            for _ in range(3000):
                of = model.describe()
                seen[:] = get(Store(store.path.parent), [key_of(of, ask(0))], of)
                if seen:
                    break
                time.sleep(0.02)
        return "said"

    openai_server.say = say
    spec = parse_openai(
        "openai/judge", f"base_url={openai_server.base_url},max_concurrent=2"
    )
    model = CachingModel(OpenAIModel(spec), store)
    model.generate([ask(0), ask(1)])
    assert seen
    model.model.close()


def asked(count):
    return [GenerateRequest(prompt=f"q{n}", max_new_tokens=4) for n in range(count)]


@pytest.mark.parametrize(
    ("served", "response", "kept"),
    [
        (False, text(""), True),
        (True, text(""), False),
        (
            True,
            Scored(probabilities=(), token_ids=(), prompt_tokens=1, prompt_digest="d"),
            True,
        ),
        (
            False,
            Scored(
                probabilities=(1.5,), token_ids=(1,), prompt_tokens=1, prompt_digest="d"
            ),
            False,
        ),
    ],
)
def test_which_answers_are_kept(tmp_path, served, response, kept):
    class Model(FunctionModel):
        def describe(self):
            return SERVED if served else MODEL

        def generate(self, requests):
            return [response] * len(requests)

        score = generate

    request = SCORE if isinstance(response, Scored) else WHERE
    with contextlib.closing(Store(tmp_path)) as store:
        model = CachingModel(Model(), store)
        ask = model.score if request is SCORE else model.generate
        assert ask([request]) == [response]
        of = SERVED if served else MODEL
        assert bool(get(store, [key_of(of, request)], of)) is kept
