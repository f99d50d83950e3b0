"""What a server can answer that it should not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile.row import FAILED, USAGE
from tests.openai_server import Fault, OpenAIServer

HUGE = "9" * 5000


@dataclass(frozen=True)
class Served:
    """A server that answers each question so; ``listed`` is changed in what it says of its models."""

    what: str
    fault: Fault | None = None
    exit: int = FAILED
    printed: str = ""
    say: Callable[[str], str] = lambda text: "unsure"
    listed: dict[str, Any] | None = None

    def set_up(self, server: OpenAIServer) -> None:
        """Make the server answer so."""
        server.always = self.fault
        server.say = self.say
        server.about = self.listed or {}


def changed(
    what: str,
    change: Callable[[dict[str, Any]], object],
    printed: str = "",
    exit: int = FAILED,
) -> Served:
    return Served(
        what, Fault(change=lambda reply: change(reply) and None), exit, printed
    )


def choice(what: str, printed: str = "", exit: int = FAILED, **values: Any) -> Served:
    return changed(
        what, lambda reply: reply["choices"][0].update(values), printed, exit
    )


def message(what: str, printed: str = "", exit: int = FAILED, **values: Any) -> Served:
    return changed(
        what, lambda reply: reply["choices"][0]["message"].update(values), printed, exit
    )


def usage(what: str, value: Any, printed: str = "") -> Served:
    return changed(what, lambda reply: reply.update(usage=value), printed)


def raw(
    what: str, text: str, printed: str = "", exit: int = FAILED, status: int = 200
) -> Served:
    return Served(what, Fault(raw=text, status=status), exit, printed)


ROWS = [
    Served(
        "the key is refused",
        Fault(status=401, message="bad key"),
        USAGE,
        "refuses the key",
    ),
    Served("no such path", Fault(status=404, message="gone"), USAGE, "does not know"),
    Served("too many requests for ever", Fault(status=429, message="slow down")),
    Served("the server is broken for ever", Fault(status=500, message="broken")),
    raw("a page in place of JSON", "<html>hello</html>"),
    raw("100,000 levels of lists", "[" * 100_000),
    raw("NaN", "NaN"),
    raw("half a surrogate pair", '{"choices": [{"message": {"content": "\\ud800"}}]}'),
    raw("an error of 100,000 levels", "[" * 100_000, status=400),
    raw("an error of markup", "<html><script>alert(1)</script></html>", status=400),
    changed(
        "choices that are an object", lambda reply: reply.update(choices={"0": {}})
    ),
    choice("a choice without its message", message=None),
    choice("a choice whose message is a word", message="Paris"),
    choice("an end that nobody knows", finish_reason="tired"),
    message("content that is a number", content=7),
    message("content that is null", content=None),
    message("content of NUL bytes", content="\0\0"),
    message("content that moves the cursor", content="\x1b[2J\x1b[H Paris"),
    message("a thought that is a number", reasoning_content=7),
    message("a refusal", content=None, refusal="I cannot help with that."),
    usage(
        "usage that is no number",
        {"prompt_tokens": float("nan"), "completion_tokens": 1},
    ),
    usage("usage without end", {"prompt_tokens": float("inf"), "completion_tokens": 1}),
    usage(
        "usage of 5,000 digits",
        {"prompt_tokens": int("9" * 4000), "completion_tokens": 1},
    ),
    changed("a model's name that is a number", lambda reply: reply.update(model=7)),
    changed(
        "a fingerprint that is a list",
        lambda reply: reply.update(system_fingerprint=[1]),
    ),
    changed(
        "a fingerprint that is another each time",
        lambda reply: reply.update(system_fingerprint=reply["id"]),
    ),
    Served(
        "a model that says of itself what is no number",
        listed={"max_model_len": float("nan")},
    ),
    Served(
        "a model that says of itself what is no text",
        listed={"owned_by": {"a": [1, None]}},
    ),
    Served("the question back", say=lambda text: text),
    Served("a log command of GitHub", say=lambda text: "::error::x"),
    Served("markup", say=lambda text: "<script>alert(1)</script>"),
]


def arguments(server: OpenAIServer) -> tuple[str, ...]:
    """Return what is typed to gate the model on this server."""
    options = f"base_url={server.base_url},max_retries=0,timeout=5"
    return ("--kb-model=openai/judge", f"--kb-model-args={options}", "suites")
