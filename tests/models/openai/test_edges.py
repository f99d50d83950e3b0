"""What a server is told and what of its replies counts: the values beside those that usual requests have."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.openai.spec import OpenAISpec, parse_openai
from pytest_kbrel.models.registry import backend_of
from pytest_kbrel.records import Failed, GenerateRequest
from tests.openai_server import Fault


@pytest.fixture(autouse=True)
def _no_settings_of_mine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def model_at(model_at):
    def make(args="", name="judge"):
        return model_at(f"max_retries=0,{args}", name)

    return make


def ask(prompt="Where?", **more):
    return GenerateRequest(
        **({"prompt": prompt, "max_new_tokens": 8, "stop": ()} | more)
    )


@pytest.mark.parametrize(
    ("args", "request_", "path", "body"),
    [
        (
            "",
            ask(),
            "chat/completions",
            {
                "messages": [{"role": "user", "content": "Where?"}],
                "max_tokens": 8,
                "temperature": 0,
            },
        ),
        (
            "seed=0,endpoint=completions",
            ask(stop=("a", "b")),
            "completions",
            {
                "prompt": "Where?",
                "max_tokens": 8,
                "temperature": 0,
                "seed": 0,
                "stop": ["a", "b"],
            },
        ),
        (
            "logprobs=True,endpoint=completions",
            ask(),
            "completions",
            {"prompt": "Where?", "max_tokens": 8, "temperature": 0, "logprobs": 1},
        ),
    ],
)
def test_what_a_server_is_told_is_this_and_nothing_else(
    openai_server, model_at, args, request_, path, body
):
    model_at(args).generate([request_])
    (call,) = openai_server.calls
    assert (call.path, call.body) == (path, {"model": "judge", **body})


def test_log_probabilities_of_a_server_are_kept_with_the_answer(
    openai_server, model_at
):
    logprobs = {"content": [{"token": "Paris", "logprob": -0.6931472}]}
    openai_server.say = lambda text: "Paris"
    openai_server.inject(
        Fault(change=lambda reply: reply["choices"][0].update(logprobs=logprobs))
    )
    (answer,) = model_at("logprobs=True").generate([ask()])
    assert (answer.text, answer.probability, answer.first_probability) == (
        "Paris",
        0.5,
        0.5,
    )


@pytest.mark.parametrize(
    ("args", "decoding"), [("", "temperature 0"), ("seed=0", "temperature 0, seed 0")]
)
def test_a_seed_of_zero_is_a_seed(model_at, args, decoding):
    assert model_at(args).describe().decoding == decoding


def test_a_chat_is_told_from_a_completion_in_the_fingerprint(model_at):
    assert model_at().describe().chat_template is True
    assert model_at("endpoint=completions").describe().chat_template is False


@pytest.mark.parametrize("finish", ["content_filter", "tool_calls", "function_call"])
def test_a_reply_that_ended_for_another_reason_is_no_answer(
    openai_server, model_at, finish
):
    openai_server.inject(
        Fault(change=lambda reply: reply["choices"][0].update(finish_reason=finish))
    )
    assert model_at().generate([ask()]) == [
        Failed(error=f"the server gave no answer: {finish}")
    ]


@pytest.mark.parametrize("finish", ["stop", None, "eos"])
def test_a_reply_that_just_ended_is_one(openai_server, model_at, finish):
    openai_server.inject(
        Fault(change=lambda reply: reply["choices"][0].update(finish_reason=finish))
    )
    (result,) = model_at().generate([ask()])
    assert (result.text, result.finish) == ("unsure", "stop")


@pytest.mark.parametrize("asked", [ask(steps=True), ask(watch=(1,)), ask(num_beams=2)])
def test_what_a_server_cannot_be_asked_is_not_sent(openai_server, model_at, asked):
    (result,) = model_at().generate([asked])
    assert isinstance(result, Failed)
    assert openai_server.calls == []


def test_a_text_ends_at_the_stop_that_comes_first(openai_server, model_at):
    openai_server.say = lambda text: "one two three"
    # The server keeps to four of them; the others are cut here.
    stops = ("a1", "a2", "a3", "a4", "three", "two")
    (result,) = model_at().generate([ask(stop=stops)])
    assert result.text == "one"


def test_a_server_that_counts_no_tokens_has_none(openai_server, model_at):
    changes = [
        lambda reply: reply.pop("usage"),
        lambda reply: reply["usage"].update(prompt_tokens=None),
    ]
    for change in changes:
        openai_server.inject(Fault(change=change))
        assert model_at().generate([ask()])[0].prompt_tokens == 0


@pytest.mark.parametrize(
    ("change", "served"),
    [
        (lambda reply: None, {"judge fp_loopback"}),
        (lambda reply: reply.pop("system_fingerprint"), {"judge"}),
        (lambda reply: reply.update(model="judge-2"), {"judge-2 fp_loopback"}),
        (lambda reply: reply.update(model=None), {"fp_loopback"}),
    ],
)
def test_what_a_server_says_that_it_served(openai_server, model_at, change, served):
    openai_server.inject(Fault(change=change))
    model = model_at()
    model.generate([ask()])
    assert model.served == served


def test_what_a_server_says_of_a_model_is_its_own_entry_without_what_changes_from_call_to_call(
    openai_server, model_at
):
    openai_server.about = {"root": "/v1", "created": 7, "permission": [{"id": "x"}]}
    said = json.loads(model_at().about())
    # The client adds what it knows of beside that.
    assert {key: value for key, value in said.items() if value is not None} == {
        "id": "judge",
        "object": "model",
        "owned_by": "tests",
        "root": "/v1",
    }
    openai_server.about = {"root": "/v1", "created": 8, "permission": [{"id": "y"}]}
    assert json.loads(model_at().about()) == said
    assert model_at(name="unknown").about() == ""
    openai_server.models = ()
    assert model_at().about() == ""


@pytest.mark.parametrize(
    ("text", "result"),
    [
        (" openai/x ", True),
        (" openai ", True),
        ("Openai/x", False),
        ("x/openai/", False),
        ("", False),
    ],
)
def test_which_spec_names_a_served_model(text, result):
    assert (backend_of(text).name == "openai") is result


@pytest.mark.parametrize(
    ("args", "field", "value"),
    [
        ("base_url=https://h/v1///", "base_url", "https://h/v1"),
        ("base_url=http://h/v1/chat/completions/", "base_url", "http://h/v1"),
        (
            "base_url=http://h/v1/completions,endpoint=completions",
            "endpoint",
            "completions",
        ),
        ("base_url=http://h/v1/chat/completions,endpoint=chat", "endpoint", "chat"),
        ("endpoint=chat", "endpoint", "chat"),
        ("max_concurrent=1", "max_concurrent", 1),
        ("max_concurrent=auto", "max_concurrent", 8),
        ("num_concurrent=auto", "max_concurrent", 8),
        ("timeout=0.1", "timeout", 0.1),
        ("seed=0", "seed", 0),
        ("seed=999999999", "seed", 999_999_999),
        ("max_retries=0", "max_retries", 0),
    ],
)
def test_the_least_and_the_most_that_an_argument_may_be(args, field, value):
    assert getattr(parse_openai("openai/x", args), field) == value


@pytest.mark.parametrize(
    "args",
    [
        *(
            "seed=9223372036854775808",
            "seed=-1",
            "seed=+1",
            "seed=1.0",
            "seed=²",
            "seed=١",
        ),
        *(
            "max_retries=1.5",
            "max_concurrent=-1",
            "max_concurrent=1.5",
            "timeout=-1",
            "timeout=nan",
        ),
        *("endpoint=Chat", "base_url=http:///v1", "base_url=//h/v1", "base_url=HTTP"),
        *(
            "base_url=http://:pass@h/v1",
            "base_url=http://h/v1/chat/completions,endpoint=completions",
        ),
    ],
)
def test_what_lies_just_beside_is_refused(args):
    with pytest.raises(ModelError):
        parse_openai("openai/x", args)


def test_a_model_of_which_nothing_is_said(monkeypatch):
    # An unset variable is none.
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    assert parse_openai("openai/x") == OpenAISpec(
        text="openai/x",
        name="x",
        backend="openai",
        base_url="https://api.openai.com/v1",
        api_key_env="OPENAI_API_KEY",
        endpoint="chat",
        max_concurrent=8,
        timeout=60.0,
        max_retries=4,
        seed=None,
    )
