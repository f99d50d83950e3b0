from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.openai import spec
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.models.openai.throttle import FURTHER_TRIES
from pytest_kbrel.records import Failed, Generated, GenerateRequest, ScoreRequest
from tests.openai_server import (
    BROKEN,
    EMPTY,
    FILTERED,
    GARBAGE,
    NO_CHOICES,
    NULL,
    REFUSAL,
    TOO_MANY,
    Fault,
)

CHAT, COMPLETIONS = "chat/completions", "completions"


def ask(prompt="Where?", **more):
    return GenerateRequest(prompt=prompt, max_new_tokens=8, **more)


@pytest.mark.parametrize(
    ("endpoint", "path"), [("chat", CHAT), ("completions", COMPLETIONS)]
)
def test_a_text_is_asked_for_greedily_and_cut_at_its_stop(
    openai_server, model_at, endpoint, path
):
    openai_server.say = lambda text: "  In Paris\nand so on"
    model = model_at(f"endpoint={endpoint},seed=7")
    (result,) = model.generate([ask()])
    assert result == Generated(
        text="In Paris",
        token_ids=(),
        finish="stop",
        prompt_tokens=1,
        prompt_digest=result.prompt_digest,
    )
    (call,) = openai_server.calls_to(path)
    assert call.text == "Where?"
    assert {
        key: call.body[key]
        for key in ("model", "temperature", "stop", "max_tokens", "seed")
    } == {
        "model": "judge",
        "temperature": 0,
        "stop": ["\n"],
        "max_tokens": 8,
        "seed": 7,
    }


def test_answers_come_back_in_order_however_they_arrive(openai_server, model_at):
    later = threading.Event()

    def slow_first(text):
        # The first is asked alone. With four at once, others have come back when the seventh is put.
        if text == "6":
            later.set()
        if text == "1":
            later.wait(300)
        return f"answer {text}"

    openai_server.say = slow_first
    model = model_at("max_concurrent=4")
    requests = [ask(str(n)) for n in range(12)]
    places = [
        place for batch in model.generate_as_ready(requests) for place, _ in batch
    ]
    assert places[0] == 0
    assert places[1] != 1
    assert sorted(places) == list(range(12))
    assert [result.text for result in model.generate(requests)] == [
        f"answer {n}" for n in range(12)
    ]
    assert 1 < openai_server.most_at_once <= 4


def test_no_more_at_once_than_allowed(openai_server, model_at):
    openai_server.always = Fault(delay=0.02)
    model_at("num_concurrent=1").generate([ask(str(n)) for n in range(4)])
    assert openai_server.most_at_once == 1


def test_a_busy_or_broken_server_is_asked_again(openai_server, model_at):
    openai_server.inject(TOO_MANY, BROKEN, TOO_MANY)
    openai_server.say = lambda text: "Paris"
    (result,) = model_at("max_retries=3").generate([ask()])
    assert result.text == "Paris"
    assert len(openai_server.calls) == 4


@pytest.mark.parametrize(
    ("fault", "tries", "said"),
    [(TOO_MANY, 2 + FURTHER_TRIES, "Rate limit"), (BROKEN, 2, "had an error")],
)
def test_a_server_that_stays_so_fails_the_request_and_no_other(
    openai_server, model_at, impatient, fault, tries, said
):
    model = model_at("max_retries=1,max_concurrent=1")
    openai_server.inject(*[fault] * tries)
    first, second = model.generate([ask("a"), ask("b")])
    assert isinstance(first, Failed)
    assert said in first.error
    assert isinstance(second, Generated)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (GARBAGE, "JSON"),
        (FILTERED, "content_filter"),
        (NO_CHOICES, "holds no answer"),
        (Fault(raw="[]"), "holds no answer"),
        (Fault(raw='"hello"'), "holds no answer"),
        (Fault(status=400, message="the prompt is too long"), "too long"),
        (
            Fault(
                change=lambda reply: reply["choices"][0].update(
                    finish_reason="tool_calls"
                )
            ),
            "tool_calls",
        ),
        (
            Fault(
                change=lambda reply: reply["choices"][0]["message"].update(
                    content=[{"type": "text"}]
                )
            ),
            "no text",
        ),
    ],
)
def test_what_is_no_answer_is_a_failure(openai_server, model_at, fault, said):
    openai_server.inject(fault)
    (result,) = model_at().generate([ask()])
    assert isinstance(result, Failed)
    assert said in result.error


@pytest.mark.parametrize("fault", [EMPTY, NULL, REFUSAL])
def test_saying_nothing_is_an_empty_answer(openai_server, model_at, fault):
    openai_server.always = fault
    (result,) = model_at().generate([ask()])
    assert (result.text, result.finish) == ("", "stop")


def test_an_answer_cut_short_says_so(openai_server, model_at):
    openai_server.say = lambda text: "one two three four five six seven eight nine"
    model = model_at()
    assert [
        result.finish for result in model.generate([ask(), ask(stop=("six",))])
    ] == ["length", "stop"]


def test_more_stops_than_the_protocol_takes_are_cut_here(openai_server, model_at):
    openai_server.say = lambda text: "a five b c d e f g h i j k"
    (result,) = model_at().generate([ask(stop=("one", "two", "three", "four", "five"))])
    assert (result.text, result.finish) == ("a", "stop")
    assert openai_server.calls[0].body["stop"] == ["one", "two", "three", "four"]


def test_a_slow_server_is_a_failure(openai_server, model_at):
    openai_server.always = Fault(delay=0.5)
    (result,) = model_at("timeout=0.05,max_retries=0").generate([ask()])
    assert result == Failed(
        error="no complete reply within 0.05 seconds; timeout=SECONDS allows more"
    )


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_stops_everything_and_is_not_printed(
    openai_server, model_at, monkeypatch, status
):
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    openai_server.always = Fault(
        status=status, message="Incorrect API key provided: sk-very-secret"
    )
    with pytest.raises(ModelError) as caught:
        model_at("api_key_env=MY_KEY,max_concurrent=1").generate(
            [ask(str(n)) for n in range(50)]
        )
    assert openai_server.base_url in str(caught.value)
    assert "MY_KEY" in str(caught.value)
    assert "openai/judge" in str(caught.value)
    assert "very-secret" not in str(caught.value)
    assert openai_server.calls[0].headers["authorization"] == "Bearer sk-very-secret"
    assert len(openai_server.calls) < 10


def test_an_unknown_model_names_itself_and_the_server(openai_server, model_at):
    with pytest.raises(ModelError) as caught:
        model_at(name="nobody").generate([ask()])
    assert "'nobody'" in str(caught.value)
    assert openai_server.base_url in str(caught.value)


def test_a_server_that_is_not_there_is_an_error_of_the_model():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    model = OpenAIModel(
        OpenAISpec(text="openai/judge", name="judge", base_url=url, max_retries=0)
    )
    with pytest.raises(ModelError, match=f"{url} cannot be reached: "):
        model.generate([ask()])
    model.close()


def test_a_server_that_goes_away_fails_what_it_did_not_answer(openai_server, model_at):
    model = model_at("max_retries=0")
    assert isinstance(model.generate([ask("a")])[0], Generated)
    openai_server.__exit__()
    try:
        assert isinstance(model.generate([ask("b")])[0], Failed)
    finally:
        openai_server.__enter__()


def test_newer_models_get_the_limit_under_its_newer_name(openai_server, model_at):
    refused = Fault(
        status=400,
        message="Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
    )
    openai_server.inject(refused)
    model = model_at("max_concurrent=1")
    assert all(
        isinstance(result, Generated) for result in model.generate([ask("a"), ask("b")])
    )
    assert ["max_completion_tokens" in call.body for call in openai_server.calls] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize("args", ["", "endpoint=completions"])
def test_a_model_that_takes_no_stop_strings_is_asked_without_and_cut_here(
    openai_server, model_at, args
):
    openai_server.inject(
        Fault(
            status=400,
            message="Unsupported parameter: 'stop' is not supported with this model.",
        )
    )
    openai_server.say = lambda text: "Paris\nTokyo"
    model = model_at(",".join(filter(None, ["max_concurrent=1", args])))
    assert [result.text for result in model.generate([ask("a"), ask("b")])] == [
        "Paris"
    ] * 2
    assert ["stop" in call.body for call in openai_server.calls] == [True, False, False]


def test_a_model_that_takes_no_temperature_is_refused_with_the_reason(
    openai_server, model_at
):
    openai_server.always = Fault(
        status=400,
        message="Unsupported value: 'temperature' does not support 0 with this model.",
    )
    with pytest.raises(
        ModelError,
        match=r"refuses temperature 0: .*allowed: a model that takes temperat",
    ):
        model_at().generate([ask("a")])


def test_probabilities_and_beams_are_not_to_be_had(openai_server, model_at):
    model = model_at()
    (scored,) = model.score([ScoreRequest(prompt="a", continuation=" b")])
    stepped, beamed = model.generate([ask(steps=True), ask(num_beams=2)])
    assert "token ids" in scored.error
    assert "does not show the steps" in stepped.error
    assert "beam" in beamed.error
    assert openai_server.calls == []


def test_the_fingerprint_names_model_and_server_and_no_secret(
    openai_server, model_at, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    model = model_at("endpoint=completions,seed=7")
    before = model.describe()
    assert (before.spec, before.backend, before.architecture) == (
        "openai/judge",
        "openai",
        "judge",
    )
    assert (before.device, before.chat_template) == (openai_server.base_url, False)
    assert before.decoding == "temperature 0, seed 7"
    assert (before.weights_digest, before.tokenizer_digest) == ("", "")
    model.generate([ask()])
    after = model.describe()
    assert (
        after.backend_version == f"{before.backend_version}, served judge fp_loopback"
    )
    assert replace(after, backend_version="") == replace(before, backend_version="")
    assert "secret" not in repr(after)


def test_the_prompt_digest_is_that_of_prompt_and_endpoint(openai_server, model_at):
    chat, completions = model_at(), model_at("endpoint=completions")
    digests = [
        result.prompt_digest
        for model in (chat, completions)
        for result in model.generate([ask("a"), ask("a", stop=("x",)), ask("b")])
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 4


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr(spec, "find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r'needs openai: pip install "pytest-kbrel\[openai\]"'
    ):
        OpenAIModel(
            OpenAISpec(
                text="openai/judge", name="judge", base_url="http://localhost/v1"
            )
        )
