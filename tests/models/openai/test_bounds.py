"""Servers that are slow without an end, send without an end, or send us elsewhere."""

from __future__ import annotations

import contextlib
import gc
import gzip
import itertools
import json
import threading
import time
import tracemalloc

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.embedding import Encoder
from pytest_kbrel.models.openai.model import OpenAIModel
from pytest_kbrel.models.openai.spec import parse_openai
from pytest_kbrel.records import Failed, Generated, GenerateRequest
from tests.raw_server import RawServer, chat, head, http

# Each of them speaks to a server.
pytestmark = pytest.mark.slow
TIMEOUT = 0.4
# How long a try may take on a busy machine; without a deadline these servers hold it for minutes.
AT_MOST = TIMEOUT + 1.5
TOO_SLOW = Failed(
    error=f"no complete reply within {TIMEOUT} seconds; timeout=SECONDS allows more"
)
KEY = "sk-of-a-friend"


@pytest.fixture(autouse=True)
def _no_settings_of_mine(monkeypatch):
    for name in (
        "OPENAI_BASE_URL",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module", autouse=True)
def _imported_before():
    # The first client of a process takes a second, which is no server's.
    with (
        contextlib.closing(model_at("http://127.0.0.1:9/v1")) as model,
        pytest.raises(ModelError),
    ):
        model.generate([ask()])


def ask(prompt="Where?", **more):
    return GenerateRequest(
        **({"prompt": prompt, "max_new_tokens": 32, "stop": ()} | more)
    )


def model_at(base_url, args="", retries=0):
    return OpenAIModel(
        parse_openai(
            "openai/judge", f"base_url={base_url},max_retries={retries},{args}"
        )
    )


def asked(server, args="", url="", retries=0):
    """Return what a server's answer becomes."""
    with contextlib.closing(model_at(url or server.base_url, args, retries)) as model:
        (result,) = model.generate([ask()])
    return result


def drip(data):
    return [bytes([byte]) for byte in data]


def chunks(data):
    """Return parts of a body whose end is not told, as chunks."""
    return (b"%x\r\n%b\r\n" % (len(part), part) for part in data)


SLOW = {
    "nothing": lambda: [],
    "status line": lambda: drip(http(chat()) * 100),
    "headers": lambda: itertools.chain(
        [b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"x: y\r\n")
    ),
    "one header": lambda: itertools.chain(
        [b"HTTP/1.1 200 OK\r\nx: "], itertools.repeat(b"y")
    ),
    "before the status": lambda: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "body": lambda: itertools.chain([head()], itertools.repeat(b" ")),
    "chunks": lambda: itertools.chain(
        [head("transfer-encoding: chunked")], chunks(itertools.repeat(b" "))
    ),
    "body of an error": lambda: itertools.chain(
        [head(status="500 Broken")], itertools.repeat(b"x")
    ),
    "trailers": lambda: itertools.chain(
        [head("transfer-encoding: chunked"), b"1\r\n{\r\n0\r\n"],
        itertools.repeat(b"x: y\r\n"),
    ),
}


@pytest.mark.parametrize("what", SLOW)
def test_a_try_ends_in_time_however_slowly_something_comes(what):
    # Each pause is far shorter than the limit.
    with RawServer(
        lambda request: itertools.chain(SLOW[what](), iter(lambda: b"", None)),
        pause=0.05,
    ) as server:
        begun = time.monotonic()
        assert asked(server, f"timeout={TIMEOUT}") == TOO_SLOW
        assert TIMEOUT <= time.monotonic() - begun < AT_MOST


# httpx closes a connection that is given up within its handshake when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_try_ends_in_time_within_a_handshake():
    # The beginning of a long record of TLS.
    parts = itertools.chain([b"\x16\x03\x03\x3f\xff"], itertools.repeat(b"\x02"))
    with RawServer(lambda request: parts, pause=0.05, hello=False) as server:
        begun = time.monotonic()
        result = asked(
            server, f"timeout={TIMEOUT}", url=f"https://127.0.0.1:{server.port}/v1"
        )
        assert result == TOO_SLOW
        assert time.monotonic() - begun < AT_MOST
    gc.collect()


def test_each_try_has_its_time_and_the_last_may_do():
    replies = iter([itertools.repeat(b" "), [http(chat("Lima"))]])
    with RawServer(lambda request: next(replies), pause=0.05) as server:
        result = asked(server, f"timeout={TIMEOUT}", retries=1)
    assert result.text == "Lima"
    assert len(server.requests) == 2


def test_what_comes_slowly_and_in_time_is_an_answer():
    body = http(chat("Lima"))
    parts = [body[start : start + 40] for start in range(0, len(body), 40)]
    with RawServer(lambda request: parts, pause=0.01) as server:
        assert asked(server, "timeout=20").text == "Lima"


def test_the_list_of_models_has_a_limit_of_its_own_and_nobody_waits_longer():
    with RawServer(lambda request: itertools.repeat(b" "), pause=0.05) as server:
        begun = time.monotonic()
        with contextlib.closing(
            model_at(server.base_url, f"timeout={TIMEOUT}")
        ) as model:
            assert model.about() == ""
        assert time.monotonic() - begun < AT_MOST


def test_an_embedding_ends_in_time():
    with RawServer(
        lambda request: itertools.chain([head()], itertools.repeat(b" ")), pause=0.05
    ) as server:
        encoder = Encoder(
            "openai/e", f"base_url={server.base_url},max_retries=0,timeout={TIMEOUT}"
        )
        with (
            contextlib.closing(encoder),
            pytest.raises(ModelError, match=r"e: no complete reply within 0\.4"),
        ):
            encoder.embed(["a"])


def test_closing_gives_up_what_is_under_way():
    with RawServer(lambda request: itertools.repeat(b" "), pause=0.05) as server:
        model = model_at(server.base_url, "timeout=60,max_concurrent=2")
        going = threading.Thread(target=lambda: _quietly(model), daemon=True)
        going.start()
        while not server.requests:
            time.sleep(0.01)
        begun = time.monotonic()
        model.close()
        going.join(5)
        assert not going.is_alive()
        assert time.monotonic() - begun < AT_MOST


def _quietly(model):
    with contextlib.suppress(BaseException):
        model.generate([ask("1"), ask("2"), ask("3")])


TOO_LARGE = Failed(
    error="the reply is larger than 192 kB, the most for 32 tokens: 64 kB and 4 kB more for each"
)


def repeated(part=b"x" * 65_536):
    return itertools.chain(
        [head("content-type: application/json"), b'{"choices": "'],
        itertools.repeat(part),
    )


@pytest.mark.parametrize(
    "parts",
    [
        lambda: [http(chat("x" * 200_000))],
        lambda: repeated(),
        lambda: itertools.chain(
            [head("transfer-encoding: chunked")], chunks(itertools.repeat(b"x" * 9000))
        ),
        lambda: [head("content-length: 100000000000"), *[b"x" * 65_536] * 10],
    ],
    ids=[
        "told length",
        "endless",
        "endless chunks",
        "told and endless",
    ],
)
def test_a_reply_that_is_too_large_for_its_tokens_is_an_error_and_is_not_asked_for_again(
    parts,
):
    with RawServer(lambda request: parts()) as server:
        assert asked(server, retries=3) == TOO_LARGE
        assert len(server.requests) == 1
        # What lies in the buffers of two sockets comes on top.
        assert server.sent < 12_000_000


def test_a_reply_as_large_as_allowed_is_an_answer():
    room = 64_000 + 32 * 4_000 - len(chat(""))
    with RawServer(lambda request: [http(chat("x" * room))]) as server:
        assert len(asked(server).text) == room
        server.parts = lambda request: [http(chat("x" * (room + 1)))]
        assert asked(server) == TOO_LARGE


def test_room_for_a_thought_is_room_in_a_reply():
    with RawServer(lambda request: [http(chat("x" * 200_000))]) as server:
        assert isinstance(
            asked(server, "enable_thinking=True,max_thinking_tokens=100"), Generated
        )
        assert isinstance(
            asked(server, "enable_thinking=True,max_thinking_tokens=1"), Failed
        )


def test_an_endless_reply_takes_no_memory():
    with RawServer(lambda request: repeated()) as server:
        tracemalloc.start()
        try:
            assert asked(server) == TOO_LARGE
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8_000_000


def test_a_server_is_asked_not_to_compress_and_one_that_does_is_an_error():
    body = gzip.compress(chat("Lima").encode())
    with RawServer(lambda request: [http(body, "content-encoding: gzip")]) as server:
        assert asked(server).error.startswith("the reply is compressed by 'gzip', ")
        assert server.headers[0]["accept-encoding"] == "identity"


def test_of_an_endless_error_its_status_counts():
    with RawServer(
        lambda request: itertools.chain(
            [head(status="400 Bad")], itertools.repeat(b"x" * 65_536)
        )
    ) as server:
        assert asked(server).error == "BadRequestError: Error code: 400"
        server.parts = lambda request: [
            http("nonsense", "content-encoding: br", status="400 Bad")
        ]
        assert asked(server).error == "BadRequestError: Error code: 400"


def test_a_list_of_models_or_vectors_has_a_size():
    with RawServer(lambda request: repeated()) as server:
        with contextlib.closing(model_at(server.base_url)) as model:
            assert model.about() == ""
        encoder = Encoder("openai/e", f"base_url={server.base_url},max_retries=0")
        with contextlib.closing(encoder), pytest.raises(ModelError) as caught:
            encoder.embed(["a", "b"])
    assert str(caught.value) == (
        "openai/e: the reply is larger than 576 kB, the most for 2 texts: 64 kB and 256 kB more for each"
    )


@pytest.mark.parametrize(
    "body",
    [
        *(
            "",
            "null",
            "7",
            "NaN",
            "[]",
            "{}",
            '{"data": 7}',
            '{"data": {"id": "judge"}}',
            '{"data": [7, null]}',
        ),
        *(
            '{"data": [{"id": ["judge"]}, {"name": "judge"}]}',
            "[" * 100_000,
            b"\xff",
            b"9" * 5000,
        ),
    ],
)
def test_a_list_of_models_that_is_none_says_nothing(body):
    with (
        RawServer(lambda request: [http(body)]) as server,
        contextlib.closing(model_at(server.base_url)) as model,
    ):
        assert model.about() == ""


def test_of_a_list_of_models_only_the_model_counts():
    listed = {
        "data": [7, {"id": 7}, {"id": "judge", "created": 1, "speed": float("nan")}]
    }
    with RawServer(lambda request: [http(json.dumps(listed))]) as server:
        with contextlib.closing(model_at(server.base_url)) as model:
            assert model.about() == '{"id": "judge", "speed": NaN}'
        assert server.requests == ["GET /v1/models"]


def test_long_vectors_of_many_texts_fit():
    def vectors(request):
        numbers = [0.12345678901234567] * 8192
        data = [{"index": place, "embedding": numbers} for place in range(8)]
        return [http(json.dumps({"data": data}))]

    with RawServer(vectors) as server:
        encoder = Encoder("openai/e", f"base_url={server.base_url},max_retries=0")
        with contextlib.closing(encoder):
            assert encoder.embed([f"text {n}" for n in range(8)]).shape == (8, 8192)


def redirecting(target, status=307):
    def parts(request):
        if request.endswith("/elsewhere"):
            return [http(chat("Lima"))]
        return [http("", f"location: {target}", status=f"{status} Elsewhere")]

    return parts


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_another_server_is_named_and_gets_neither_key_nor_question(status):
    with RawServer(lambda request: [http(chat("Lima"))]) as other:
        target = f"http://localhost:{other.port}/v1/chat/completions"
        with (
            RawServer(redirecting(target, status)) as server,
            pytest.raises(ModelError) as caught,
        ):
            asked(server, retries=3)
    assert str(caught.value) == (
        f"openai/judge: the server {server.base_url} redirects to '{target}'; allowed is the same "
        "host and port, or https in place of http on the usual ports: if that is the server to ask, give its "
        "address as base_url"
    )
    assert (len(server.requests), other.requests) == (1, [])


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:1/v1/chat/completions",
        "https://127.0.0.1/v1/chat/completions",
        "//elsewhere/v1/chat/completions",
        "ftp://127.0.0.1/x",
        "file:///etc/passwd",
        "http://[::1",
        "http://127.0.0.1:99999999/",
        "",
        "javascript:alert(1)",
    ],
)
def test_where_else_a_server_may_not_send_us(target):
    with (
        RawServer(redirecting(target)) as server,
        pytest.raises(ModelError, match="redirects "),
    ):
        asked(server)


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize("relative", [True, False])
def test_another_path_of_the_same_server_is_followed(status, relative):
    with RawServer(lambda request: ()) as server:
        server.parts = redirecting(
            "/elsewhere" if relative else f"{server.base_url}/elsewhere", status
        )
        assert asked(server).text == "Lima"
    assert server.requests == [
        "POST /v1/chat/completions",
        f"POST {'' if relative else '/v1'}/elsewhere",
    ]
    assert [headers["authorization"] for headers in server.headers] == [
        f"Bearer {KEY}"
    ] * 2


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_drops_the_question_is_named(status):
    with (
        RawServer(redirecting("/elsewhere", status)) as server,
        pytest.raises(
            ModelError,
            match=rf"/elsewhere' by status {status}, which drops the question; allowed is",
        ),
    ):
        asked(server)
    assert len(server.requests) == 1


def test_a_server_that_sends_us_in_a_circle_is_named():
    with (
        RawServer(redirecting("/v1/chat/completions")) as server,
        pytest.raises(ModelError, match="redirects more than 5 times, last to http"),
    ):
        asked(server)
    assert len(server.requests) == 6


def test_a_list_that_lies_elsewhere_is_none():
    with (
        RawServer(redirecting("http://elsewhere/v1/models")) as server,
        contextlib.closing(model_at(server.base_url)) as model,
    ):
        assert model.about() == ""


def test_a_cookie_is_not_kept():
    reply = http(
        chat("Lima"), "set-cookie: session=\xe9; path=/", "set-cookie: other=1; path=/"
    )
    with RawServer(lambda request: [reply]) as server:
        with contextlib.closing(model_at(server.base_url)) as model:
            assert [result.text for result in model.generate([ask("1"), ask("2")])] == [
                "Lima",
                "Lima",
            ]
        assert not any("cookie" in headers for headers in server.headers)


def test_a_reply_that_breaks_off_says_so():
    replies = [[http(chat("Lima"))], [http(chat("Lima"))[:-20]]]
    with (
        RawServer(lambda request: replies[len(server.requests) - 1]) as server,
        contextlib.closing(model_at(server.base_url)) as model,
    ):
        result = model.generate([ask("1"), ask("2")])
    assert result[0].text == "Lima"
    assert result[1].error.startswith(
        "RemoteProtocolError: peer closed connection without "
    )


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    with RawServer(lambda request: [http(chat("Lima"))]) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{proxy.port}")
        result = asked(proxy, url="http://far.example/v1")
    assert result.text == "Lima"
    assert proxy.requests == ["POST http://far.example/v1/chat/completions"]
