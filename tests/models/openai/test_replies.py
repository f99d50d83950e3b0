"""Bodies of replies, read as JSON and as answers."""

from __future__ import annotations

import contextlib
import json

import pytest

from pytest_kbrel.models.openai.client import read_json
from pytest_kbrel.models.openai.model import OpenAIModel, Reply, read_reply
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import to_wire
from tests.raw_server import RawServer, chat, http

NAN = float("nan")


def read(content):
    """Return what becomes of a body."""
    result = read_json(content.encode() if isinstance(content, str) else content)
    return result if isinstance(result, Failed) else read_reply(result)


def with_choice(**more):
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": "Paris"},
        "finish_reason": "stop",
    }
    return json.dumps({"choices": [choice | more]})


def completion(**more):
    return json.dumps({"choices": [{"index": 0, "finish_reason": "stop"} | more]})


def deep(levels):
    return "[" * levels + "]" * levels


NO_JSON, NO_ANSWER, NO_TEXT, NO_FINISH = (
    "the server's reply is no JSON (",
    "the server's reply holds no answer: ",
    "the server's reply holds no text: ",
    "the server's finish_reason is no text: ",
)


@pytest.mark.parametrize(
    ("said", "bodies"),
    [
        (NO_JSON, ["", "<html>", 'data: {"choices": []}', chat() + chat()]),
        (
            NO_JSON,
            [
                deep(900),
                deep(100_000),
                '{"a":' * 100_000,
                chat()[:-9].encode() + b"\xff",
            ],
        ),
        (NO_JSON, ['{"usage": ' + "9" * 5000 + "}"]),
        (NO_ANSWER, ["null", "[]", "NaN", '"hello"', "{}"]),
        (NO_ANSWER, [json.dumps({"choices": one}) for one in (None, [], {"0": {}})]),
        (NO_ANSWER, [json.dumps({"choices": [one]}) for one in (None, [], "text", 7)]),
        (NO_ANSWER, [with_choice(message=one) for one in (None, [], "text", 7)]),
        (NO_TEXT, [chat(one) for one in (0, False, [], {"text": "x"}, NAN)]),
        (NO_TEXT, [completion(text=one) for one in (7, True, ["Paris"])]),
        # Whether the answer was cut short is not known then.
        (NO_FINISH, [with_choice(finish_reason=one) for one in (0, False, ["length"])]),
    ],
)
def test_what_is_no_answer_is_an_error_that_shows_its_beginning(said, bodies):
    for body in bodies:
        result = read(body)
        assert isinstance(result, Failed), body
        assert result.error.startswith(said)
        assert len(result.error) < 300


@pytest.mark.parametrize(
    "body", [chat(None), chat(""), with_choice(message={}), completion(text=None)]
)
def test_no_text_is_an_empty_answer(body):
    assert read(body) == Reply(content="")


@pytest.mark.parametrize(
    "count", [NAN, float("inf"), -1, 1.5, 10**12 + 1, "12", True, None, [3]]
)
def test_a_count_of_tokens_that_is_none_counts_as_none_and_the_answer_stays(count):
    usage = {
        "prompt_tokens": count,
        "completion_tokens_details": {"reasoning_tokens": count},
    }
    assert read(chat(usage=usage)) == Reply(content="Paris")
    assert read(chat(usage=count)) == Reply(content="Paris")


def test_counts_of_tokens_are_read():
    usage = {
        "prompt_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 10**12},
    }
    result = read(chat(usage=usage))
    assert (result.prompt_tokens, result.thought_tokens) == (12, 10**12)


@pytest.mark.parametrize(
    ("logprobs", "probabilities"),
    [
        ({"content": [{"logprob": -0.6931472}, {"logprob": 0}]}, (0.75, 0.5)),
        ({"tokens": ["a", "b"], "token_logprobs": [-0.6931472, 0]}, (0.75, 0.5)),
        *((one, (None, None)) for one in (None, NAN, 3, {"content": [3]})),
        ({"content": [{"logprob": float("-inf")}]}, (None, None)),
        ({"token_logprobs": [0.1]}, (None, None)),
        ({"token_logprobs": [True]}, (None, None)),
    ],
)
def test_probabilities_of_a_reply_are_read_in_the_form_of_either_endpoint(
    logprobs, probabilities
):
    mean, first = probabilities
    assert read(with_choice(logprobs=logprobs)) == Reply(
        content="Paris", probability=mean, first_probability=first
    )


@pytest.mark.parametrize("apart", [None, 7, ["thought"], NAN])
def test_a_thought_that_is_no_text_is_none(apart):
    message = {"content": "Paris", "reasoning_content": apart, "reasoning": "Seine"}
    assert read(with_choice(message=message)) == Reply(content="Paris", apart="Seine")


def test_halves_of_surrogate_pairs_are_replaced():
    body = '{"choices": [{"message": {"content": "Par\\ud800is", "reasoning": "\\udfff"}}]}'
    assert read(body) == Reply(content="Par\ufffdis", apart="\ufffd")
    json.dumps(to_wire(read(body)), ensure_ascii=False).encode()


def test_of_equal_keys_the_last_counts():
    assert read('{"choices": [], "choices": [{"text": "a", "text": "b"}]}') == Reply(
        content="b"
    )


def test_a_mark_of_the_byte_order_is_no_error():
    assert read(b"\xef\xbb\xbf" + chat().encode()) == Reply(content="Paris")


@pytest.mark.slow
def test_a_list_of_models_that_is_none_says_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-friend")
    bodies = {
        "null": "",
        "NaN": "",
        '{"data": {"id": "judge"}}': "",
        '{"data": [7, {"id": ["judge"]}, {"name": "judge"}]}': "",
        "[" * 100_000: "",
        '{"data": [7, {"id": "judge", "created": 1, "a": NaN}]}': '{"a": NaN, "id": "judge"}',
    }
    replies = iter(bodies)
    with RawServer(lambda request: [http(next(replies))]) as server:
        spec = parse_openai("openai/judge", f"base_url={server.base_url}")
        with contextlib.closing(OpenAIModel(spec)) as model:
            assert [model.about() for _ in bodies] == list(bodies.values())
