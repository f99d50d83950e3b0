"""HTTP client of ``openai`` with limits on a reply, and the event loop that it runs in."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from contextvars import ContextVar
from typing import Any, TypeVar

import openai

T = TypeVar("T")
# Of httpx or httpx2: which one it is depends on the version of openai.
_httpx: Any = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__]
Response: Any = _httpx.Response

MOST_BYTES: ContextVar[int] = ContextVar("size that the current task's reply may have")
# They no longer hold for a body that was read.
_OF_THE_BODY = (b"content-encoding", b"content-length", b"transfer-encoding")


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The HTTP client of ``openai``, with limits on the time and size of a whole reply.

    The time of a try holds from connecting to the end of the body. Of a body that is larger than
    :data:`MOST_BYTES` one byte more is kept. A redirect is not followed: the key stays with the server that
    it was given for. Proxies and certificates are those of the environment.
    """

    async def send(self, request: Any, **options: Any) -> Any:
        """Return the whole response; raises ``ReadTimeout`` where it takes too long."""
        options |= {"stream": True, "follow_redirects": False}
        try:
            async with asyncio.timeout(request.extensions["timeout"]["read"]):
                response = await super().send(request, **options)
                try:
                    content = await _body(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise _httpx.ReadTimeout("the try took too long", request=request) from None
        headers = [
            pair for pair in response.headers.raw if pair[0].lower() not in _OF_THE_BODY
        ]
        return Response(
            response.status_code, headers=headers, content=content, request=request
        )


async def _body(response: Any) -> bytes:
    most, content = MOST_BYTES.get(), bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > most:
            break
    return bytes(content[: most + 1])


class LoopThread:
    """Event loop in a thread of its own, started at its first coroutine; any thread may use it.

    Only a coroutine can be cancelled whatever it waits for: a thread that reads from a socket cannot.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns, or raise what it raises; an interrupted wait cancels it.

        Raises ``concurrent.futures.CancelledError`` where the loop is closed, before or meanwhile.
        """
        with self._lock:
            if self._closed:
                coroutine.close()
                raise CancelledError
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                # As a daemon it keeps no process alive that forgot to close it.
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name=self._name, daemon=True
                )
                self._thread.start()
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, run ``last``, and end the thread."""
        with self._lock:
            loop, self._loop, self._closed = self._loop, None, True
        if loop is None:
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_ended(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


async def _ended(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last
