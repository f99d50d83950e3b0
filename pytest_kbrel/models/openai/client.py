"""Connection to an OpenAI-compatible server, its embeddings endpoint, and what the server's errors mean."""

from __future__ import annotations

import asyncio
import codecs
import json
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import openai

from pytest_kbrel.errors import ModelError, UnavailableError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.openai.http import (
    LIMITS,
    BoundedClient,
    Limits,
    RedirectError,
    ReplyError,
    Response,
    content_of,
    limits_for,
)
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key, check
from pytest_kbrel.models.openai.throttle import (
    FURTHER_TRIES,
    NO_QUOTA,
    Throttle,
    WaitError,
)
from pytest_kbrel.models.openai.usage import Usage
from pytest_kbrel.printing import redacted
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import replace_surrogates
from pytest_kbrel.untrusted import parse

T = TypeVar("T")
Post = Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, bytes]]
"""Sends a body to a path of the server and returns the reply's body."""

_TEMPLATE = "chat_template_kwargs"
# vLLM makes these anew for each call.
_CHANGING = ("created", "permission")
# Nobody waits long for the list of models.
_LIST_SECONDS, _LIST_BYTES = 10.0, 8_000_000
# Servers limit how many texts one request may hold; all we know of take as many as this.
_TEXTS_A_REQUEST = 128
# The longest vectors that we know of have 8,192 numbers, and a number has up to 24 characters.
_VECTOR_BYTES = 256_000


class Replies(Protocol):
    """Source of replies; :class:`Connection` is the one that asks a server."""

    repeats_key: bool

    def ask(
        self, call: Callable[[Post], Coroutine[Any, Any, bytes]], limits: Limits
    ) -> Any | Failed:
        """Return the JSON of the reply to what ``call`` posts, as builtins, or why there is none."""
        ...

    def about(self) -> str:
        """Return what is said of the model apart from its replies."""
        ...

    def let_wait(self, waits: bool) -> None:
        """Cancel the requests that are not yet sent, now and until it is called with True."""
        ...

    def close(self) -> None:
        """Free what is held."""
        ...


class Connection:
    """Client for one model of one server; any thread may use it.

    The client itself repeats a request ``spec.max_retries`` times, with longer and longer pauses, after time
    limits, 408, 409 and 5xx; what the server refuses for a while, the :class:`Throttle` repeats.
    ``spec.timeout`` is for each try as a whole. ``repeats_key`` is True once a reply held a key. ``usage``
    counts the tokens, and nothing is sent once the budget for them is spent.
    """

    def __init__(self, spec: OpenAISpec, usage: Usage | None = None) -> None:
        check(spec)
        self.spec = spec
        self._usage = usage or Usage(spec)
        self.repeats_key = False
        self._reached = False
        self._loop = LoopThread("kbrel-openai-client")
        self._throttle = Throttle(
            spec.max_concurrent, 1 + spec.max_retries + FURTHER_TRIES
        )
        self.client = openai.AsyncOpenAI(
            api_key=api_key(spec),
            base_url=spec.base_url,
            timeout=spec.timeout,
            max_retries=spec.max_retries,
            http_client=BoundedClient(),
        )

    def ask(
        self, call: Callable[[Post], Coroutine[Any, Any, bytes]], limits: Limits
    ) -> Any | Failed:
        """Return the JSON that ``call`` gets from the server, as builtins, or why it got nothing.

        Raises :class:`ModelError` where no further request can succeed: the server refuses the key, does not
        know the model or the path, takes no temperature 0, redirects to another server, was never reached,
        has no quota left, asks for a wait that is too long, answers no request for as long, or states no
        usage although there is a budget.
        Raises :class:`BudgetError` where that is spent.
        """
        paths: list[str] = []

        async def post(path: str, body: Mapping[str, Any]) -> bytes:
            paths.append(path)
            return await self._post(path, body)

        try:
            content = self._run(lambda: call(post), limits)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ModelError(
                f"{self._where()} refuses the key in {self.spec.api_key_env}: {self._why(error)}"
            ) from None
        except openai.NotFoundError as error:
            raise ModelError(
                f"{self._where()} does not know {self.spec.name!r}, or has no such path: {self._why(error)}; "
                "allowed is a name and a base_url that the server knows"
            ) from None
        except RedirectError as error:
            raise ModelError(
                f"{self._where()} {replace_surrogates(redacted(str(error)))}"
            ) from None
        except WaitError as error:
            raise self._too_long(error) from None
        except ReplyError as error:
            self._reached = True
            return Failed(error=replace_surrogates(redacted(str(error))))
        except openai.APITimeoutError:
            return Failed(error=self._timed_out())
        except openai.APIConnectionError as error:
            cause = _cause_of(error)
            if not self._reached:
                raise ModelError(
                    f"{self._where()} cannot be reached: {self._why(cause)}"
                ) from None
            return Failed(error=self._why(cause))
        except openai.BadRequestError as error:
            if refuses(error, "temperature"):
                raise ModelError(
                    f"{self._where()} refuses temperature 0: {self._why(error)}; answers that are drawn anew "
                    "each time decide nothing; allowed: a model that takes temperature 0"
                ) from None
            if _TEMPLATE in str(error):
                raise ModelError(
                    f"{self._where()} takes no {_TEMPLATE}, as which enable_thinking and chat_template_args "
                    f"are sent: {self._why(error)}; allowed: neither of them for this server"
                ) from None
            self._reached = True
            return Failed(error=self._why(error))
        except (openai.OpenAIError, ValueError) as error:
            if getattr(error, "code", None) == NO_QUOTA:
                raise UnavailableError(
                    f"{self._where()} has no quota left: {self._why(error)}"
                ) from None
            self._reached = True
            return Failed(error=self._why(error))
        self._reached = True
        reply = read_json(self._masked(content))
        if isinstance(reply, Failed):
            return reply
        if all(map(_is_paid, paths)):
            self._usage.add(reply)
        return reply

    def about(self) -> str:
        """Return what the server's list of models says of this one, as JSON; empty where it has no list.

        What changes from call to call with some servers (times, permissions) is left out. Raises
        :class:`ModelError` where the server asks for a wait that is too long.
        """
        limits = Limits(
            seconds=min(self.spec.timeout, _LIST_SECONDS),
            size=_LIST_BYTES,
            description=f"{_LIST_BYTES // 1000} kB",
        )
        try:
            listed: Any = read_json(self._masked(self._run(self._list, limits)))
            entries = [
                one
                for one in listed["data"]
                if isinstance(one, dict) and one.get("id") == self.spec.name
            ]
            entry = entries[0]
            return json.dumps(
                {key: entry[key] for key in entry if key not in _CHANGING},
                sort_keys=True,
            )
        except WaitError as error:
            raise self._too_long(error) from None
        except (
            openai.OpenAIError,
            ReplyError,
            ValueError,
            TypeError,
            LookupError,
            RecursionError,
        ):
            return ""

    def let_wait(self, waits: bool) -> None:
        """Cancel the requests that are not yet sent, as :meth:`Throttle.let_wait` does."""
        self._loop.call(lambda: self._throttle.let_wait(waits))

    def close(self) -> None:
        """Give up what is under way and close the client's connections."""
        self._loop.close(self.client.close())

    def _run(
        self, call: Callable[[], Coroutine[Any, Any, bytes]], limits: Limits
    ) -> bytes:
        async def within() -> bytes:
            LIMITS.set(limits)
            return await call()

        return self._loop.run(within())

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        async def send() -> bytes:
            if _is_paid(path):
                self._usage.check()
            return content_of(await self.client.post(path, body=body, cast_to=Response))

        return await self._throttle.run(send)

    async def _list(self) -> bytes:
        once = self.client.with_options(max_retries=0)

        async def send() -> bytes:
            return content_of(await once.get("/models", cast_to=Response))

        return await self._throttle.run(send)

    def _too_long(self, error: WaitError) -> UnavailableError:
        last = error.__cause__
        why = ""
        if isinstance(last, Exception):
            is_late = isinstance(last, openai.APITimeoutError)
            why = f": {self._timed_out() if is_late else self._why(_cause_of(last))}"
        return UnavailableError(
            f"{self._where()} {error}{why}; allowed: another run when it answers again"
        )

    def _timed_out(self) -> str:
        return f"no complete reply within {self.spec.timeout:g} seconds; timeout=SECONDS allows more"

    def _where(self) -> str:
        return f"{self.spec.text}: the server {self.spec.base_url}"

    def _why(self, error: Exception) -> str:
        return replace_surrogates(describe_error(error))

    def _masked(self, content: bytes) -> bytes:
        """Return the body of a reply without keys."""
        text = content.decode("utf-8", "surrogateescape")
        shown = redacted(text)
        self.repeats_key |= shown != text
        return shown.encode("utf-8", "surrogateescape")


def _cause_of(error: Exception) -> Exception:
    # The client's own errors of a connection say nothing more.
    return error.__cause__ if isinstance(error.__cause__, Exception) else error


def _is_paid(path: str) -> bool:
    # No model reads what is only split into tokens.
    return not path.endswith("/tokenize")


class OpenAIEmbedder:
    """Encoder of texts behind a server."""

    def __init__(self, spec: OpenAISpec) -> None:
        # Vectors are not kept, so that a run that goes on would pay for all of them again.
        self._connection = Connection(
            replace(spec, max_tokens_total=None, max_cost=None)
        )

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, all of one length; raises :class:`ModelError`."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _TEXTS_A_REQUEST):
            vectors += self._request(texts[start : start + _TEXTS_A_REQUEST])
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelError(
                f"{self._connection.spec.text}: vectors of one length expected, found several lengths"
            )
        return vectors

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _request(self, texts: Sequence[str]) -> list[list[float]]:
        spec = self._connection.spec
        # The protocol's other format of numbers is base64, which not every server knows.
        body = {"model": spec.name, "input": list(texts), "encoding_format": "float"}
        limits = limits_for(spec.timeout, len(texts), _VECTOR_BYTES, "text")
        reply = self._connection.ask(lambda post: post("/embeddings", body), limits)
        if isinstance(reply, Failed):
            raise ModelError(f"{spec.text}: {reply.error}")
        try:
            vectors = {
                item["index"]: _vector(item["embedding"]) for item in reply["data"]
            }
        except (LookupError, TypeError, ValueError):
            vectors = {}
        if vectors.keys() != set(range(len(texts))):
            raise ModelError(
                f"{spec.text}: an embedding for each of {len(texts)} texts expected, the server at "
                f"{spec.base_url} sent something else; allowed is a server with an embeddings endpoint"
            )
        return [vectors[index] for index in range(len(texts))]


def _vector(numbers: Any) -> list[float]:
    if not (
        isinstance(numbers, list)
        and numbers
        and all(type(one) in (int, float) for one in numbers)
    ):
        raise TypeError("no list of numbers")
    return [float(number) for number in numbers]


def refuses(error: openai.BadRequestError, option: str) -> bool:
    """Return True if a server refused a request for an option in it."""
    return error.param == option or bool(re.search(f"['\"`]{option}['\"`]", str(error)))


def read_json(content: bytes) -> Any | Failed:
    """Return a reply's JSON as builtins, of equal keys the last; what is none is a :class:`Failed`.

    NaN and infinity are let through, since some servers send them where nothing depends on them.
    """
    try:
        return parse(content.removeprefix(codecs.BOM_UTF8), nan=True)
    except UnicodeDecodeError as error:
        return Failed(
            error=f"the server's reply is no UTF-8: byte {error.start} of {len(content)}"
        )
    except json.JSONDecodeError as error:
        return Failed(
            error=f"the server's reply is no JSON ({error.msg}): {excerpt(content)}"
        )
    except ValueError as error:
        return Failed(error=f"the server's reply is no JSON that can be read: {error}")


def excerpt(value: Any) -> str:
    """Return the beginning of a part of a reply, for messages."""
    try:
        text = (
            value.decode(errors="replace")
            if isinstance(value, bytes)
            else json.dumps(value)
        )
    except RecursionError:
        return "something that is nested too deeply"
    # Before it is cut: half a key is one too.
    return repr(replace_surrogates(redacted(text))[:100])


class LoopThread:
    """Event loop in a thread of its own, started at its first coroutine; any thread may use it.

    Only a coroutine can be cancelled whatever it waits for: a name that is looked up, a handshake, the rest
    of a header. A thread that reads from a socket cannot.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return what the coroutine returns, or raise what it raises; an interrupted wait cancels it.

        Raises ``concurrent.futures.CancelledError`` where the loop is closed, before or meanwhile.
        """
        with self._lock:
            if self._closed:
                coroutine.close()
                raise CancelledError
            future = asyncio.run_coroutine_threadsafe(coroutine, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Have the loop call a function soon; not where it is closed or was never started."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancel what runs, run ``last``, and end the thread."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            self._closed = True
        if loop is None or thread is None:
            last.close()
            return
        asyncio.run_coroutine_threadsafe(_ended(last), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            # As a daemon it keeps no process alive that forgot to close it.
            self._thread = threading.Thread(
                target=self._loop.run_forever, name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop


async def _ended(last: Coroutine[Any, Any, None]) -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await last
