"""What a server is sent, and what its replies become."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.openai import spec
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.records import Failed, GenerateRequest, ScoreRequest
from tests.openai_server import (
    EMPTY,
    NULL,
    REFUSAL,
    Fault,
)

KEY = "sk-very-secret"


def ask(prompt="Where?", **more):
    return GenerateRequest(prompt=prompt, max_new_tokens=8, **more)


def refusal(message):
    return Fault(status=400, message=message)


def with_choice(**more):
    return Fault(change=lambda reply: reply["choices"][0].update(more))


USER = {"role": "user", "content": "Where?"}


@pytest.mark.parametrize(
    ("args", "request_", "path", "body"),
    [
        ("", ask(stop=()), "chat/completions", {"messages": [USER]}),
        (
            "seed=0,endpoint=completions,logprobs=True",
            ask(stop=("a", "b")),
            "completions",
            {"prompt": "Where?", "seed": 0, "logprobs": 1, "stop": ["a", "b"]},
        ),
        (
            'system_instruction="Be brief, please.",chat_template_args={"a": [1, 2]},'
            "enable_thinking=False,logprobs=True",
            ask(system="Say unsure.", turns=(("Which river?", "the Nile"),)),
            "chat/completions",
            {
                "messages": [
                    {"role": "system", "content": "Be brief, please.\n\nSay unsure."},
                    {"role": "user", "content": "Which river?"},
                    {"role": "assistant", "content": "the Nile"},
                    USER,
                ],
                "chat_template_kwargs": {"a": [1, 2], "enable_thinking": False},
                "logprobs": True,
                "stop": ["\n"],
            },
        ),
        (
            'endpoint=completions,system_instruction="Be brief."',
            ask(stop=(), turns=(("Q: a\nA:", "b"),)),
            "completions",
            {"prompt": "Be brief.\n\nQ: a\nA: b\n\nWhere?"},
        ),
        # The protocol takes four stop strings; what other ones end is cut here.
        (
            "",
            ask(stop=("a1", "a2", "a3", "a4", "three", "two")),
            "chat/completions",
            {"messages": [USER], "stop": ["a1", "a2", "a3", "a4"]},
        ),
    ],
)
def test_what_a_server_is_told_is_this_and_nothing_else(
    openai_server, model_at, args, request_, path, body
):
    openai_server.say = lambda text: "  one two three\nfour"
    (result,) = model_at(args).generate([request_])
    call = openai_server.calls[0]
    always = {"model": "judge", "temperature": 0, "max_tokens": 8}
    assert (call.path, call.body) == (path, {**always, **body})
    assert result.text == {"two": "one", "\n": "one two three"}.get(
        (request_.stop or ("",))[-1], "one two three\nfour"
    )
    assert result.finish == "stop"


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


def test_an_answer_that_did_not_end_is_asked_for_again(openai_server, model_at):
    openai_server.inject(with_choice(finish_reason="abort"))
    (result,) = model_at().generate([ask()])
    assert result.text == "unsure"
    openai_server.always = with_choice(error={"code": 502})
    (result,) = model_at("max_retries=1").generate([ask()])
    assert isinstance(result, Failed)
    assert len(openai_server.calls) == 4
    assert openai_server.calls[0].body == openai_server.calls[3].body


@pytest.mark.parametrize(
    ("fault", "args", "answer"),
    [
        (EMPTY, "", ("", "stop", 1, None)),
        (NULL, "", ("", "stop", 1, None)),
        (REFUSAL, "", ("", "stop", 1, None)),
        (
            Fault(change=lambda reply: reply.pop("usage")),
            "",
            ("unsure", "stop", 0, None),
        ),
        (
            with_choice(
                logprobs={"content": [{"token": "unsure", "logprob": -0.6931472}]}
            ),
            "logprobs=True",
            ("unsure", "stop", 1, 0.5),
        ),
        (with_choice(finish_reason="length"), "", ("unsure", "length", 1, None)),
    ],
)
def test_what_a_reply_becomes(openai_server, model_at, fault, args, answer):
    openai_server.always = fault
    (got,) = model_at(args).generate([ask()])
    assert (got.text, got.finish, got.prompt_tokens, got.probability) == answer
    assert got.first_probability == got.probability


def test_headers_and_more_of_a_body_are_sent_and_told_without_what_is_secret(
    openai_server, model_at, monkeypatch
):
    monkeypatch.setenv("MY_TOKEN", KEY)
    openai_server.say = lambda text: f"I know {KEY}"
    model = model_at(
        'headers={"X-Team": "kb", "X-Token_env": "MY_TOKEN"},reasoning_effort=low,'
        'extra_body={"provider": {"order": ["a"]}}'
    )
    (result,) = model.generate([ask()])
    (call,) = openai_server.calls
    assert (call.headers["x-team"], call.headers["x-token"]) == ("kb", KEY)
    assert call.body["provider"] == {"order": ["a"]}
    assert call.body["reasoning_effort"] == "low"
    assert result.text == "I know ***"
    assert json.loads(model.describe().prompting) == {
        "extra_body": {"provider": {"order": ["a"]}, "reasoning_effort": "low"},
        "headers": {"X-Team": "kb", "X-Token_env": "MY_TOKEN"},
    }
    assert "very-secret" not in repr(model.describe())
    monkeypatch.delenv("MY_TOKEN")
    with pytest.raises(ModelError, match="headers names for X-Token_env holds no"):
        model_at('headers={"X-Token_env": "MY_TOKEN"}')


@pytest.mark.parametrize(
    "end",
    [
        *("<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>", "<end_of_turn>"),
        *("<｜end▁of▁sentence｜>", "[EOS]", "[|endofturn|]", "<|return|>"),
    ],
)
def test_an_end_token_that_a_server_leaves_in_the_text_ends_it(
    openai_server, model_at, end
):
    openai_server.say = lambda text: f"Paris{end}\n"
    (result,) = model_at().generate([ask(stop=())])
    assert (result.text, result.finish) == ("Paris", "stop")


@pytest.mark.parametrize(
    ("name", "args", "fault", "said"),
    [
        (
            "judge",
            "",
            Fault(status=403, message=f"Bad: {KEY}"),
            r"refuses the key in OP",
        ),
        (
            "nobody",
            "",
            None,
            r"does not know 'nobody', .*allowed is a name and a base_url",
        ),
        (
            "judge",
            "",
            refusal("'temperature' does not support 0 with this model."),
            r"refuses temperature 0: .*allowed: a model that takes temperature 0",
        ),
        (
            "judge",
            "enable_thinking=False",
            refusal("Unrecognized request argument: chat_template_kwargs"),
            r"takes no chat_template_kwargs: .*allowed: model-args without .*enable_think",
        ),
        (
            "judge",
            "reasoning_effort=low",
            refusal("Unrecognized request argument: reasoning_effort"),
            r"takes no reasoning_effort: .*allowed: model-args without .*reasoning_effort",
        ),
    ],
)
def test_what_no_other_request_can_mend_ends_the_run(
    openai_server, model_at, monkeypatch, name, args, fault, said
):
    openai_server.always = fault
    model = model_at(f"max_concurrent=1,{args}", name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with pytest.raises(
        ModelError, match=rf"^openai/{name}: the server {openai_server.base_url} {said}"
    ):
        model.generate([ask()] * 50)
    assert len(openai_server.calls) < 10


@pytest.mark.parametrize("args", ["", "endpoint=completions"])
def test_what_newer_models_refuse_is_left_out_from_then_on(
    openai_server, model_at, args
):
    openai_server.inject(
        refusal("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'."),
        refusal("Unsupported parameter: 'stop' is not supported with this model."),
    )
    openai_server.say = lambda text: "Paris\nTokyo"
    model = model_at(f"max_concurrent=1,{args}")
    results = model.generate([ask("a"), ask("b")])
    # Answers are cut here as well.
    assert [result.text for result in results] == ["Paris"] * 2
    assert [
        ("stop" in call.body, "max_completion_tokens" in call.body)
        for call in openai_server.calls
    ] == [(True, False), (True, True), (False, True), (False, True)]


def test_what_a_server_cannot_be_asked_is_not_sent(openai_server, model_at):
    model = model_at()
    (scored,) = model.score([ScoreRequest(prompt="a", continuation=" b")])
    stepped, watched, beamed = model.generate(
        [ask(steps=True), ask(watch=(1,)), ask(num_beams=2)]
    )
    assert "token ids" in scored.error
    assert "does not show the steps" in stepped.error
    assert stepped == watched
    assert "beam" in beamed.error
    assert openai_server.calls == []


def test_the_fingerprint_names_model_and_server_and_no_secret(
    openai_server, model_at, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = model_at("endpoint=completions,seed=0")
    before = model.describe()
    assert (before.spec, before.backend, before.architecture, before.device) == (
        *("openai/judge", "openai", "judge"),
        openai_server.base_url,
    )
    assert (before.decoding, before.chat_template) == ("temperature 0, seed 0", False)
    assert (before.weights_digest, before.tokenizer_digest) == ("", "")
    model.generate([ask()])
    version = f"{before.backend_version}, served judge fp_loopback"
    assert model.describe() == replace(before, backend_version=version)
    assert "secret" not in repr(model.describe())
    chat = model_at('system_instruction="Be brief."').describe()
    assert (chat.decoding, chat.chat_template) == ("temperature 0", True)
    assert "Be brief." in chat.prompting


def test_the_prompt_digest_is_that_of_all_that_a_prompt_is_made_of(model_at):
    models = [
        model_at(args)
        for args in ("", "endpoint=completions", 'system_instruction="Be brief."')
    ]
    digests = [
        result.prompt_digest
        for model in models
        for result in model.generate([ask("a"), ask("a", stop=("x",)), ask("b")])
    ]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 6


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
