"""A server on loopback that sends any bytes it is told to, as HTTP or not, as slowly as it is told.

with RawServer(lambda request: [b"HTTP/1.1 200 OK\\r\\n\\r\\n"] + [b"x"] * 1000, pause=0.05) as server:
    ...  # a client with base_url=server.base_url
    assert server.requests == ["POST /v1/chat/completions"]
"""

from __future__ import annotations

import contextlib
import json
import socketserver
import threading
from collections.abc import Callable, Iterable
from typing import Any

Parts = Callable[[str], Iterable[bytes]]


def http(body: bytes | str, *headers: str, status: str = "200 OK") -> bytes:
    """Return a whole reply; its length stands in its headers."""
    data = body.encode() if isinstance(body, str) else body
    head = [
        f"HTTP/1.1 {status}",
        *headers,
        f"content-length: {len(data)}",
        "connection: close",
        "",
        "",
    ]
    return "\r\n".join(head).encode() + data


def head(*headers: str, status: str = "200 OK") -> bytes:
    """Return the headers of a reply whose body ends with the connection."""
    return "\r\n".join(
        [f"HTTP/1.1 {status}", *headers, "connection: close", "", ""]
    ).encode()


def chat(text: Any = "Paris", **more: Any) -> str:
    """Return a chat completion as JSON."""
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps(
        {"object": "chat.completion", "model": "judge", "choices": [choice], **more}
    )


class RawServer:
    """The server. ``parts`` makes of a request's first line what is sent, ``pause`` seconds lie between."""

    def __init__(self, parts: Parts, *, pause: float = 0.0) -> None:
        self.parts, self.pause = parts, pause
        self.requests: list[str] = []
        self.sent = 0
        self._ended = threading.Event()

    def __enter__(self) -> RawServer:
        self._tcp = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _handler(self))
        self._tcp.daemon_threads = True
        self._thread = threading.Thread(
            target=self._tcp.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._tcp.shutdown()
        self._tcp.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        port: int = self._tcp.server_address[1]
        return port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def send_to(self, connection: Any, request: str) -> None:
        """Send what is to be sent, until it is over, the client goes, or the server ends."""
        # A client that goes is what is expected.
        with contextlib.suppress(OSError):
            for part in self.parts(request):
                if self._ended.wait(self.pause) if self.pause else self._ended.is_set():
                    return
                connection.sendall(part)
                self.sent += len(part)


def _handler(server: RawServer) -> type[socketserver.StreamRequestHandler]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            first = self.rfile.readline().decode().split()
            if len(first) < 2:
                return
            length = 0
            while line := self.rfile.readline().decode().strip():
                name, _, value = line.partition(":")
                length = int(value) if name.lower() == "content-length" else length
            self.rfile.read(length)
            request = " ".join(first[:2])
            server.requests.append(request)
            server.send_to(self.connection, request)

    return Handler
