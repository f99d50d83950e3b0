"""A server on loopback that speaks enough of the OpenAI protocol to be talked to by the real client.

    def test_it(openai_server):
        openai_server.say = lambda text: "correct" if "Paris" in text else "incorrect"
        ...  # a client with base_url=openai_server.base_url
        assert len(openai_server.calls_to("chat/completions")) == 3

It cuts its replies at ``stop`` and at ``max_tokens`` words, as a real one does. ``inject`` makes the next
calls go wrong, ``always`` all of them; the list of models always comes. With a ``rate`` of (5, 0.1) it
answers 5 calls in each tenth of a second, and refuses the others until the next one begins.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Fault:
    """What goes wrong with one call.

    ``status`` other than 200 is sent with an error object; ``raw`` replaces the body; ``change`` edits the
    reply before it is sent; ``delay`` is slept first, in seconds.
    """

    status: int = 200
    message: str = "injected"
    raw: str | None = None
    change: Callable[[dict[str, Any]], None] | None = None
    delay: float = 0.0


def _content(value: str | None, **more: Any) -> Callable[[dict[str, Any]], None]:
    def change(reply: dict[str, Any]) -> None:
        choice = reply["choices"][0]
        finish = more.get("finish_reason")
        if finish:
            choice["finish_reason"] = finish
        if "message" in choice:
            choice["message"]["content"] = value
            choice["message"] |= {k: v for k, v in more.items() if k != "finish_reason"}
        else:
            choice["text"] = value

    return change


TOO_MANY = Fault(status=429, message="Rate limit reached")
BROKEN = Fault(status=500, message="The server had an error")
GARBAGE = Fault(raw="<html>this is no JSON")
EMPTY = Fault(change=_content(""))
NULL = Fault(change=_content(None))
REFUSAL = Fault(change=_content(None, refusal="I cannot help with that."))
FILTERED = Fault(change=_content("", finish_reason="content_filter"))


@dataclass(frozen=True)
class Call:
    """One request as it came in: the path below ``/v1/``, the body and the headers (lower-case names)."""

    path: str
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """The prompt, or the last message."""
        if "messages" in self.body:
            return str(self.body["messages"][-1]["content"])
        return str(self.body.get("prompt", self.body.get("input", "")))


def letters(text: str) -> list[float]:
    """Return a crude embedding (26 numbers): how often each letter occurs. Similar texts are close."""
    return [float(text.lower().count(chr(ord("a") + k))) for k in range(26)]


@dataclass
class OpenAIServer:
    """The server. ``say`` maps a prompt to its reply, ``embed`` a text to its vector.

    ``about`` is what it says of each of its ``models`` besides the usual; ``headers`` go with each reply.
    ``parses`` is the name under which it hands out what is written before ``</think>``, as servers with a
    parser for thoughts do; they too cut first and part then. ``routes`` are further paths, or replace one.
    ``waits`` are the headers of a 429, 500 or 503, which the client waits half a second and more without.
    """

    say: Callable[[str], str] = lambda text: "unsure"
    embed: Callable[[str], list[float]] = letters
    models: tuple[str, ...] = ("judge", "writer", "encoder")
    always: Fault | None = None
    about: dict[str, Any] = field(default_factory=dict)
    parses: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    routes: dict[str, Callable[[Call], dict[str, Any]]] = field(default_factory=dict)
    waits: dict[str, str] = field(default_factory=lambda: {"retry-after-ms": "1"})
    rate: tuple[int, float] | None = None
    refused: int = 0
    calls: list[Call] = field(default_factory=list)
    most_at_once: int = 0
    _faults: deque[Fault] = field(default_factory=deque)
    _busy: int = 0
    _window: tuple[int, int] = (0, 0)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> OpenAIServer:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def inject(self, *faults: Fault) -> None:
        """Make the next ``len(faults)`` calls go wrong, one fault each."""
        self._faults.extend(faults)

    def calls_to(self, path: str) -> list[Call]:
        """Return the calls to one path, such as ``chat/completions`` or ``embeddings``."""
        return [call for call in self.calls if call.path == path]

    def answer(self, call: Call) -> tuple[int, str]:
        """Return status and body for one call; counts it."""
        with self._lock:
            self.calls.append(call)
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
            fault = self.always
            if call.path == "models":
                fault = None
            elif self._faults:
                fault = self._faults.popleft()
            elif self.rate is not None:
                fault = self._over_rate(*self.rate)
        try:
            if fault is not None and fault.delay:
                time.sleep(fault.delay)
            return self._reply(call, fault or Fault())
        finally:
            with self._lock:
                self._busy -= 1

    def _over_rate(self, most: int, seconds: float) -> Fault | None:
        window, into = divmod(time.monotonic(), seconds)
        begun, count = self._window
        self._window = (int(window), count + 1 if begun == window else 1)
        if self._window[1] <= most:
            return None
        self.refused += 1
        self.waits = {"retry-after-ms": str(1 + round(1000 * (seconds - into)))}
        return TOO_MANY

    def _reply(self, call: Call, fault: Fault) -> tuple[int, str]:
        if fault.raw is not None:
            return fault.status, fault.raw
        if fault.status != 200:
            return fault.status, _error(fault.message, fault.status)
        if call.path == "models":
            data = [
                {
                    "id": name,
                    "object": "model",
                    "created": int(time.time()),
                    "owned_by": "tests",
                    **self.about,
                }
                for name in self.models
            ]
            return 200, json.dumps({"object": "list", "data": data})
        made = self.routes.get(call.path)
        if made is None and call.body.get("model") not in self.models:
            return 404, _error(
                f"The model `{call.body.get('model')}` does not exist", 404
            )
        made = made or {
            "chat/completions": self._chat,
            "completions": self._completion,
            "embeddings": self._embeddings,
        }.get(call.path)
        if made is None:
            return 404, _error(f"no such path: {call.path}", 404)
        reply = made(call)
        if fault.change is not None:
            fault.change(reply)
        return 200, json.dumps(reply)

    def _chat(self, call: Call) -> dict[str, Any]:
        text, finish = self._cut(call)
        message = {"role": "assistant", "content": text, "refusal": None}
        if self.parses:
            thought, closing, answer = text.partition("</think>")
            message[self.parses] = thought.removeprefix("<think>").strip()
            message["content"] = answer.lstrip() if closing else None
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": finish,
            "logprobs": None,
        }
        return {**_frame(call, "chat.completion", text), "choices": [choice]}

    def _completion(self, call: Call) -> dict[str, Any]:
        text, finish = self._cut(call)
        choice = {"index": 0, "text": text, "finish_reason": finish, "logprobs": None}
        return {**_frame(call, "text_completion", text), "choices": [choice]}

    def _embeddings(self, call: Call) -> dict[str, Any]:
        given = call.body["input"]
        texts = [given] if isinstance(given, str) else given
        # The client asks for base64 unless it is told otherwise, and takes plain numbers as well.
        data = [
            {"object": "embedding", "index": index, "embedding": self.embed(text)}
            for index, text in enumerate(texts)
        ]
        tokens = sum(len(text.split()) for text in texts)
        return {
            "object": "list",
            "data": data,
            "model": call.body["model"],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _cut(self, call: Call) -> tuple[str, str]:
        text = self.say(call.text)
        stops = call.body.get("stop") or []
        for stop in [stops] if isinstance(stops, str) else stops:
            text = text.split(stop)[0]
        most = (
            call.body.get("max_completion_tokens")
            or call.body.get("max_tokens")
            or 1000
        )
        words = text.split(" ")
        return (
            (" ".join(words[:most]), "length") if len(words) > most else (text, "stop")
        )


def _frame(call: Call, kind: str, text: str) -> dict[str, Any]:
    input_tokens, output_tokens = len(call.text.split()), len(text.split())
    return {
        "id": "reply-" + hashlib.sha256(call.text.encode()).hexdigest()[:8],
        "object": kind,
        "created": 0,
        "model": call.body["model"],
        "system_fingerprint": "fp_loopback",
        "usage": {
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
        },
    }


def _error(message: str, status: int) -> str:
    kind = {429: "rate_limit_error", 401: "authentication_error"}.get(
        status, "invalid_request_error"
    )
    return json.dumps(
        {"error": {"message": message, "type": kind, "code": None, "param": None}}
    )


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        # Version 1.0 closes each connection after its reply, so that no socket outlives a test.
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            self._serve({})

        def do_POST(self) -> None:
            self._serve(
                json.loads(self.rfile.read(int(self.headers["content-length"])))
            )

        def _serve(self, body: dict[str, Any]) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            call = Call(path=self.path.removeprefix("/v1/"), body=body, headers=headers)
            status, text = server.answer(call)
            data = text.encode()
            try:
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                for name, value in server.headers.items():
                    self.send_header(name, value)
                for name, value in (
                    server.waits.items() if status in (429, 500, 503) else ()
                ):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
            except (BrokenPipeError, ConnectionResetError):
                return  # who asked has gone: a time limit, or a killed run

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    return Handler
