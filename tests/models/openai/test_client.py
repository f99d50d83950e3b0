"""The connection to a server: its event loop, and replies read as JSON and as answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from concurrent.futures import CancelledError

import pytest

from pytest_kbrel.models.openai.client import LoopThread, read_json
from pytest_kbrel.models.openai.model import Reply, read_reply
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import to_wire
from tests.raw_server import chat


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


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("", "the server's reply is no JSON (Expecting value): ''"),
        ("<html>", "the server's reply is no JSON (Expecting value): '<html>'"),
        (
            'data: {"choices": []}',
            "the server's reply is no JSON (Expecting value): 'data: {",
        ),
        (chat()[:-1], "the server's reply is no JSON (Expecting ',' delimiter): "),
        (chat() + chat(), "the server's reply is no JSON (Extra data): "),
        (
            deep(100_000),
            "the server's reply is no JSON that can be read: nested more than",
        ),
        (
            '{"a":' * 100_000,
            "the server's reply is no JSON that can be read: nested more than",
        ),
        (chat("Par").encode()[:-9] + b"\xff", "the server's reply is no UTF-8: byte "),
        (
            b'{"usage": ' + b"9" * 5000 + b"}",
            "the server's reply is no JSON that can be read: found a number of",
        ),
    ],
)
def test_a_body_that_is_no_json_is_an_error(body, said):
    result = read(body)
    assert isinstance(result, Failed)
    assert result.error.startswith(said)
    assert len(result.error) < 300


@pytest.mark.parametrize(
    "body",
    [
        *("null", "[]", "7", "NaN", '"hello"', "{}", deep(90)),
        *(
            json.dumps({"choices": value})
            for value in (None, [], {}, {"0": {}}, "text", 7, True)
        ),
        *(
            json.dumps({"choices": [value]})
            for value in (None, [], "text", 7, float("nan"))
        ),
        *(with_choice(message=value) for value in (None, [], "text", 7)),
        '{"choices": ' + deep(90) + "}",
    ],
)
def test_a_reply_without_an_answer_is_an_error(body):
    result = read(body)
    assert isinstance(result, Failed)
    assert result.error.startswith("the server's reply holds no answer: ")
    assert len(result.error) < 200


@pytest.mark.parametrize(
    "content", [0, 7, 0.5, False, True, [], {}, ["Paris"], float("nan"), {"text": "x"}]
)
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_text_that_is_none_is_an_error_and_no_empty_answer(endpoint, content):
    body = chat(content) if endpoint == "chat" else completion(text=content)
    result = read(body)
    assert isinstance(result, Failed)
    assert result.error.startswith("the server's reply holds no text: ")


@pytest.mark.parametrize(
    "body", [chat(None), chat(""), with_choice(message={}), completion(text=None)]
)
def test_no_text_is_an_empty_answer(body):
    assert read(body) == Reply(content="")


@pytest.mark.parametrize(
    "finish", [0, 7, False, [], ["length"], {"length": 1}, float("nan")]
)
def test_an_end_that_is_no_text_is_an_error(finish):
    # Whether the answer was cut short is not known then.
    result = read(with_choice(finish_reason=finish))
    assert isinstance(result, Failed)
    assert result.error.startswith("the server's finish_reason is no text: ")


@pytest.mark.parametrize(
    "count",
    [
        *(
            float("nan"),
            float("inf"),
            -1,
            -0.5,
            1.5,
            10**30,
            "12",
            "",
            True,
            None,
            [],
            {},
            [3],
        ),
        10**12 + 1,
    ],
)
def test_a_count_of_tokens_that_is_none_counts_as_none_and_the_answer_stays(count):
    usage = {
        "prompt_tokens": count,
        "completion_tokens_details": {"reasoning_tokens": count},
    }
    result = read(chat(usage=usage))
    assert result == Reply(content="Paris")
    assert "NaN" not in json.dumps(to_wire(result))


@pytest.mark.parametrize(
    "usage", [None, [], "many", 7, float("nan"), {"completion_tokens_details": [1]}]
)
def test_a_usage_that_is_none_is_no_error(usage):
    assert read(chat(usage=usage)) == Reply(content="Paris")


def test_counts_of_tokens_are_read():
    usage = {
        "prompt_tokens": 12,
        "completion_tokens_details": {"reasoning_tokens": 10**12},
    }
    result = read(chat(usage=usage))
    assert (result.prompt_tokens, result.thought_tokens) == (12, 10**12)


@pytest.mark.parametrize(
    "logprobs", [None, float("nan"), 3, {"content": [{"logprob": float("-inf")}]}]
)
def test_probabilities_that_nobody_asked_for_do_not_matter(logprobs):
    assert read(with_choice(logprobs=logprobs)) == Reply(content="Paris")


@pytest.mark.parametrize(
    "logprobs",
    [
        {
            "content": [
                {"token": "Par", "logprob": -0.6931472},
                {"token": "is", "logprob": 0},
            ]
        },
        {"tokens": ["Par", "is"], "token_logprobs": [-0.6931472, 0]},
    ],
)
def test_probabilities_of_a_reply_are_read_in_the_form_of_either_endpoint(logprobs):
    reply = Reply(content="Paris", probability=0.75, first_probability=0.5)
    assert read(with_choice(logprobs=logprobs)) == reply


@pytest.mark.parametrize("apart", [None, 7, ["thought"], {}, float("nan")])
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


@pytest.fixture
def loop():
    return LoopThread("a loop of a test")


async def _nothing():
    """Do nothing."""


async def _said(what):
    await asyncio.sleep(0)
    if isinstance(what, Exception):
        raise what
    return what


def threads():
    return [
        thread for thread in threading.enumerate() if thread.name == "a loop of a test"
    ]


def test_a_coroutine_s_value_and_error_come_back(loop):
    assert loop.run(_said(7)) == 7
    with pytest.raises(ValueError, match="eight"):
        loop.run(_said(ValueError("eight")))
    loop.close(_nothing())


def test_a_loop_that_ran_nothing_has_no_thread(loop):
    assert not threads()
    loop.close(_nothing())
    assert not threads()


def test_closing_cancels_what_runs_and_ends_the_thread(loop):
    begun, result = threading.Event(), []

    async def for_ever():
        begun.set()
        await asyncio.sleep(3600)

    def wait():
        with contextlib.suppress(CancelledError):
            loop.run(for_ever())
        result.append("given up")

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(60)
    loop.close(_nothing())
    waiting.join(60)
    assert result == ["given up"]
    assert not threads()


def test_a_closed_loop_runs_nothing_more(loop):
    loop.run(_said(7))
    for _ in range(2):
        loop.close(_nothing())
    with pytest.raises(CancelledError):
        loop.run(_said(7))
    assert not threads()
