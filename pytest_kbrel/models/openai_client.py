"""The connection to an OpenAI-compatible server: one client, and what its errors mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.openai_spec import OpenAISpec, api_key
from pytest_kbrel.records import Failed
from pytest_kbrel.redaction import redacted_reply
from pytest_kbrel.wire import whole

if TYPE_CHECKING:
    import openai

T = TypeVar("T")

# Seconds to wait for the list of models, which is asked for once.
_LIST_TIMEOUT = 10.0
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
    and longer pauses, for time limits, 408, 409, 429 and 5xx. ``repeats_key`` tells whether a reply held a
    key.
    """

    def __init__(self, spec: OpenAISpec) -> None:
        check(spec)
        import openai

        self.spec = spec
        key = api_key(spec)
        self._reached = False
        self.repeats_key = False
        self.client = openai.OpenAI(
            api_key=key, base_url=spec.base_url, timeout=spec.timeout, max_retries=spec.max_retries
        )

    def ask(self, call: Callable[[openai.OpenAI], T]) -> T | Failed:
        """Return what ``call`` gets from the server, or why it got nothing.

        Raises :class:`ModelError` where asking on is of no use: the key is refused, the server does not know
        the model or the path or takes no temperature 0, or it was never reached at all.
        """
        import openai

        try:
            reply = call(self.client)
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ModelError(
                f"{self._where()} refuses the key in {self.spec.api_key_env}: {self._why(error)}"
            ) from None
        except openai.NotFoundError as error:
            raise ModelError(
                f"{self._where()} does not know {self.spec.name!r}, or has no such path: {self._why(error)}; "
                "allowed is a name and a base_url that the server knows"
            ) from None
        except openai.APITimeoutError:
            return Failed(error=f"no reply within {self.spec.timeout:g} seconds")
        except openai.APIConnectionError as error:
            if not self._reached:
                cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
                raise ModelError(f"{self._where()} cannot be reached: {self._why(cause)}") from None
            return Failed(error=self._why(error))
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
            # A body that is no JSON is a ValueError.
            self._reached = True
            return Failed(error=self._why(error))
        self._reached = True
        return self._redacted(reply)

    def about(self) -> str:
        """Return what the server's list of models says of this one, as JSON; empty where it has no list.

        What changes from call to call with some servers (times, permissions) is left out.
        """
        import openai

        try:
            listed = self.client.with_options(max_retries=0, timeout=_LIST_TIMEOUT).models.list().data
            found = [one.model_dump(mode="json") for one in listed if one.id == self.spec.name]
        except (openai.OpenAIError, ValueError, TypeError, AttributeError):
            return ""
        found = self._redacted(found)
        said = [{key: value for key, value in one.items() if key not in _CHANGING} for one in found]
        return json.dumps(said[0], sort_keys=True) if said else ""

    def close(self) -> None:
        """Close the client's connections."""
        self.client.close()

    def _where(self) -> str:
        return f"{self.spec.text}: the server {self.spec.base_url}"

    def _why(self, error: Exception) -> str:
        return whole(describe_error(error))

    def _redacted(self, reply: T) -> T:
        """Return a reply without keys; all that a server says comes in through here or as an error."""
        found, redacted = redacted_reply(reply)
        self.repeats_key |= redacted
        return found
