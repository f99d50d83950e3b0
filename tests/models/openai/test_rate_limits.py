"""A server that refuses requests for a while, over HTTP: what is asked again, what waits, and what fails."""

from __future__ import annotations

import json
import threading
import time

import pytest

from pytest_kbrel.errors import ModelError, UnavailableError
from pytest_kbrel.models.embedding import Encoder
from pytest_kbrel.models.openai.throttle import FURTHER_TRIES, MOST_REFUSED
from pytest_kbrel.records import Failed, GenerateRequest, Scored, ScoreRequest
from tests.models.openai.scoring_server import ROUTES, tokenize
from tests.openai_server import TOO_MANY, Fault

UNAVAILABLE = Fault(status=503, message="loading")
NO_QUOTA = {
    "error": {
        "message": "You exceeded your current quota",
        "code": "insufficient_quota",
    }
}


def ask(prompt):
    return GenerateRequest(prompt=str(prompt), max_new_tokens=8)


def test_behind_a_rate_limit_no_answer_is_lost_and_few_requests_are_refused(
    openai_server, model_at
):
    openai_server.rate = 20, 0.1
    openai_server.say = lambda text: f"answer {text}"
    results = model_at("max_retries=0").generate([ask(number) for number in range(100)])
    assert [result.text for result in results] == [
        f"answer {number}" for number in range(100)
    ]
    assert openai_server.most_at_once <= 8
    # In each window as many at most as were under way.
    assert openai_server.refused <= 60
    assert len(openai_server.calls) == 100 + openai_server.refused


def test_all_requests_wait_as_long_as_the_server_says(openai_server, model_at):
    openai_server.waits = {"retry-after": "1"}
    openai_server.inject(TOO_MANY)
    started = time.monotonic()
    results = model_at().generate([ask(number) for number in range(9)])
    assert not any(isinstance(result, Failed) for result in results)
    assert time.monotonic() - started >= 1
    assert len(openai_server.calls) == 10


def test_a_server_that_is_loading_is_waited_for_and_not_retried_by_the_client(
    openai_server, model_at
):
    openai_server.inject(*[UNAVAILABLE] * 3)
    (result,) = model_at("max_retries=0").generate([ask("a")])
    assert result.text == "unsure"
    openai_server.waits = {}
    openai_server.inject(UNAVAILABLE)
    (result,) = model_at("max_retries=0").generate([ask("b")])
    assert isinstance(result, Failed)


def test_the_client_s_retries_do_not_multiply_the_tries(
    openai_server, model_at, impatient
):
    openai_server.always = TOO_MANY
    openai_server.headers = {"x-should-retry": "true"}
    results = model_at("max_retries=2,max_concurrent=1").generate(
        [ask(number) for number in range(2)]
    )
    assert all("Rate limit" in result.error for result in results)
    # The first request has all tries, and the one after it has one.
    assert len(openai_server.calls) == 3 + FURTHER_TRIES + 1


def test_a_server_that_refuses_every_request_ends_the_run_with_the_reason(
    openai_server, model_at, impatient
):
    openai_server.waits = {"retry-after": "0"}
    model = model_at("max_retries=0,max_concurrent=1")
    assert model.generate([ask("first")])[0].text == "unsure"
    openai_server.always = TOO_MANY
    with pytest.raises(
        UnavailableError,
        match=r"has refused every request for [0-9]+ seconds; allowed: another run",
    ):
        model.generate([ask(number) for number in range(50)])
    # By then the next one may be under way.
    assert 0 <= len(openai_server.calls) - (1 + FURTHER_TRIES + MOST_REFUSED) <= 1


@pytest.mark.parametrize(
    ("fault", "args", "said"),
    [
        (
            Fault(status=500, message="out of memory"),
            "",
            "InternalServerError: .*out of memory",
        ),
        (
            Fault(delay=0.3),
            ",timeout=0.1",
            r"no complete reply within 0\.1 seconds; timeout=SECONDS allows more",
        ),
    ],
)
def test_a_server_that_fails_every_request_ends_the_run_with_the_last_error(
    openai_server, model_at, impatient, fault, args, said
):
    model = model_at(f"max_retries=0,max_concurrent=1{args}")
    openai_server.always = fault
    with pytest.raises(
        UnavailableError,
        match=rf"has answered no request for [0-9]+ seconds: {said}; al",
    ):
        model.generate([ask(number) for number in range(50)])
    assert MOST_REFUSED <= len(openai_server.calls) < 20


def test_a_run_that_has_ended_waits_for_no_request_that_was_refused(
    openai_server, model_at
):
    openai_server.waits = {"retry-after": "500"}
    model = model_at("max_concurrent=3")
    assert model.generate([ask("first")])[0].text == "unsure"
    # The second is refused while the first is under way, and the third when the first has failed.
    answer, refused = openai_server.answer, threading.Event()

    def answered(call):
        if call.text == "unknown":
            assert refused.wait(10)
            return 404, "{}"
        if call.text == "early":
            refused.set()
        else:
            time.sleep(1)
        return 429, "{}"

    openai_server.answer = answered
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"does not know"):
        model.generate([ask("unknown"), ask("early"), ask("late"), ask("never")])
    assert time.monotonic() - started < 10
    openai_server.answer = answer


def test_a_wait_that_is_too_long_ends_the_run_with_the_reason(openai_server, model_at):
    openai_server.waits = {"retry-after": "3600"}
    openai_server.always = TOO_MANY
    with pytest.raises(
        ModelError,
        match=r"asks to wait 3,600 seconds before the next request \(Retry-After\)",
    ):
        model_at().generate([ask(number) for number in range(9)])
    assert len(openai_server.calls) == 1


def test_a_quota_that_is_used_up_ends_the_run_with_the_reason(openai_server, model_at):
    openai_server.always = Fault(status=429, raw=json.dumps(NO_QUOTA))
    with pytest.raises(
        ModelError, match=r"has no quota left: .*You exceeded your current quota"
    ):
        model_at().generate([ask(number) for number in range(9)])
    assert len(openai_server.calls) == 1


def test_scoring_requests_wait_too(openai_server, model_at):
    openai_server.routes = {"/tokenize": tokenize, **ROUTES["prompt_logprobs of vLLM"]}
    model = model_at("endpoint=completions,max_retries=0")
    requests = [
        ScoreRequest(prompt="Berlin is in", continuation=f" {word}")
        for word in "abcdefghij"
    ]
    expected = model.score(requests)
    openai_server.inject(*[TOO_MANY, Fault()] * 5)
    assert model.score(requests) == expected
    assert all(isinstance(response, Scored) for response in expected)


def test_embeddings_wait_too(openai_server):
    openai_server.inject(TOO_MANY, TOO_MANY)
    encoder = Encoder(
        "openai/encoder", f"base_url={openai_server.base_url},max_retries=0"
    )
    assert len(encoder.embed(["a"])) == 1
    encoder.close()


def test_the_list_of_models_waits_too(openai_server, model_at, monkeypatch):
    refused, answer = [], openai_server.answer

    def twice_refused(call):
        refused.append(call.path)
        return answer(call) if len(refused) > 2 else (429, "{}")

    monkeypatch.setattr(openai_server, "answer", twice_refused)
    assert "owned_by" in model_at().about()
    assert refused == ["models"] * 3
