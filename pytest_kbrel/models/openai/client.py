"""Connection to an OpenAI-compatible server, its embeddings endpoint, and what the server's errors mean."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import openai

from pytest_kbrel.errors import ModelError, UnavailableError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.openai.http import (
    MOST_BYTES,
    BoundedClient,
    LoopThread,
    Response,
)
from pytest_kbrel.models.openai.replies import excerpt, failure_of
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key, check, headers_of
from pytest_kbrel.models.openai.usage import Usage
from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import replace_surrogates
from pytest_kbrel.untrusted import parse

LONGEST_SILENCE = 600.0
"""Seconds without an answer, over at least three requests, after which a run ends."""
_FAILURES = 3
# The client waits no longer for what a server asks to wait for.
_LONGEST_WAIT = 120.0
_TEMPLATE = "chat_template_kwargs"
_NEWER_LIMIT = "max_completion_tokens"
_NO_QUOTA = "insufficient_quota"
# vLLM makes these anew for each call.
_CHANGING = ("created", "permission")
# Nobody waits long for the list of models.
_LIST_SECONDS, _LIST_BYTES = 10.0, 8_000_000
# What stands in a reply beside its answer: names, counts, and what else a server likes to tell.
_ENVELOPE_BYTES = 64_000
# Servers limit how many texts one request may hold; all we know of take as many as this.
_TEXTS_A_REQUEST = 128
# The longest vectors that we know of have 8,192 numbers, and a number has up to 24 characters.
_VECTOR_BYTES = 256_000


class Replies:
    """Source of replies; :class:`Connection` is the one that asks a server."""

    repeats_key = False

    def ask(self, path: str, body: Mapping[str, Any], size: int) -> Any | Failed:
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
        self._reached = False
        self._takes_stops, self._limit = True, "max_tokens"
        # Failures since the latest reply, and since when there is none.
        self._failures, self._silent_since = 0, 0.0
        self._loop = LoopThread("kbrel-openai-client")
        self.client = openai.AsyncOpenAI(
            api_key=api_key(spec),
            base_url=spec.base_url,
            timeout=spec.timeout,
            max_retries=spec.max_retries,
            default_headers=headers_of(spec),
            http_client=BoundedClient(),
        )

    def ask(
        self, path: str, body: Mapping[str, Any], size: int, tried: int = 0
    ) -> Any | Failed:
        """Return the JSON of the reply to a body, as builtins, or why there is none.

        ``tried`` is how often a reply without an answer has come back already. A reply may have ``size`` bytes and 64 kB more. Raises :class:`ModelError` where no further request can
        succeed: the server refuses the key, does not know the model or the path, takes no temperature 0,
        redirects, was never reached, has no quota left, asks for a wait that is too long, answers no request
        for :data:`LONGEST_SILENCE`, or states no usage although there is a budget. Raises
        :class:`BudgetError` where that is spent.
        """
        # No model reads what is only split into tokens.
        is_paid = not path.endswith("/tokenize")
        if is_paid:
            self._usage.check()
        sent, begun = self._taken(body), time.monotonic()
        most = _ENVELOPE_BYTES + size
        try:
            content = self._received(partial(self.client.post, path, body=sent), most)
        except (openai.OpenAIError, ValueError) as error:
            if isinstance(error, openai.BadRequestError) and self._adapts(error, sent):
                return self.ask(path, body, size)
            return self._failed(error, begun)
        if len(content) > most:
            self._note_reply()
            return Failed(
                error=f"the reply is larger than the {most // 1000} kB that it may have"
            )
        reply = read_json(content)
        why = failure_of(reply)
        if (
            is_paid
            and not isinstance(reply, Failed)
            and not (why and "usage" not in reply)
        ):
            self._usage.add(reply)
        if not why:
            self._note_reply()
            return reply
        self._reached = True
        if tried == self.spec.max_retries:
            return self._unanswered(why, begun)
        # Seconds, as the client has them.
        self._loop.run(asyncio.sleep(min(0.5 * 2**tried, 8.0)))
        return self.ask(path, body, size, tried + 1)

    def about(self) -> str:
        """Return what the server's list of models says of this one, as JSON; empty where it has no list.

        What changes from call to call with some servers (times, permissions) is left out.
        """
        client = self.client.with_options(
            max_retries=1, timeout=min(self.spec.timeout, _LIST_SECONDS)
        )
        try:
            content = self._received(partial(client.get, "/models"), _LIST_BYTES)
            listed: Any = read_json(content)
            entry = next(
                one
                for one in listed["data"]
                if isinstance(one, dict) and one.get("id") == self.spec.name
            )
        except (openai.OpenAIError, LookupError, TypeError, StopIteration):
            return ""
        kept = {key: value for key, value in entry.items() if key not in _CHANGING}
        return json.dumps(kept, sort_keys=True)

    def close(self) -> None:
        """Give up what is under way and close the client's connections."""
        self._loop.close(self.client.close())

    def _received(self, send: Callable[..., Awaitable[Any]], size: int) -> bytes:
        """Return the body of a reply without keys."""

        async def body() -> bytes:
            MOST_BYTES.set(size)
            content: bytes = (await send(cast_to=Response)).content
            return content

        text = self._loop.run(body()).decode("utf-8", "surrogateescape")
        shown = redacted(text)
        self.repeats_key |= shown != text
        return shown.encode("utf-8", "surrogateescape")

    def _taken(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a body as the server takes it, as far as that is known."""
        return {
            self._limit if key == "max_tokens" else key: value
            for key, value in body.items()
            if self._takes_stops or key != "stop"
        }

    def _adapts(self, error: openai.BadRequestError, sent: Mapping[str, Any]) -> bool:
        """Note what newer models of OpenAI refuse and all other servers know; False where it is none of it."""
        if "stop" in sent and _refuses(error, "stop"):
            self._takes_stops = False
        elif "max_tokens" in sent and _NEWER_LIMIT in str(error):
            self._limit = _NEWER_LIMIT
        else:
            return False
        return True

    def _failed(self, error: Exception, begun: float) -> Failed:
        """Return the failure of one request, which began at this time; raises as :meth:`ask`."""
        if isinstance(error, openai.APIStatusError):
            self._reached = True
            self._check_status(error)
        why = self._why(error)
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
        return self._unanswered(why, begun)

    def _unanswered(self, why: str, begun: float) -> Failed:
        if not self._failures:
            self._silent_since = max(begun, self._silent_since)
        self._failures += 1
        seconds = time.monotonic() - self._silent_since
        if seconds >= LONGEST_SILENCE and self._failures >= _FAILURES:
            raise UnavailableError(
                f"{self._where} has answered no request for {seconds:,.0f} seconds: {why}; allowed: another "
                "run when it answers again"
            ) from None
        return Failed(error=why)

    def _note_reply(self) -> None:
        self._reached, self._failures = True, 0
        self._silent_since = time.monotonic()

    def _check_status(self, error: openai.APIStatusError) -> None:
        """Raise :class:`ModelError` where no further request can succeed."""
        status, why = error.status_code, self._why(error)
        told = error.response.headers.get("retry-after", "")
        wait = float(told) if told.isdecimal() else 0.0
        kind: type[ModelError] = ModelError
        if status in (401, 403):
            said = f"refuses the key in {self.spec.api_key_env}: {why}"
        elif status == 404:
            said = (
                f"does not know {self.spec.name!r}, or has no such path: {why}; allowed is a name and a "
                "base_url that the server knows"
            )
        elif 300 <= status < 400:
            target = redacted(error.response.headers.get("location", ""))[:200]
            said = (
                f"redirects to {replace_surrogates(target)!r}, and no question is sent there; if that is the "
                "server to ask, give its address as base_url"
            )
        elif status == 400 and _refuses(error, "temperature"):
            said = (
                f"refuses temperature 0: {why}; answers that are drawn anew each time decide nothing; "
                "allowed: a model that takes temperature 0"
            )
        elif status == 400 and (
            refused := [
                key for key in (_TEMPLATE, *self.spec.extra) if key in str(error)
            ]
        ):
            said = (
                f"takes no {refused[0]}: {why}; allowed: model-args without what is sent as that "
                "(enable_thinking, chat_template_args, extra_body, reasoning_effort)"
            )
        elif error.code == _NO_QUOTA:
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

    def _why(self, error: Exception) -> str:
        # The client's own errors of a connection say nothing more than "Connection error.".
        cause = error.__cause__
        return replace_surrogates(
            describe_error(cause if isinstance(cause, Exception) else error)
        )


class OpenAIEmbedder:
    """Encoder of texts behind a server."""

    def __init__(self, spec: OpenAISpec) -> None:
        # Vectors are not kept, so that a run that goes on would pay for all of them again.
        self._connection = Connection(
            replace(spec, max_tokens_total=None, max_cost=None)
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, all of one length; raises :class:`ModelError`."""
        spec = self._connection.spec
        vectors: dict[int, list[float]] = {}
        for start in range(0, len(texts), _TEXTS_A_REQUEST):
            some = list(texts[start : start + _TEXTS_A_REQUEST])
            # The protocol's other format of numbers is base64, which not every server knows.
            body = {"model": spec.name, "input": some, "encoding_format": "float"}
            reply = self._connection.ask("/embeddings", body, len(some) * _VECTOR_BYTES)
            if isinstance(reply, Failed):
                raise ModelError(f"{spec.text}: {reply.error}")
            with suppress(LookupError, TypeError, ValueError):
                vectors |= {
                    start + item["index"]: _vector(item["embedding"])
                    for item in reply["data"]
                }
        if (
            vectors.keys() != set(range(len(texts)))
            or len({*map(len, vectors.values())}) > 1
        ):
            raise ModelError(
                f"{spec.text}: an embedding for each of {len(texts)} texts expected, all of one length; the "
                f"server at {spec.base_url} sent something else; allowed is a server with an embeddings endpoint"
            )
        return [vectors[index] for index in range(len(texts))]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _vector(numbers: Any) -> list[float]:
    if not (
        isinstance(numbers, list)
        and numbers
        and all(type(one) in (int, float) for one in numbers)
    ):
        raise TypeError("no list of numbers")
    return [float(number) for number in numbers]


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
