"""Connection to an OpenAI-compatible server, its embeddings endpoint, and what the server's errors mean."""

from __future__ import annotations

import codecs
import contextlib
import json
import re
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import numpy as np
import numpy.typing as npt
import openai
from anyio.from_thread import start_blocking_portal

from pytest_kbrel.errors import ModelError, UnavailableError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.openai.replies import Usage, excerpt, failure_of
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key, check, headers_of
from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import replace_surrogates
from pytest_kbrel.untrusted import DOCUMENT, parse, size

# Of httpx or httpx2: which one it is depends on the version of openai.
_httpx = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__]

LONGEST_SILENCE = 600.0
"""Seconds without an answer after which a run ends."""
# The client waits no longer for what a server asks to wait for.
_LONGEST_WAIT = 120.0
_NEWER_LIMIT = "max_completion_tokens"
# vLLM makes these anew for each call.
_CHANGING = ("created", "permission")
# Nobody waits long for the list of models.
_LIST_SECONDS = 10.0
# Servers limit how many texts one request may hold; all we know of take as many as this.
_TEXTS_A_REQUEST = 128
# They no longer hold for a body that was read.
_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")


class BoundedClient(openai.DefaultAsyncHttpxClient):
    """The HTTP client of ``openai``, with limits on the time and size of a whole reply.

    The time of a try holds from connecting to the end of the body. A redirect is not followed: the key stays
    with the server that it was given for. Proxies and certificates are those of the environment.
    """

    async def send(self, request: Any, **options: Any) -> Any:
        """Return the whole response.

        Raises ``ReadTimeout`` where it takes too long, and ``ValueError`` where it is too large.
        """
        options |= {"stream": True, "follow_redirects": False}
        content = bytearray()
        try:
            with anyio.fail_after(request.extensions["timeout"]["read"]):
                response = await super().send(request, **options)
                try:
                    async for part in response.aiter_bytes():
                        content += part
                        if len(content) > DOCUMENT:
                            raise ValueError(
                                f"the reply is larger than the {size(DOCUMENT)} that it may have"
                            )
                finally:
                    await response.aclose()
        except TimeoutError:
            raise _httpx.ReadTimeout("the try took too long", request=request) from None
        for name in _OF_THE_BODY:
            response.headers.pop(name, None)
        return _httpx.Response(
            response.status_code,
            headers=response.headers,
            content=bytes(content),
            request=request,
        )


class Replies:
    """Source of replies; :class:`Connection` is the one that asks a server."""

    repeats_key = False

    def ask(self, path: str, body: Mapping[str, Any]) -> Any | Failed:
        """Return the JSON of the reply to a body, as builtins, or why there is none."""
        raise NotImplementedError

    def about(self) -> str:
        """Return what is said of the model apart from its replies."""
        return ""

    def close(self) -> None:
        """Free what is held."""


class Connection(Replies):
    """Client for one model of one server; any thread may use it.

    The client of ``openai`` repeats a request up to ``spec.max_retries`` times after time limits, broken
    connections, 408, 409, 429 and 5xx, and waits as long as ``Retry-After`` says; a reply whose answer has not
    ended is asked for again as often. ``spec.timeout`` is for each
    try as a whole. ``repeats_key`` is True once a reply held a key. ``usage`` counts the tokens, and nothing
    is sent once the budget for them is spent. What the server does not take in a body (stop strings, the older
    name of the limit of tokens) is left out or renamed from then on.
    """

    def __init__(self, spec: OpenAISpec, usage: Usage | None = None) -> None:
        check(spec)
        self.spec = spec
        self._usage = usage or Usage(spec)
        self._takes_stops, self._limit = True, "max_tokens"
        # Whether it ever replied, and when the first request failed since it last did.
        self._reached, self._silent_since = False, 0.0
        # A thread that reads from a socket cannot be stopped, a coroutine can.
        self._held = contextlib.ExitStack()
        self._portal = self._held.enter_context(start_blocking_portal())
        self.client = openai.AsyncOpenAI(
            api_key=api_key(spec),
            base_url=spec.base_url,
            timeout=spec.timeout,
            max_retries=spec.max_retries,
            default_headers=headers_of(spec),
            http_client=BoundedClient(),
        )

    def ask(self, path: str, body: Mapping[str, Any]) -> Any | Failed:
        """Return the JSON of the reply to a body, as builtins, or why there is none.

        Raises :class:`ModelError` where no further request can
        succeed: the server refuses the key, does not know the model or the path, takes no temperature 0,
        redirects, was never reached, has no quota left, asks for a wait that is too long, answers no request
        for :data:`LONGEST_SILENCE`, or states no usage although there is a budget. Raises
        :class:`BudgetError` where that is spent.
        """
        # No model reads what is only split into tokens.
        is_paid, why = not path.endswith("/tokenize"), ""
        for tried in range(self.spec.max_retries + 1):
            if tried:
                # As the client waits.
                self._portal.call(anyio.sleep, min(0.25 * 2**tried, 8.0))
            if is_paid:
                self._usage.check()
            # As the server takes it, as far as that is known.
            sent = {
                self._limit if key == "max_tokens" else key: value
                for key, value in body.items()
                if self._takes_stops or key != "stop"
            }
            try:
                reply = self._sent(self.client, "post", path, body=sent)
            except openai.OpenAIError as error:
                if self._adapts(error, sent):
                    return self.ask(path, body)
                return self._failed(error)
            except ValueError as error:
                return Failed(error=str(error))
            why = failure_of(reply)
            stated = isinstance(reply, dict) and "usage" in reply
            if is_paid and not isinstance(reply, Failed) and (stated or not why):
                self._usage.add(reply)
            if not why:
                self._note_reply()
                return reply
        return self._unanswered(why)

    def about(self) -> str:
        """Return what the server's list of models says of this one, as JSON; empty where it has no list.

        What changes from call to call with some servers (times, permissions) is left out.
        """
        client = self.client.with_options(
            max_retries=1, timeout=min(self.spec.timeout, _LIST_SECONDS)
        )
        try:
            listed: Any = self._sent(client, "get", "/models")
            entry = next(
                one
                for one in listed["data"]
                if isinstance(one, dict) and one.get("id") == self.spec.name
            )
        except (openai.OpenAIError, LookupError, TypeError, ValueError, StopIteration):
            return ""
        kept = {key: value for key, value in entry.items() if key not in _CHANGING}
        return json.dumps(kept, sort_keys=True)

    def close(self) -> None:
        """Give up what is under way and close the client's connections."""
        with contextlib.suppress(RuntimeError):
            self._portal.call(self.client.close)
            self._portal.call(self._portal.stop, True)
        self._held.close()

    def _sent(
        self, client: openai.AsyncOpenAI, method: str, path: str, **more: Any
    ) -> Any | Failed:
        """Return the JSON of a reply, without keys."""
        send = partial(getattr(client, method), path, cast_to=_httpx.Response, **more)
        response = self._portal.call(send)
        text = response.content.decode("utf-8", "surrogateescape")
        shown = redacted(text)
        self.repeats_key |= shown != text
        return read_json(shown.encode("utf-8", "surrogateescape"))

    def _adapts(self, error: openai.OpenAIError, sent: Mapping[str, Any]) -> bool:
        """Note what newer models of OpenAI refuse and all other servers know; False where it is none of it."""
        if not isinstance(error, openai.BadRequestError):
            return False
        if "stop" in sent and _refuses(error, "stop"):
            self._takes_stops = False
        elif "max_tokens" in sent and _NEWER_LIMIT in str(error):
            self._limit = _NEWER_LIMIT
        else:
            return False
        return True

    def _failed(self, error: openai.OpenAIError) -> Failed:
        """Return the failure of one request; raises as :meth:`ask`."""
        # The client's own errors of a connection say nothing more than "Connection error.".
        cause = error.__cause__
        why = replace_surrogates(
            describe_error(cause if isinstance(cause, Exception) else error)
        )
        if isinstance(error, openai.APIStatusError):
            self._reached = True
            self._check_status(error, why)
        if isinstance(error, openai.APITimeoutError):
            why = f"no complete reply within {self.spec.timeout:g} seconds; timeout=SECONDS allows more"
        elif isinstance(error, openai.APIConnectionError):
            if not self._reached:
                raise ModelError(f"{self._where} cannot be reached: {why}") from None
        elif isinstance(error, openai.RateLimitError):
            why += "; a larger max_retries or a smaller max_concurrent may do"
        elif not isinstance(error, openai.InternalServerError):
            self._note_reply()
            return Failed(error=why)
        return self._unanswered(why)

    def _unanswered(self, why: str) -> Failed:
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if (seconds := now - self._silent_since) >= LONGEST_SILENCE:
            raise UnavailableError(
                f"{self._where} has answered no request for {seconds:,.0f} seconds: {why}; allowed: another "
                "run when it answers again"
            ) from None
        return Failed(error=why)

    def _note_reply(self) -> None:
        self._reached, self._silent_since = True, 0.0

    def _check_status(self, error: openai.APIStatusError, why: str) -> None:
        """Raise :class:`ModelError` where no further request can succeed."""
        status, headers = error.status_code, error.response.headers
        told = headers.get("retry-after", "")
        wait = float(told) if told.isdecimal() else 0.0
        kind = ModelError
        if status in (401, 403):
            said = f"refuses the key in {self.spec.api_key_env}: {why}"
        elif status == 404:
            said = (
                f"does not know {self.spec.name!r}, or has no such path: {why}; allowed is a name and a "
                "base_url that the server knows"
            )
        elif 300 <= status < 400:
            target = replace_surrogates(redacted(headers.get("location", ""))[:200])
            said = (
                f"redirects to {target!r}, and no question is sent there; if that is the "
                "server to ask, give its address as base_url"
            )
        elif status == 400 and _refuses(error, "temperature"):
            said = (
                f"refuses temperature 0: {why}; answers that are drawn anew each time decide nothing; "
                "allowed: a model that takes temperature 0"
            )
        elif status == 400 and (
            refused := [
                key
                for key in ("chat_template_kwargs", *self.spec.extra)
                if key in str(error)
            ]
        ):
            said = (
                f"takes no {refused[0]}: {why}; allowed: model-args without what is sent as that "
                "(enable_thinking, chat_template_args, extra_body, reasoning_effort)"
            )
        elif error.code == "insufficient_quota":
            kind, said = UnavailableError, f"has no quota left: {why}"
        elif wait > _LONGEST_WAIT:
            kind = UnavailableError
            said = (
                f"asks to wait {wait:,.0f} seconds before the next request (Retry-After), and no more than "
                f"{_LONGEST_WAIT:.0f} are waited: {why}; allowed: another run by then"
            )
        else:
            return
        raise kind(f"{self._where} {said}") from None

    @property
    def _where(self) -> str:
        return f"{self.spec.text}: the server {self.spec.base_url}"


class OpenAIEmbedder:
    """Encoder of texts behind a server."""

    def __init__(self, spec: OpenAISpec) -> None:
        # Vectors are not kept, so that a run that goes on would pay for all of them again.
        self._connection = Connection(
            replace(spec, max_tokens_total=None, max_cost=None)
        )

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float64]:
        """Return one vector a text, all of one length; raises :class:`ModelError`."""
        spec = self._connection.spec
        vectors = []
        try:
            for start in range(0, len(texts), _TEXTS_A_REQUEST):
                some = list(texts[start : start + _TEXTS_A_REQUEST])
                # The protocol's other format of numbers is base64, which not every server knows.
                body = {"model": spec.name, "input": some, "encoding_format": "float"}
                reply = self._connection.ask("/embeddings", body)
                if isinstance(reply, Failed):
                    raise ModelError(f"{spec.text}: {reply.error}")
                by_place = {item["index"]: item["embedding"] for item in reply["data"]}
                vectors += [by_place[place] for place in range(len(some))]
            return np.array(vectors, dtype=float)
        except (LookupError, TypeError, ValueError):
            raise ModelError(
                f"{spec.text}: an embedding for each of {len(texts)} texts expected, all of one length; the "
                f"server at {spec.base_url} sent something else; allowed is a server with an embeddings endpoint"
            ) from None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _refuses(error: openai.APIStatusError, option: str) -> bool:
    """Return True if a server refused a request for an option in it."""
    return error.param == option or bool(re.search(f"['\"`]{option}['\"`]", str(error)))


def read_json(content: bytes) -> Any | Failed:
    """Return a reply's JSON as builtins, of equal keys the last; what is none is a :class:`Failed`.

    NaN and infinity are let through, since some servers send them where nothing depends on them.
    """
    try:
        return parse(content.removeprefix(codecs.BOM_UTF8), nan=True)
    except ValueError as error:
        why = str(error)[:100]
        return Failed(
            error=f"the server's reply is no JSON ({why}): {excerpt(content.decode(errors='replace'))}"
        )
