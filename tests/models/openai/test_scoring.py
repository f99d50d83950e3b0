from __future__ import annotations

import contextlib
import math
import re

import pytest
from transformers import AutoTokenizer

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.registry import BACKENDS, read_spec
from pytest_kbrel.records import (
    Failed,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)
from tests.models import tiny_checkpoints
from tests.models.openai import scoring_server
from tests.models.openai.scoring_server import ROUTES, logprob, tokens_of
from tests.openai_server import Fault

RAW = "endpoint=completions"
VLLM, STEPS, ECHO, LLAMA_CPP, SGLANG = ROUTES


@pytest.fixture
def served(openai_server):
    """Return a function that makes the loopback server score in a dialect, with a tokenizer."""

    def serve(name):
        openai_server.routes = {"/tokenize": scoring_server.tokenize, **ROUTES[name]}
        return openai_server

    return serve


def asked(prompt="Berlin is in", continuation=" Germany"):
    return ScoreRequest(prompt=prompt, continuation=continuation)


def wrapped(route, change):
    """Return a route whose replies are changed where they have what the change is about."""

    def changed(call):
        reply = route(call)
        with contextlib.suppress(LookupError, TypeError):
            change(reply)
        return reply

    return changed


@pytest.mark.parametrize("name", ROUTES)
def test_each_dialect_gives_the_probabilities_of_the_tokens_that_were_sent(
    served, model_at, name
):
    server = served(name)
    model = model_at(f'{RAW},extra_body={{"provider": "a"}}')
    assert not model.notes
    requests = [
        asked(),
        asked("Paris is in", " France"),
        asked("Rome is in", " Italy, too"),
    ]
    responses = model.score(requests)
    for request, response in zip(requests, responses, strict=True):
        assert isinstance(response, Scored)
        before, targets = (
            tokens_of(request.prompt),
            tokens_of(request.continuation, special=False),
        )
        expected = [
            logprob([*before, *targets[:n]], token) for n, token in enumerate(targets)
        ]
        assert response.probabilities == pytest.approx(
            [math.exp(value) for value in expected]
        )
        assert response.token_ids == tuple(targets)
        assert response.prompt_tokens == len(before)
    assert not model.unscorable
    what = f"probabilities by {name}, token ids by the server's /tokenize"
    assert model.notes == (f"the server gives {what}",)
    assert f", {what}" in model.describe().backend_version
    asked_of_it = [call for call in server.calls if call.path != "/tokenize"]
    assert {call.body["provider"] for call in asked_of_it} == {"a"}


def test_a_server_that_cannot_score_is_refused_with_what_was_tried(openai_server):
    def why(args):
        spec = read_spec("openai/judge", f"base_url={openai_server.base_url},{args}")
        return BACKENDS[spec.backend].unscorable(spec)

    # Over chat nothing is asked.
    assert "tokenizer=FOLDER" in why("")
    assert openai_server.calls == []
    openai_server.routes = {"completions": scoring_server.vllm}
    assert re.search("/tokenize.*tokenizer=FOLDER", why(RAW))
    openai_server.routes = {
        "completions": scoring_server.writer,
        "/tokenize": scoring_server.tokenize,
    }
    assert all(name in why(RAW) for name in ROUTES)
    openai_server.always = Fault(status=401, message="no such key")
    with pytest.raises(ModelError, match="refuses the key"):
        why(RAW)


TEMPLATE = "{% for m in messages %}<s>{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}>{% endif %}"


@pytest.mark.parametrize(
    ("endpoint", "options", "answer"),
    [("chat", {"chat_template": TEMPLATE}, "Germany"), ("completions", {}, " Germany")],
)
def test_the_checkpoints_own_tokenizer_makes_the_ids(
    openai_server, model_at, tmp_path, endpoint, options, answer
):
    tiny_checkpoints.make_tokenizer(tmp_path, "bos", **options)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    sent = []

    def prompt_of(text):
        chat = [{"role": "user", "content": text}]
        if endpoint == "chat":
            text = tokenizer.apply_chat_template(
                chat, tokenize=False, add_generation_prompt=True
            )
        return tokenizer(text, add_special_tokens=endpoint != "chat")["input_ids"]

    def wrote(call):
        usage = {"prompt_tokens": len(prompt_of(call.text))}
        return {
            "choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
            "usage": usage,
        }

    def scored(call):
        if isinstance(call.body["prompt"], str):
            return {
                "choices": [{"text": "x"}],
                "usage": {"prompt_tokens": len(prompt_of(call.text))},
            }
        sent.append(call.body["prompt"])
        return scoring_server.vllm(call)

    openai_server.routes = {"chat/completions": wrote, "completions": scored}
    model = model_at(f"endpoint={endpoint},tokenizer={tmp_path}")
    (response,) = model.score([asked()])
    assert isinstance(response, Scored)
    before, targets = (
        prompt_of("Berlin is in"),
        tokenizer(answer, add_special_tokens=False)["input_ids"],
    )
    assert sent[-1] == [*before, *targets]
    assert response.token_ids == tuple(targets)
    assert str(tmp_path) in model.notes[-1]
    # No server has to continue a chat's answer: it gets the tokens of prompt and lead.
    led = GenerateRequest(prompt="Berlin is in", max_new_tokens=3, lead="It is")
    (written,) = model.generate([led])
    assert isinstance(written, Generated), written
    behind = {"chat": "It is", "completions": " It is"}[endpoint]
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"]
    assert sent[-1] == [*before, *ids]


def test_another_tokenisation_than_the_servers_is_refused(served, model_at):
    server = served(VLLM)
    server.routes["/tokenize"] = lambda call: {
        "tokens": tokens_of(call.text, special=False)
    }
    why = model_at(RAW).unscorable
    assert "its tokenisation is another one" in why
    (response,) = model_at(RAW).score([asked()])
    assert response == Failed(error=why)


def _choice(reply):
    return reply["choices"][0]


def shorter(reply):
    del _choice(reply)["logprobs"]["token_logprobs"][0]


def left_out(reply):
    _choice(reply)["prompt_logprobs"][-2] = None


def all_left_out(reply):
    # Only where there were some.
    assert _choice(reply)["prompt_logprobs"]
    _choice(reply)["prompt_logprobs"] = None


def renamed(reply):
    entries = _choice(reply)["prompt_logprobs"]
    entries[-1] = {"999": next(iter(entries[-1].values()))}


def positive(reply):
    _choice(reply)["logprobs"]["token_logprobs"][-2] = 0.7


def written_as(value):
    def change(reply):
        next(iter(_choice(reply)["prompt_logprobs"][-1].values()))["logprob"] = value

    return change


def more_tokens(reply):
    assert _choice(reply)["prompt_logprobs"]
    reply["usage"]["prompt_tokens"] += 1


def another_named(reply):
    (entries,) = _choice(reply)["logprobs"]["top_logprobs"]
    entries.popitem()
    entries["token_id:999"] = -1.0


def none_named(reply):
    _choice(reply)["logprobs"]["top_logprobs"] = None


def another_id(reply):
    reply["completion_probabilities"][0]["id"] = 999


def no_entry(reply):
    reply["completion_probabilities"] = []


def prompt_cut(reply):
    reply["tokens_evaluated"] -= 1


def other_ids(reply):
    reply["meta_info"]["input_token_logprobs"][-1][1] = 999


def no_number(reply):
    reply["meta_info"]["input_token_logprobs"][-1][0] = None


TRAPS = [
    (ECHO, shorter, "log-probabilities, where a prompt of"),
    (ECHO, positive, "not a log-probability: 0.7"),
    (VLLM, left_out, "a prefix cache may have left it out"),
    (VLLM, all_left_out, "holds no log-probabilities of the prompt"),
    (VLLM, renamed, "the reply is about 999"),
    (VLLM, written_as(-9999.0), "-9999.0 stands for minus infinity or NaN"),
    (VLLM, written_as(math.nan), "not a log-probability: nan"),
    (VLLM, more_tokens, "in the prompt"),
    (STEPS, another_named, "log-probability of token_id:120, token_id:999"),
    (STEPS, none_named, "log-probability of nothing"),
    (LLAMA_CPP, another_id, "the reply is about [999]"),
    (LLAMA_CPP, no_entry, "told no probability of a token"),
    (LLAMA_CPP, prompt_cut, "in the prompt"),
    (SGLANG, other_ids, "999"),
    (SGLANG, no_number, "a prefix cache may have left it out"),
]


@pytest.mark.parametrize(("name", "change", "said"), TRAPS)
def test_a_reply_that_does_not_hold_the_probabilities_is_believed_at_no_time(
    served, model_at, name, change, said
):
    server = served(name)
    model = model_at(RAW)
    assert not model.unscorable
    *_, path = ROUTES[name]
    server.routes[path] = wrapped(ROUTES[name][path], change)
    (first,) = model.score([asked()])
    assert isinstance(first, Failed)
    assert said in first.error
    # A dialect that fails its probe is not used.
    assert said in model_at(RAW).unscorable


def test_where_the_first_way_of_vllm_is_out_of_order_its_second_is_used(
    served, model_at
):
    server = served(VLLM)

    def stale(call):
        reply = (
            scoring_server.vllm(call)
            if "prompt_logprobs" in call.body
            else scoring_server.vllm_steps(call)
        )
        if "prompt_logprobs" in call.body:
            reply["choices"][0]["prompt_logprobs"][-2] = None
        return reply

    server.routes["completions"] = stale
    model = model_at(RAW)
    assert not model.unscorable
    assert STEPS in model.notes[-1]


def test_probabilities_after_the_bias_are_not_believed(served, model_at):
    server = served(LLAMA_CPP)

    def certain(call):
        reply = scoring_server.llama_cpp(call)
        reply["completion_probabilities"][0]["logprob"] = 0.0
        return reply

    server.routes["/completion"] = certain
    assert "no probabilities of one distribution" in model_at(RAW).unscorable


@pytest.mark.parametrize(
    ("name", "base"), [*((name, 2) for name in ROUTES), (VLLM, 10)]
)
def test_logarithms_to_another_base_are_not_believed(
    served, model_at, monkeypatch, name, base
):
    served(name)
    nats = scoring_server.logprob
    monkeypatch.setattr(
        scoring_server, "logprob", lambda *asked: nats(*asked) / math.log(base)
    )
    said = {2: "are to the base 2", 10: "no probabilities of one distribution"}
    assert said[base] in model_at(RAW).unscorable


def test_probabilities_that_change_with_the_prefix_cache_are_not_believed(
    served, model_at
):
    server = served(VLLM)
    seen = []

    def stale(call):
        reply = scoring_server.vllm(call)
        if "prompt_logprobs" in call.body:
            seen.append(call)
            if len(seen) > 1:
                for entry in reply["choices"][0]["prompt_logprobs"][1:]:
                    next(iter(entry.values()))["logprob"] -= 1.0
        return reply

    server.routes["completions"] = stale
    assert (
        "other probabilities when they were asked for again" in model_at(RAW).unscorable
    )
