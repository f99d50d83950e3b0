"""Bodies of replies, read as JSON and as answers."""

from __future__ import annotations

import contextlib
import json
from functools import partial

import pytest

from pytest_kbrel.models.openai.client import read_json
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.replies import Reply, read_reply
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


UPSTREAM = {"code": 502, "message": "Upstream error"}


def deep(levels):
    return "[" * levels + "]" * levels


HALF = -0.6931472


def chat_tokens(*tokens):
    """Return tokens with the probabilities 1/2, 1/4 ...; the last of two has 1."""
    values = [HALF, 0] if len(tokens) == 2 else [HALF * n for n in range(1, 9)]
    pairs = zip(tokens, values, strict=False)
    return {"content": [{"token": token, "logprob": nats} for token, nats in pairs]}


NO_JSON, NO_ANSWER, NO_TEXT, NO_END, NOT_WRITTEN = (
    "the server's reply is no JSON (",
    "the server's reply holds no answer: ",
    "the server's reply holds no text: ",
    "the server gave no answer: finish_reason ",
    "the server gave no answer: ",
)


@pytest.mark.parametrize(
    ("said", "bodies"),
    [
        (NO_JSON, ["", "<html>", chat() + chat(), deep(900), deep(100_000)]),
        (NO_JSON, [chat()[:-9].encode() + b"\xff", '{"usage": ' + "9" * 5000 + "}"]),
        (NO_ANSWER, ["null", "NaN", '"hello"', '{"choices": {"0": {}}}']),
        (NO_ANSWER, [json.dumps({"choices": [one]}) for one in (None, [], "text")]),
        (NO_ANSWER, [with_choice(message=one) for one in (None, [], 7)]),
        (NO_TEXT, [chat(one) for one in (0, False, {"text": "x"}, NAN)]),
        (NO_TEXT, [completion(text=["Paris"])]),
        (
            NO_END,
            [
                made(finish_reason=one)
                for made in (with_choice, partial(completion, text="Paris"))
                for one in ("error", "abort", "content_filter", "", 0, ["length"])
            ],
        ),
        (
            NOT_WRITTEN,
            [
                with_choice(error="Upstream error", finish_reason=None),
                with_choice(message={"content": "Th", "error": UPSTREAM}),
                with_choice(message={"content": None, "tool_calls": [{"id": "x"}]}),
                completion(text="Th", error=UPSTREAM),
                json.dumps({"error": UPSTREAM}),
            ],
        ),
    ],
)
def test_what_is_no_answer_is_an_error_that_shows_its_beginning(said, bodies):
    for body in bodies:
        result = read(body)
        assert isinstance(result, Failed), body
        assert result.error.startswith(said)
        assert len(result.error) < 300


@pytest.mark.parametrize(
    "finish", [None, "stop", "eos", "eos_token", "stop_sequence", "length"]
)
def test_answers_end_at_a_stop_or_at_the_limit(finish):
    said = {"finish_reason": finish, "error": None}
    nothing = {"content": "Paris", "tool_calls": [], "function_call": None}
    ended = finish != "length"
    assert read(with_choice(message=nothing, **said)) == Reply(
        content="Paris", ended=ended
    )
    assert read(completion(text="Paris", **said)).ended == ended


@pytest.mark.parametrize(
    "body", [chat(None), chat(""), with_choice(message={}), completion(text=None)]
)
def test_no_text_is_an_empty_answer(body):
    assert read(body) == Reply(content="")


@pytest.mark.parametrize(
    ("count", "read_as"), [(12, 12), (NAN, 0), (-1, 0), (10**12 + 1, 0), ([3], 0)]
)
def test_a_count_of_tokens_that_is_none_counts_as_none_and_the_answer_stays(
    count, read_as
):
    usage = {
        "prompt_tokens": count,
        "completion_tokens_details": {"reasoning_tokens": count},
    }
    expected = Reply(content="Paris", prompt_tokens=read_as, thought_tokens=read_as)
    assert read(chat(usage=usage)) == expected
    assert read(chat(usage=count)) == Reply(content="Paris")


@pytest.mark.parametrize(
    ("logprobs", "probabilities"),
    [
        (chat_tokens("Par", "is"), [0.5, 1.0]),
        ({"tokens": ["Par", "is"], "token_logprobs": [HALF, 0]}, [0.5, 1.0]),
        # What stands around an answer, and ends it, is no part of it.
        (chat_tokens("\n", " Par", "is", "<|im_end|>", "\n"), [0.25, 0.125]),
        # Bytes tell what the texts of tokens do not.
        (
            {
                "content": [
                    {"token": "\ufffd", "bytes": list(b"Par"), "logprob": HALF},
                    {"token": "\ufffd", "bytes": list(b"is"), "logprob": 0},
                ]
            },
            [0.5, 1.0],
        ),
        # They are those of something else.
        (chat_tokens("Par"), []),
        (chat_tokens("Paris", " is"), []),
        (chat_tokens("Not ", "Par", "is"), []),
        (chat_tokens("Thus it is Par", "is"), []),
        *((one, []) for one in (None, 3, {"content": [3]})),
        ({"content": [{"token": "Paris", "logprob": -9999.0}]}, []),
        ({"content": [{"token": "Paris", "logprob": 0, "bytes": 10**12}]}, []),
        ({"tokens": ["Paris"], "token_logprobs": [0.1]}, []),
        ({"tokens": ["Paris", ""], "token_logprobs": [0]}, []),
    ],
)
def test_probabilities_are_those_of_the_answers_tokens(logprobs, probabilities):
    reply = read(with_choice(logprobs=logprobs))
    assert reply.content == "Paris"
    assert reply.probabilities("Paris", "") == pytest.approx(probabilities)


def test_behind_a_thought_the_probabilities_are_those_of_the_answers_tokens():
    tokens = chat_tokens("<think>", "Paris", "?", "</think>", "\n", "Par", "is")
    reply = read(with_choice(logprobs=tokens))
    assert reply.probabilities("Paris", "Paris?") == pytest.approx(
        [1 / 64, 1 / 128], rel=1e-3
    )
    # A server may tell those of the thought alone.
    reply = read(with_choice(logprobs=chat_tokens("It is ", "Par", "is")))
    assert reply.probabilities("Paris", "It is Paris") == []
    # Of an empty answer it is that of its end.
    reply = read(with_choice(logprobs=chat_tokens("<|im_end|>")))
    assert reply.probabilities("", "") == pytest.approx([0.5])


@pytest.mark.parametrize("apart", [None, 7, ["thought"], NAN])
def test_a_thought_that_is_no_text_is_none(apart):
    message = {"content": "Paris", "reasoning_content": apart, "reasoning": "Seine"}
    assert read(with_choice(message=message)) == Reply(content="Paris", apart="Seine")


def test_halves_of_surrogate_pairs_and_equal_keys_are_read():
    body = '{"choices": [{"message": {"content": "Par\\ud800is", "reasoning": "\\udfff"}}]}'
    assert read(body) == Reply(content="Par\ufffdis", apart="\ufffd")
    json.dumps(to_wire(read(body)), ensure_ascii=False).encode()
    assert (
        read('{"choices": [], "choices": [{"text": "a", "text": "b"}]}').content == "b"
    )
    assert read(b"\xef\xbb\xbf" + chat().encode()) == Reply(content="Paris")


@pytest.mark.slow
def test_a_list_of_models_that_is_none_says_nothing(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-friend")
    bodies = {
        "null": "",
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
