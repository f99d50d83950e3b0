"""HTTP client with limits on the time, size and redirects of a reply."""

from __future__ import annotations

import asyncio
import sys
from contextlib import aclosing
from contextvars import ContextVar
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import openai

from pytest_kbrel.records import record

# Of httpx or httpx2: which one it is depends on the version of openai.
_httpx: Any = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__]
Response: Any = _httpx.Response

# What stands in a reply beside its answer: names, counts, and what else a server likes to tell.
_ENVELOPE_BYTES = 64_000
_MOST_REDIRECTS = 5
# An error's message is some hundred bytes.
_ERROR_BYTES = 64_000
_PORTS = {"http": 80, "https": 443}
# They no longer hold for a body that was cut.
_OF_THE_BODY = (b"content-encoding", b"content-length", b"transfer-encoding")
# Tells the client of ``openai`` to return a reply as it is, whatever its status.
_NO_RETRY = (b"x-should-retry", b"false")
_REFUSED = "pytest_kbrel.refused"
# Where a server says how long to wait.
_WAITS = ("retry-after", "retry-after-ms")


@record
class Limits:
    """Limits of one try: ``seconds``, and a reply of ``size`` bytes, which ``description`` names."""

    seconds: float
    size: int
    description: str


class ReplyError(Exception):
    """Raised for a reply that is refused; the message says why."""


class RedirectError(ReplyError):
    """Raised for a redirect to another server; the message goes on after the server's name."""


def limits_for(seconds: float, count: int, each: int, one: str) -> Limits:
    """Return the limits of a request for ``count`` items of up to ``each`` bytes; ``one`` names an item."""
    size = _ENVELOPE_BYTES + each * count
    description = (
        f"{_kilobytes(size)}, the most for {count} {one}{'s' * (count > 1)}: "
        f"{_kilobytes(_ENVELOPE_BYTES)} and {_kilobytes(each)} more for each"
    )
    return Limits(seconds=seconds, size=size, description=description)


def _kilobytes(size: int) -> str:
    return f"{size // 1000} kB"


LIMITS: ContextVar[Limits] = ContextVar("limits of the current task's request")


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The HTTP client of ``openai``, with :data:`LIMITS` over each try: connecting, headers and body.

    A reply that is refused comes back as an empty one, with the reason for :func:`content_of`: what is
    raised here would be tried again. The client itself does not repeat what the server refuses for a while
    (:func:`is_refusal`). Proxies and certificates are those of the environment, as ever.
    """

    def __init__(self) -> None:
        # Nothing here needs cookies, and one that is no ASCII would spoil all further requests.
        none = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        # A packed reply has its size hidden.
        super().__init__(headers={"accept-encoding": "identity"}, cookies=none)

    async def send(self, request: Any, **options: Any) -> Any:
        """Return the whole response, redirects followed; raises ``ReadTimeout`` where it takes too long."""
        limits = LIMITS.get()
        try:
            async with asyncio.timeout(limits.seconds):
                return await self._followed(request, limits, options)
        except TimeoutError:
            raise _httpx.ReadTimeout(
                "the time of a try is over", request=request
            ) from None
        except ReplyError as refused:
            return Response(200, request=request, extensions={_REFUSED: refused})

    async def _followed(
        self, request: Any, limits: Limits, options: dict[str, Any]
    ) -> Any:
        options |= {"stream": True, "follow_redirects": False}
        for _ in range(_MOST_REDIRECTS + 1):
            response = await super().send(request, **options)
            try:
                if not response.has_redirect_location:
                    return await _read(response, limits)
                request = _next(response)
            finally:
                await response.aclose()
        raise RedirectError(
            f"redirects more than {_MOST_REDIRECTS} times, last to {request.url}"
        )


def content_of(response: Any) -> bytes:
    """Return the body that :class:`BoundedClient` received; raises :class:`ReplyError` where it took none."""
    refused = response.extensions.get(_REFUSED)
    if refused is not None:
        raise refused
    content: bytes = response.content
    return content


def is_refusal(response: Any) -> bool:
    """Return True if the server answers nothing at the moment, and may answer the same request later."""
    told = any(name in response.headers for name in _WAITS)
    return response.status_code == 429 or (response.status_code == 503 and told)


def _next(response: Any) -> Any:
    """Return the request that a redirect asks for; raises :class:`RedirectError` where it may not be sent."""
    before, after = response.request, response.next_request
    target = repr(str(after.url if after else response.headers["location"])[:200])
    if after is None or not _same_server(before.url, after.url):
        raise RedirectError(
            f"redirects to {target}; allowed is the same host and port, or https in place of http on the "
            "usual ports: if that is the server to ask, give its address as base_url"
        )
    if after.method != before.method:
        raise RedirectError(
            f"redirects to {target} by status {response.status_code}, which drops the question; allowed is "
            "307 or 308: give that address as base_url"
        )
    return after


def _same_server(before: Any, after: Any) -> bool:
    old, new = (
        (url.scheme, url.port or _PORTS.get(url.scheme)) for url in (before, after)
    )
    upgraded = (old, new) == (("http", 80), ("https", 443))
    return bool(before.host == after.host and (old == new or upgraded))


async def _read(response: Any, limits: Limits) -> Any:
    # What counts of an error is its status.
    error = response.status_code >= 400
    most = _ERROR_BYTES if error else limits.size
    encoding = response.headers.get("content-encoding", "").strip().lower()
    content = bytearray()
    if encoding not in ("", "identity"):
        refused = f"the reply is compressed by {encoding[:40]!r}, which it was asked not to be"
        if not error:
            raise ReplyError(refused)
        content += refused.encode()
    else:
        async with aclosing(response.aiter_raw()) as parts:
            async for part in parts:
                content += part
                if len(content) > most:
                    break
    if len(content) > most and not error:
        raise ReplyError(f"the reply is larger than {limits.description}")
    headers = [
        pair for pair in response.headers.raw if pair[0].lower() not in _OF_THE_BODY
    ]
    if is_refusal(response):
        headers = [pair for pair in headers if pair[0].lower() != _NO_RETRY[0]] + [
            _NO_RETRY
        ]
    return Response(
        response.status_code,
        headers=headers,
        content=bytes(content[:most]),
        request=response.request,
    )
