"""Spec of a model behind an OpenAI-compatible server: parsing, and checks that ask no server."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import urlsplit

from pytest_kbrel.bounds import (
    COST,
    REQUESTS,
    RETRIES,
    SECONDS,
    SEED,
    TOKENS_TOTAL,
    Bounds,
    shown,
)
from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.arguments import (
    CHAT_ARGS,
    choice,
    flag,
    json_object,
    number,
    parse_backend_args,
    parse_chat_args,
    require_auto,
)
from pytest_kbrel.models.base import Spec
from pytest_kbrel.models.chat import ChatArgs
from pytest_kbrel.printing import hide
from pytest_kbrel.records import record

PREFIX = "openai/"
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_KEY = "OPENAI_API_KEY"
BUDGETS = ("max_tokens_total", "max_cost")
"""The keys of what a session may spend on a model."""
_NUMBERS: Mapping[str, tuple[Bounds, str]] = {
    "max_concurrent": (REQUESTS, "of requests"),
    "timeout": (SECONDS, "of seconds"),
    "max_retries": (RETRIES, ""),
    "max_tokens_total": (TOKENS_TOTAL, "of tokens"),
    "max_cost": (COST, ""),
    "seed": (SEED, ""),
}
OPENAI_ARGS = (
    "base_url",
    "api_key_env",
    "endpoint",
    "headers",
    "header",
    "extra_body",
    "reasoning_effort",
    "num_concurrent",
    *_NUMBERS,
    "logprobs",
    "tokenizer",
    "model",
    "pretrained",
    *CHAT_ARGS,
)
"""The keys of the arguments of an ``openai/`` model; ``num_concurrent`` and ``header`` are lm-eval's words
for ``max_concurrent`` and ``headers``."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENV = "_env"
_HEADER = re.compile(
    r"[a-z0-9-]+_env=[a-z_]\w*|"
    "(?![^=]*(auth|key|token|cookie|secret|passw))[a-z0-9-]+=(?!bearer|basic |sk-)[!-~][ -~]*",
    re.I | re.A,
)
# What a request says by itself, and what would make a reply another than the one that is read.
_OURS = re.compile(
    "api_key|best_of|chat_template_kwargs|echo|logprobs|max_completion_tokens|max_tokens|messages|model|n|prompt|"
    "seed|stop|stream|temperature"
)
_ARGUMENT = re.compile(r"[,\s?&](\w+)=")

# lm-eval's base_url names the endpoint as well.
_ENDPOINTS: Mapping[str, Literal["chat", "completions"]] = {
    "/chat/completions": "chat",
    "/completions": "completions",
}


@record
class OpenAISpec(Spec):
    """Model ``name`` at ``base_url``, with the settings of its requests.

    ``api_key_env`` names the environment variable of the key, never the key itself. ``headers`` and
    ``extra_body``, which goes into each request, are JSON objects with sorted keys; a header
    ``NAME_env`` names the environment variable of the header ``NAME``. ``timeout`` is in seconds
    for one try; ``max_concurrent`` is the number of parallel requests. ``logprobs``: the server is asked for
    the log-probabilities of what it writes. ``tokenizer`` is the folder or hub id of the checkpoint's
    tokenizer, empty for the server's own.

    A session asks no more once it has spent ``max_tokens_total`` tokens, or ``max_cost`` by the ``prices`` of
    a million tokens read and of a million written.
    """

    name: str
    backend: str = "openai"
    base_url: str = DEFAULT_URL
    api_key_env: str = DEFAULT_KEY
    endpoint: Literal["chat", "completions"] = "chat"
    headers: str = "{}"
    extra_body: str = "{}"
    max_concurrent: int = 8
    timeout: float = 60.0
    max_retries: int = 4
    max_tokens_total: int | None = None
    max_cost: float | None = None
    prices: tuple[float, float] | None = None
    seed: int | None = None
    logprobs: bool = False
    tokenizer: str = ""
    chat: ChatArgs = ChatArgs()

    @property
    def chats(self) -> bool:
        """True if the server puts prompts into its chat template."""
        return self.endpoint == "chat"

    @property
    def extra(self) -> dict[str, Any]:
        """What goes into the body of each request besides what it says itself."""
        return dict(json.loads(self.extra_body))

    @property
    def prompting(self) -> str:
        """The settings that are not the default and change answers, as JSON without what is secret."""
        headers = json.loads(self.headers)
        return self.chat.prompting(headers=headers, extra_body=self.extra)

    @property
    def decoding(self) -> str:
        """What the server is told of how it chooses each token of an answer."""
        seed = "" if self.seed is None else f", seed {self.seed}"
        return f"temperature 0{seed}"

    @property
    def has_budget(self) -> bool:
        """True if a session may spend only so much on this model."""
        return self.max_tokens_total is not None or self.max_cost is not None


def parse_openai(
    text: str, model_args: str = "", *, chat_template: bool = False, **run: str
) -> OpenAISpec:
    """Read ``openai/NAME`` and its arguments.

    Without ``base_url`` the environment's ``OPENAI_BASE_URL`` holds, then OpenAI's own address. Raises
    :class:`ModelError` for a missing name, an unknown key, a value of the wrong kind, for ``run`` (device,
    dtype, batch_size), which its server chooses, and for ``chat_template`` at an endpoint without one.
    """
    text = text.strip()
    require_auto(text, "is for its server to choose", run)
    args, notes = parse_backend_args(
        model_args,
        OPENAI_ARGS,
        "openai",
        {"num_concurrent": "max_concurrent", "header": "headers"},
    )
    name = text.removeprefix(PREFIX).strip() if text.startswith(PREFIX) else ""
    for given in (args.get("model", ""), args.get("pretrained", "")):
        if name and given and given != name:
            raise ModelError(f"two models are named: {name} and {given} in model-args")
        name = name or given
    if not name:
        raise ModelError(
            f"{text}: no model named; the form is openai/NAME, with the server's own name for it"
        )
    # Arguments behind a name would be sent and printed as a part of it, keys too.
    if argument := _ARGUMENT.search(name):
        raise ModelError(
            f"{PREFIX}{name[: argument.start()]}: found {argument[1]}=… behind the name; allowed: the name "
            "alone, with arguments in --kb-model-args or --kb-judge-args, and a key in the environment "
            "(api_key_env=NAME)"
        )
    key_env = args.get("api_key_env", DEFAULT_KEY)
    if not _VARIABLE.fullmatch(key_env):
        raise ModelError(
            f"{text}: api_key_env holds no name of an environment variable (and is not repeated here, for it "
            f"may be the key); allowed: letters, digits and _, such as {DEFAULT_KEY}"
        )
    base_url, endpoint = _address(args)
    chat = parse_chat_args(args)
    if endpoint == "completions" and (chat.variables or chat_template):
        raise ModelError(
            f"{text}: the endpoint completions has no chat template, and chat_template_args, enable_thinking and "
            "--kb-apply-chat-template mean nothing to it; allowed is endpoint=chat"
        )
    if chat.think_end_token.isdecimal():
        raise ModelError(
            f"{text}: think_end_token={chat.think_end_token} is a token's id, and a server replies with "
            "texts; allowed is the token's text"
        )
    if chat_template:
        notes += [
            "--kb-apply-chat-template is not used: the server wraps messages in its own chat template"
        ]
    numbers = {key: number(args, key, *of) for key, of in _NUMBERS.items()}
    return OpenAISpec(
        text=f"{PREFIX}{name}",
        name=name,
        base_url=base_url,
        api_key_env=key_env,
        endpoint=endpoint,
        headers=_headers(args),
        extra_body=_extra_body(args),
        logprobs=bool(flag(args, "logprobs")),
        tokenizer=args.get("tokenizer", ""),
        chat=chat,
        notes=tuple(notes),
        **{key: value for key, value in numbers.items() if value is not None},
    )


def check(spec: OpenAISpec) -> None:
    """Raise :class:`MissingExtraError` without the package ``openai``.

    Raises :class:`ModelError` without a key or the value of a header, and for a cost without prices.
    """
    if find_spec("openai") is None:
        raise MissingExtraError("openai", "openai", f"asking {spec.text}")
    if spec.max_cost is not None and spec.prices is None:
        raise ModelError(
            f"{spec.text}: found max_cost without prices; allowed: with --kb-prices=IN,OUT for the model "
            "under test, whose prices these are, and max_tokens_total for any model"
        )
    api_key(spec)
    headers_of(spec)


def api_key(spec: OpenAISpec) -> str:
    """Return the key from the environment, ``"none"`` where none is set for a server of the user's own.

    Raises :class:`ModelError` if a named variable is not set, or for OpenAI's own server without a key.
    """
    key = os.environ.get(spec.api_key_env, "")
    if not key and (spec.api_key_env != DEFAULT_KEY or spec.base_url == DEFAULT_URL):
        # What is no usual name of a variable may be the key itself.
        name = (
            spec.api_key_env if spec.api_key_env.isupper() else "that api_key_env names"
        )
        raise ModelError(
            f"{spec.text}: the environment variable {name} holds no key for {spec.base_url}; "
            "set it, name another with api_key_env=NAME, or give the base_url of a server that needs none"
        )
    hide(key)
    return key or "none"


def headers_of(spec: OpenAISpec) -> dict[str, str]:
    """Return the headers of each request; raises :class:`ModelError` where the environment lacks a value."""
    headers = {}
    for name, value in json.loads(spec.headers).items():
        if name.endswith(_ENV):
            value = os.environ.get(value, "").strip()
            if not re.fullmatch("[ -~]+", value):
                raise ModelError(
                    f"{spec.text}: the environment variable that headers names for {name} holds no value; "
                    "allowed: printable ASCII"
                )
            hide(value)
        headers[name.removesuffix(_ENV)] = value
    return headers


def _headers(args: Mapping[str, str]) -> str:
    headers = json_object(args, "headers")
    for name, value in headers.items():
        # A value may be a secret, and is repeated nowhere.
        if not (isinstance(value, str) and _HEADER.fullmatch(f"{name}={value}")):
            raise ModelError(
                f"model-args: headers: {name:.60} or its value; allowed: "
                '{"NAME": "printable ASCII"}, and {"NAME_env": "VARIABLE"} for a value in the environment, where '
                "one that may be a key must be, for command lines are logged"
            )
    return json.dumps(headers, sort_keys=True)


def _extra_body(args: Mapping[str, str]) -> str:
    body = json_object(args, "extra_body")
    if ours := ", ".join(filter(_OURS.fullmatch, body)):
        raise ModelError(
            f"model-args: extra_body: {ours} is not for it to say; allowed: what no other argument, question or "
            "setting says"
        )
    if effort := args.get("reasoning_effort"):
        body["reasoning_effort"] = effort
    return json.dumps(body, sort_keys=True)


def _address(args: Mapping[str, str]) -> tuple[str, Literal["chat", "completions"]]:
    url = args.get("base_url") or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    url = url.rstrip("/")
    try:
        parts = urlsplit(url)
        # What is no port raises only when it is looked at.
        host = parts.hostname or "" if parts.port != 0 else ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if any(mark in url for mark in "@?#"):
        raise ModelError(
            f"base_url of {host or 'no host'}: it carries a name, a password or a query; allowed is a plain "
            "address: a key comes from the environment, api_key_env=NAME"
        )
    if parts.scheme not in ("http", "https") or not host:
        raise ModelError(
            f"base_url {shown(url)}; allowed is an address such as http://localhost:8000/v1"
        )
    given = choice(args, "endpoint", ("chat", "completions"))
    for ending, implied in _ENDPOINTS.items():
        if url.endswith(ending):
            if given not in ("", implied):
                raise ModelError(
                    f"base_url {url} names the endpoint {implied}, endpoint={given} another"
                )
            return url.removesuffix(ending), implied
    return url, "completions" if given == "completions" else "chat"
