"""The connection to an OpenAI-compatible server: one client, and what its errors mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Coroutine, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.openai.event_loop import LoopThread
from pytest_kbrel.models.openai.limits import Limits, RedirectError, ReplyError, limits_of_list
from pytest_kbrel.models.openai.replies import read_json
from pytest_kbrel.models.openai.spec import OpenAISpec, api_key
from pytest_kbrel.printing import redacted, redacted_reply
from pytest_kbrel.records import Failed
from pytest_kbrel.serialization import whole

if TYPE_CHECKING:
    import openai

Post = Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, bytes]]
"""Sends a body to a path of the server and returns what came back."""

_TEMPLATE = "chat_template_kwargs"
# vLLM makes these anew for each call.
_CHANGING = ("created", "permission")


def check(spec: OpenAISpec) -> None:
    """Find what can be found without asking the server: a package or a key that is missing.

    Raises :class:`MissingExtraError` or :class:`ModelError`.
    """
    if find_spec("openai") is None:
        raise MissingExtraError("openai", "openai", f"asking {spec.text}")
    api_key(spec)


def refuses(error: openai.BadRequestError, option: str) -> bool:
    """Tell whether a server refused a request for an option in it."""
    return error.param == option or bool(re.search(f"['\"`]{option}['\"`]", str(error)))


class Connection:
    """A client for one model of one server. May be used from several threads at once.

    A reply that does not come is tried again by the client itself, ``spec.max_retries`` times and with longer
    and longer pauses, for time limits, 408, 409, 429 and 5xx. ``spec.timeout`` is for each try as a whole.
    ``repeats_key`` tells whether a reply held a key.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        check(spec)
        import openai

        from pytest_kbrel.models.openai.http import BoundedClient

        self.spec = spec
        key = api_key(spec)
        self.repeats_key = False
        self._reached = False
        self._loop = LoopThread("kbrel-openai-client")
        self.client = openai.AsyncOpenAI(
            api_key=key,
            base_url=spec.base_url,
            timeout=spec.timeout,
            max_retries=spec.max_retries,
            http_client=BoundedClient(),
        )

    def ask(self, call: Callable[[Post], Coroutine[Any, Any, bytes]], limits: Limits) -> Any | Failed:
        """Return the JSON that ``call`` gets from the server, as builtins, or why it got nothing.

        Raises :class:`ModelError` where asking on is of no use: the key is refused, the server does not know
        the model or the path or takes no temperature 0, it sends us to another server, or it was never
        reached at all.
        """
        import openai

        try:
            content = self._loop.run(_within(limits, lambda: call(self._post)))
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
            raise ModelError(f"{self._where()} {whole(redacted(str(error)))}") from None
        except ReplyError as error:
            self._reached = True
            return Failed(error=whole(redacted(str(error))))
        except openai.APITimeoutError:
            return Failed(
                error=f"no complete reply within {self.spec.timeout:g} seconds; timeout=SECONDS allows more"
            )
        except openai.APIConnectionError as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            if not self._reached:
                raise ModelError(f"{self._where()} cannot be reached: {self._why(cause)}") from None
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
            self._reached = True
            return Failed(error=self._why(error))
        self._reached = True
        found = read_json(content)
        return found if isinstance(found, Failed) else self._redacted(found)

    def about(self) -> str:
        """Return what the server's list of models says of this one, as JSON; empty where it has no list.

        What changes from call to call with some servers (times, permissions) is left out.
        """
        import openai

        try:
            content = self._loop.run(_within(limits_of_list(self.spec.timeout), self._list))
            listed: Any = self._redacted(read_json(content))
            found = [
                one for one in listed["data"] if isinstance(one, dict) and one.get("id") == self.spec.name
            ]
            said = [{key: value for key, value in one.items() if key not in _CHANGING} for one in found]
            return json.dumps(said[0], sort_keys=True) if said else ""
        except (openai.OpenAIError, ReplyError, ValueError, TypeError, LookupError, RecursionError):
            return ""

    def close(self) -> None:
        """Give up what is under way and close the client's connections."""
        self._loop.close(self.client.close())

    async def _post(self, path: str, body: Mapping[str, Any]) -> bytes:
        from pytest_kbrel.models.openai.http import Response, content_of

        return content_of(await self.client.post(path, body=body, cast_to=Response))

    async def _list(self) -> bytes:
        from pytest_kbrel.models.openai.http import Response, content_of

        once = self.client.with_options(max_retries=0)
        return content_of(await once.get("/models", cast_to=Response))

    def _where(self) -> str:
        return f"{self.spec.text}: the server {self.spec.base_url}"

    def _why(self, error: Exception) -> str:
        return whole(describe_error(error))

    def _redacted(self, reply: Any) -> Any:
        """Return a reply without keys; all that a server says comes in through here or as an error."""
        found, held = redacted_reply(reply)
        self.repeats_key |= held
        return found


async def _within(limits: Limits, call: Callable[[], Coroutine[Any, Any, bytes]]) -> bytes:
    from pytest_kbrel.models.openai.http import LIMITS

    LIMITS.set(limits)
    return await call()
