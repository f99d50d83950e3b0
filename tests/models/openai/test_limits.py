"""Servers that are slow, busy or gone, send without an end, or send us elsewhere."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import threading
import time
from pathlib import Path

import pytest

from pytest_kbrel.errors import ModelError, UnavailableError
from pytest_kbrel.models.openai import client
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.models.registry import open_encoder
from pytest_kbrel.records import Failed, GenerateRequest
from pytest_kbrel.untrusted import MIB
from tests.openai_server import BROKEN, TOO_MANY, Fault
from tests.raw_server import RawServer, chat, head, http

# Each of them speaks to a server.
pytestmark = pytest.mark.slow
TIMEOUT = 0.4
# How long a try may take on a busy machine; without a deadline these servers hold it for minutes.
AT_MOST = TIMEOUT + 1.5
KEY = "sk-of-a-friend"


@pytest.fixture(autouse=True)
def _no_settings_of_mine(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module", autouse=True)
def _imported_before():
    # The first client of a process takes a second, which is no server's.
    with opened("http://127.0.0.1:9/v1") as model, pytest.raises(ModelError):
        model.generate([ask()])


def ask(prompt="Where?"):
    return GenerateRequest(prompt=str(prompt), max_new_tokens=32, stop=())


def opened(url, args="", retries=0):
    args = f"base_url={url},max_retries={retries},{args}"
    return contextlib.closing(OpenAIModel(parse_openai("openai/judge", args)))


def answer_of(server, args="", retries=0):
    """Return what a server's answer becomes."""
    with opened(server.base_url, args, retries) as model:
        (result,) = model.generate([ask()])
    return result


@pytest.mark.parametrize(
    "begins", [[], [b"HTTP/1.1 200 OK\r\nx: "], [head()]], ids=["none", "head", "body"]
)
def test_each_try_ends_in_time_however_slowly_something_comes(begins):
    # Each pause is far shorter than the limit; the second try is in time.
    drip = itertools.repeat(b" " if begins else b"")
    slow = [*begins, *itertools.islice(drip, 999)]
    replies = iter([slow, slow, [http(chat("Lima"))]])
    with RawServer(lambda request: next(replies), pause=0.05) as server:
        begun = time.monotonic()
        late = answer_of(server, f"timeout={TIMEOUT}")
        assert TIMEOUT <= time.monotonic() - begun < AT_MOST
        said = "no complete reply within 0.4 seconds; timeout=SECONDS allows more"
        assert late == Failed(error=said)
        assert answer_of(server, f"timeout={TIMEOUT}", retries=1).text == "Lima"
    assert len(server.requests) == 3


def test_closing_gives_up_what_is_under_way():
    with RawServer(lambda request: itertools.repeat(b""), pause=0.05) as server:
        with opened(server.base_url, "timeout=60,max_concurrent=2") as model:
            going = threading.Thread(target=_quietly, args=(model,), daemon=True)
            going.start()
            while not server.requests:
                time.sleep(0.01)
            begun = time.monotonic()
        going.join(5)
        assert not going.is_alive()
        assert time.monotonic() - begun < AT_MOST


def _quietly(model):
    with contextlib.suppress(BaseException):
        model.generate([ask("1"), ask("2"), ask("3")])


def test_a_reply_that_is_too_large_is_an_error_and_is_not_asked_for_again(monkeypatch):
    said = "the reply is larger than the 1 MiB that it may have"
    monkeypatch.setattr(client, "DOCUMENT", MIB)
    parts = [head("content-length: 100000000000"), *[b"x" * 65_536] * 1000]
    with RawServer(lambda request: parts) as server:
        assert answer_of(server, retries=3) == Failed(error=said)
        assert len(server.requests) == 1
        # What lies in the buffers of two sockets comes on top.
        assert server.sent < 12_000_000
        encoder = open_encoder("openai/e", f"base_url={server.base_url}", Path())
        with contextlib.closing(encoder), pytest.raises(ModelError, match="1 MiB"):
            encoder.embed(["a", "b"])
        room = MIB - len(chat(""))
        server.parts = lambda request: [http(chat("x" * room))]
        assert len(answer_of(server).text) == room
        packed = gzip.compress(chat("x" * (room + 1)).encode())
        server.parts = lambda request: [http(packed, "content-encoding: gzip")]
        assert answer_of(server) == Failed(error=said)


def test_long_vectors_of_many_texts_fit():
    def vectors(request):
        numbers = [0.12345678901234567] * 8192
        data = [{"index": place, "embedding": numbers} for place in range(128)]
        return [http(json.dumps({"data": data}))]

    with RawServer(vectors) as server:
        encoder = open_encoder("openai/e", f"base_url={server.base_url}", Path())
        with contextlib.closing(encoder):
            assert encoder.embed([f"text {n}" for n in range(128)]).shape == (128, 8192)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost:{port}/v1/chat/completions", 307),
        (f"/v1/elsewhere?key={KEY}", 308),
    ],
)
def test_where_a_server_sends_us_gets_neither_key_nor_question(target, status):
    with RawServer(lambda request: [http(chat("Lima"))]) as other:
        target = target.format(port=other.port)
        reply = http("", f"location: {target}", status=f"{status} Elsewhere")
        with RawServer(lambda request: [reply]) as server:
            with pytest.raises(ModelError) as caught:
                answer_of(server, retries=3)
            assert len(server.requests) == 1
            with opened(server.base_url) as model:
                assert model.about() == ""
    shown = target.replace(KEY, "***")
    assert str(caught.value) == (
        f"openai/judge: the server {server.base_url} redirects to '{shown}', and no question is sent there; "
        "if that is the server to ask, give its address as base_url"
    )
    assert other.requests == []


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with RawServer(lambda request: [http(chat("Lima"))]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        with opened("http://far.example/v1") as model:
            assert model.generate([ask()])[0].text == "Lima"
    assert proxy.requests == ["POST http://far.example/v1/chat/completions"]


def test_a_server_that_is_not_there_is_an_error_of_the_model_and_one_that_goes_of_its_fact():
    replies = iter([http(chat("Lima")), http(chat("Lima"))[:-20]])
    with (
        RawServer(lambda request: [next(replies)]) as server,
        opened(server.base_url) as model,
    ):
        first, second = model.generate([ask("1"), ask("2")])
    assert first.text == "Lima"
    assert second.error.startswith("RemoteProtocolError: peer closed connection")
    with (
        opened(server.base_url) as model,
        pytest.raises(ModelError, match=f"{server.base_url} cannot be reached: "),
    ):
        model.generate([ask()])


def test_a_busy_or_broken_server_is_asked_again_when_it_says(openai_server, model_at):
    openai_server.inject(TOO_MANY, BROKEN, TOO_MANY, Fault(status=503))
    assert model_at().generate([ask()])[0].text == "unsure"
    assert len(openai_server.calls) == 5
    openai_server.waits = {"retry-after": "1"}
    openai_server.inject(TOO_MANY)
    started = time.monotonic()
    model_at().generate([ask()])
    assert time.monotonic() - started >= 1


def test_behind_a_rate_limit_no_answer_is_lost(openai_server, model_at):
    openai_server.rate = 1, 0.2
    results = model_at("max_retries=50").generate([ask(number) for number in range(9)])
    assert [result.text for result in results] == ["unsure"] * 9
    assert openai_server.refused


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (TOO_MANY, "Rate limit .*; a larger max_retries or a smaller max_concurr"),
        (BROKEN, "had an error"),
        (Fault(delay=0.3), "no complete reply within 0.1 seconds; timeout=SECONDS al"),
        (Fault(change=lambda reply: reply.update(error="gone")), "gave no answer: err"),
    ],
)
def test_a_server_that_answers_nothing_for_long_ends_the_run(
    openai_server, model_at, monkeypatch, fault, said
):
    monkeypatch.setattr(client, "LONGEST_SILENCE", 1.5)
    model = model_at("max_retries=0,max_concurrent=1,timeout=0.1")
    openai_server.inject(fault)
    # An answer between them begins the count anew, and who asks nothing meets no silence.
    first, second = model.generate([ask(number) for number in range(2)])
    assert isinstance(first, Failed)
    assert second.text == "unsure"
    time.sleep(1.5)
    openai_server.always = fault
    assert isinstance(model.generate([ask()])[0], Failed)
    time.sleep(1.5)
    calls = len(openai_server.calls)
    with pytest.raises(
        UnavailableError,
        match=f"has answered no request for [0-9]+ seconds: .*{said}.*allowed: another",
    ):
        model.generate([ask(number) for number in range(50)])
    # By then the next one may be under way.
    assert len(openai_server.calls) <= calls + 2


@pytest.mark.parametrize(
    ("waits", "raw", "said"),
    [
        ({"retry-after": "3600"}, "{}", r"asks to wait 3,600 seconds before the next"),
        (
            {"retry-after-ms": "1"},
            '{"error": {"message": "Pay!", "code": "insufficient_quota"}}',
            r"has no quota left: .*Pay!",
        ),
    ],
)
def test_what_no_wait_helps_against_ends_the_run(
    openai_server, model_at, waits, raw, said
):
    openai_server.waits = waits
    openai_server.always = Fault(status=429, raw=raw)
    with pytest.raises(UnavailableError, match=said):
        model_at("max_retries=1").generate([ask(number) for number in range(9)])
    assert len(openai_server.calls) <= 2
