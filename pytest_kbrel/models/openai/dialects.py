"""Requests by which servers give the probabilities of given tokens, and the reading of their replies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.models.tokens import Ids, Pair, common_prefix
from pytest_kbrel.records import record

# Added to a token's logit, it makes a server write this token.
_FORCED = 10_000.0
# Log-probabilities may be above 0 by rounding.
_ROUNDING = 1e-3
# vLLM writes this in place of minus infinity and of NaN, neither of which JSON has.
_NO_NUMBER = -9999.0
_COMPLETIONS = "/completions"
_ONE_TOKEN = {"max_tokens": 1, "temperature": 0}


@record
class Dialect:
    """One way of servers to give the probabilities of given tokens: POST of a body to ``path``.

    ``body(before, targets)`` asks for those of the ``targets`` behind other tokens, of one at a time where
    ``stepwise`` says so. ``read(reply, before, targets)`` returns the log-probabilities (nats); a reply
    without them raises ``ValueError`` with what is wrong, or ``LookupError`` or ``TypeError``.
    """

    name: str
    path: str
    body: Callable[[Ids, Ids], dict[str, Any]]
    read: Callable[[Any, Ids, Ids], list[float]]
    stepwise: bool = False

    def questions(self, pair: Pair) -> list[tuple[Ids, Ids]]:
        """Return what is asked for a pair: tokens, and those behind them of which the reply tells."""
        if self.stepwise:
            return [(before, (token,)) for before, token in pair.steps()]
        return [(pair.context, pair.targets)]

    def request(
        self, spec: OpenAISpec, before: Ids, targets: Ids
    ) -> tuple[str, dict[str, Any]]:
        """Return the path and the body of one request."""
        body = self.body(before, targets)
        if self.path == _COMPLETIONS:
            return self.path, {"model": spec.name, **_ONE_TOKEN, **body}
        return _outside(spec, self.path), body


def _read_prompt_logprobs(reply: Any, before: Ids, targets: Ids) -> list[float]:
    count = len(before) + len(targets)
    _counted(_usage(reply), count)
    entries = _length(reply["choices"][0].get("prompt_logprobs"), count, count)
    values = []
    for token, entry in zip(targets, entries[-len(targets) :], strict=True):
        if entry is not None and str(token) not in entry:
            raise ValueError(
                f"token {token} was sent, and the reply is about {', '.join(list(entry)[:3])}"
            )
        values.append(
            log_probability(None if entry is None else entry[str(token)]["logprob"])
        )
    return values


def _read_token_ids(reply: Any, before: Ids, targets: Ids) -> list[float]:
    _counted(_usage(reply), len(before))
    (token,) = targets
    (entries,) = (reply["choices"][0].get("logprobs") or {}).get("top_logprobs") or [{}]
    if (key := f"token_id:{token}") not in entries:
        told = ", ".join(list(entries)[:3]) or "nothing"
        raise ValueError(
            f"token {token} was asked for, and the reply tells the log-probability of {told}"
        )
    return [log_probability(entries[key])]


def _read_echo(reply: Any, before: Ids, targets: Ids) -> list[float]:
    count = len(before) + len(targets)
    _counted(_usage(reply), count)
    # The server writes one token more, since some take a limit of 0 tokens for none.
    logprobs = reply["choices"][0].get("logprobs") or {}
    values = _length(logprobs.get("token_logprobs"), count, count + 1)
    return [log_probability(value) for value in values[-1 - len(targets) : -1]]


def _read_sglang(reply: Any, before: Ids, targets: Ids) -> list[float]:
    about = reply["meta_info"]
    _counted(about.get("prompt_tokens"), len(before) + len(targets))
    entries = about["input_token_logprobs"][-len(targets) :]
    _same_tokens([entry[1] for entry in entries], targets)
    return [log_probability(entry[0]) for entry in entries]


def _read_llama_cpp(reply: Any, before: Ids, targets: Ids) -> list[float]:
    entries = reply.get("completion_probabilities")
    if not entries and "content" in reply:
        raise ValueError(
            "llama.cpp told no probability of a token; it tells none of one that ends within a character"
        )
    _counted(reply.get("tokens_evaluated"), len(before))
    entry = entries[0]
    _same_tokens([entry["id"]], targets)
    return [log_probability(entry["logprob"])]


DIALECTS = (
    # Its replies name tokens by id, so it is tried before the echo.
    Dialect(
        name="prompt_logprobs of vLLM",
        path=_COMPLETIONS,
        body=lambda before, targets: {
            "prompt": [*before, *targets],
            "prompt_logprobs": 0,
        },
        read=_read_prompt_logprobs,
    ),
    # Slower, and for servers where something is wrong with the first.
    Dialect(
        name="logprob_token_ids of vLLM",
        path=_COMPLETIONS,
        body=lambda before, targets: {
            "prompt": [*before],
            "logprobs": 1,
            "logprob_token_ids": [*targets],
            "return_tokens_as_token_ids": True,
        },
        read=_read_token_ids,
        stepwise=True,
    ),
    Dialect(
        name="completions with echo and logprobs",
        path=_COMPLETIONS,
        body=lambda before, targets: {
            "prompt": [*before, *targets],
            "echo": True,
            "logprobs": 1,
        },
        read=_read_echo,
    ),
    Dialect(
        name="/completion of llama.cpp",
        path="/completion",
        body=lambda before, targets: {
            "prompt": [*before],
            "n_predict": 1,
            "n_probs": 1,
            # Those before sampling are not changed by the bias that makes the server write the token.
            "post_sampling_probs": False,
            "logit_bias": [[*targets, _FORCED]],
            "temperature": 0,
            "cache_prompt": True,
        },
        read=_read_llama_cpp,
        stepwise=True,
    ),
    Dialect(
        name="/generate of SGLang",
        path="/generate",
        body=lambda before, targets: {
            "input_ids": [*before, *targets],
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
            # Before it the server may read its prefix cache.
            "logprob_start_len": len(before) - 1,
        },
        read=_read_sglang,
    ),
)
"""All dialects, in the order in which they are tried."""


def tokenization(
    spec: OpenAISpec, text: str, special: bool
) -> tuple[str, dict[str, Any]]:
    """Return path and body of the request for a text's token ids, as all servers that have one take it."""
    body = {"model": spec.name, "prompt": text, "add_special_tokens": special}
    return _outside(spec, "/tokenize"), body | {"content": text, "add_special": special}


def _outside(spec: OpenAISpec, path: str) -> str:
    return spec.base_url.removesuffix("/v1") + path


def _counted(counted: Any, expected: int) -> None:
    """Raise ``ValueError`` where a server says that it read more or fewer tokens than it was sent."""
    if type(counted) is int and counted not in (0, expected):
        raise ValueError(
            f"{expected} tokens were sent, and the server counts {counted} in the prompt"
        )


def _usage(reply: Any) -> Any:
    return (reply.get("usage") or {}).get("prompt_tokens")


def _length(values: Any, tokens: int, expected: int) -> list[Any]:
    if not isinstance(values, list):
        raise ValueError("the reply holds no log-probabilities of the prompt")
    if len(values) != expected:
        raise ValueError(
            f"{len(values)} log-probabilities, where a prompt of {tokens} tokens has {expected}"
        )
    return values


def _same_tokens(told: list[Any], sent: Ids) -> None:
    if tuple(told) != sent:
        start = common_prefix(sent, told)
        mine, theirs = list(sent[start : start + 5]), told[start : start + 5]
        raise ValueError(
            f"the tokens {mine} were sent, and the reply is about {theirs}"
        )


def log_probability(value: Any) -> float:
    """Return a log-probability (nats) in a reply; raises ``ValueError`` for what is none."""
    if value is None:
        raise ValueError(
            "no log-probability of a token that was sent: a prefix cache may have left it out"
        )
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -math.inf < value <= _ROUNDING
    ):
        raise ValueError(f"not a log-probability: {str(value)[:40]}")
    if value == _NO_NUMBER:
        raise ValueError(
            f"not a log-probability: {value} stands for minus infinity or NaN"
        )
    return float(value)
