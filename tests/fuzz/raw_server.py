"""A server on loopback that answers each request with given bytes, whatever was asked."""

from __future__ import annotations

import contextlib
import gzip
import json
import socketserver
import threading
import time
from dataclasses import dataclass
from itertools import count
from typing import Any

# Ends a reply that is sent drop by drop even where the client would go on for ever.
_LONGEST = 4.0


@dataclass(frozen=True)
class Reply:
    """One reply.

    ``framing`` says how its length is told: by ``length``, ``chunked``, ``close``, or wrongly, ``short`` and
    ``long``. ``drip`` sends a byte at a time; ``gzip`` packs the body; ``head`` replaces status and headers.
    ``padding`` is how many million blanks stand behind the body, counted where the length is told rightly.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "application/json"),)
    body: bytes = b""
    framing: str = "length"
    drip: bool = False
    gzip: bool = False
    head: bytes | None = None
    padding: int = 0

    def wire(self) -> bytes:
        """Return the bytes of the whole reply."""
        body = gzip.compress(self.body) if self.gzip else self.body
        headers = list(self.headers) + (
            [("content-encoding", "gzip")] if self.gzip else []
        )
        length = len(body) + self.padding * 1_000_000
        stated = {
            "length": length,
            "short": len(body) // 2,
            "long": 2 * len(body) + 10,
        }.get(self.framing)
        if stated is not None:
            headers.append(("content-length", str(stated)))
        elif self.framing == "chunked":
            headers.append(("transfer-encoding", "chunked"))
            body = (
                b"".join(
                    b"%x\r\n%s\r\n" % (len(part), part)
                    for part in (body[:7], body[7:])
                    if part
                )
                + b"0\r\n\r\n"
            )
        lines = [
            f"HTTP/1.1 {self.status} X",
            *(f"{name}: {value}" for name, value in headers),
            "connection: close",
        ]
        head = "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n"
        return (head if self.head is None else self.head) + body


@dataclass(frozen=True)
class Said:
    """What a server says: to the list of models, and to the n-th of all other requests."""

    models: Reply
    replies: tuple[Reply, ...]


class RawServer:
    """The server; ``url`` is its address as clients want it."""

    def __init__(self, said: Said) -> None:
        numbers = count()

        class Handler(socketserver.StreamRequestHandler):
            timeout = 2

            def handle(self) -> None:
                with contextlib.suppress(OSError, ValueError):
                    asked = self.rfile.readline().decode("latin-1")
                    length = 0
                    while (
                        line := self.rfile.readline().decode("latin-1").strip().lower()
                    ):
                        if line.startswith("content-length:"):
                            length = int(line.partition(":")[2])
                    self.rfile.read(length)
                    listed = " /v1/models" in asked
                    self._write(
                        said.models
                        if listed
                        else said.replies[next(numbers) % len(said.replies)]
                    )

            def _write(self, reply: Reply) -> None:
                data = reply.wire()
                if not reply.drip:
                    self.wfile.write(data)
                    for _ in range(reply.padding):
                        self.wfile.write(b" " * 1_000_000)
                    return
                end = time.monotonic() + _LONGEST
                for byte in data:
                    if time.monotonic() > end:
                        return
                    self.wfile.write(bytes([byte]))
                    time.sleep(0.1)

        self._server = socketserver.ThreadingTCPServer(
            ("127.0.0.1", 0), Handler, bind_and_activate=True
        )
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> RawServer:
        threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def completion(content: Any, **more: Any) -> dict[str, Any]:
    """Return a chat completion with this content."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, "refusal": None},
        "finish_reason": "stop",
        "logprobs": None,
    }
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    usage["completion_tokens_details"] = {"reasoning_tokens": 0}  # type: ignore[assignment]
    about = {
        "id": "r",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "system_fingerprint": "fp",
    }
    return {**about, "choices": [choice], "usage": usage, **more}


def model_list(name: str) -> dict[str, Any]:
    """Return a list of models with one name in it."""
    one = {
        "id": name,
        "object": "model",
        "created": 1,
        "owned_by": "x",
        "max_model_len": 4096,
    }
    return {"object": "list", "data": [one]}


def as_json(value: Any) -> bytes:
    """Return a value as the bytes of its JSON."""
    return json.dumps(value).encode()
