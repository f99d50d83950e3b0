"""Scorer of given tokens by a server: the dialects in which servers give their probabilities, and one's own.

A probe finds out which dialect the server has, and if it is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import (
    BudgetError,
    MissingExtraError,
    ModelError,
    UnavailableError,
)
from pytest_kbrel.models.openai.client import Replies
from pytest_kbrel.models.openai.replies import excerpt, log_probability
from pytest_kbrel.models.openai.spec import OpenAISpec
from pytest_kbrel.models.tokens import Ids, Pair, PromptEncoder, common_prefix
from pytest_kbrel.records import Failed, GenerateRequest, Scored, ScoreRequest, record

# Added to a token's logit, it makes a server write this token.
_FORCED = 10_000.0
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


# Vocabularies that differ split it into different numbers of tokens.
_PROMPT = "In 1889, São Tomé's naïve cartographer re-labelled 12,345 Großmütterchen; the capital of France is"
# Behind a list of letters nearly all probability is on letters, whatever the vocabulary is.
_LETTERS = " k v a q m z e r t w b j y o c x h u f d n s g p l i"
# bfloat16 moves log-probabilities by 0.03 nats.
_SAME = 0.1
# As much probability as a list of letters leaves to letters.
_MOST = 0.8


# How a server gives probabilities, and the encoder of prompts into its tokens.
Way = tuple[Dialect, PromptEncoder]


class ServerScorer:
    """Scorer of continuations by the server behind ``replies``; ``pool`` runs its requests.

    ``count`` returns how many tokens a prompt has by the server's own account, 0 where it does not say.
    """

    def __init__(
        self,
        spec: OpenAISpec,
        replies: Replies,
        pool: ThreadPoolExecutor,
        count: Callable[[GenerateRequest], int | Failed],
    ) -> None:
        self._spec, self._replies, self._pool, self._count = spec, replies, pool, count

    @property
    def unscorable(self) -> str:
        """Why the server can score nothing; empty if it can. Asks it where that is not clear without."""
        return without_tokenizer(self._spec) or (
            self.way if isinstance(self.way, str) else ""
        )

    @property
    def described(self) -> str:
        """By what the server gives probabilities and whose the token ids are; empty where nobody tried."""
        way = self.__dict__.get("way", "")
        if isinstance(way, str):
            return ""
        tokens = (
            f"the tokenizer {self._spec.tokenizer}"
            if self._spec.tokenizer
            else "the server's /tokenize"
        )
        return f"probabilities by {way[0].name}, token ids by {tokens}"

    @cached_property
    def way(self) -> Way | str:
        """How the server gives probabilities, or why it does not; found out by a few tiny requests.

        Raises :class:`ModelError` where the server cannot be asked at all.
        """
        request = GenerateRequest(prompt=_PROMPT, max_new_tokens=1, stop=())
        # A server that is not there, or knows no such model, says so here.
        counted = self._count(request)
        try:
            encoder = self._encoder()
            prompt = encoder.prompt(request)
            pair = encoder.pair(ScoreRequest(prompt=_PROMPT, continuation=_LETTERS))
        except (BudgetError, UnavailableError):
            raise
        except (ValueError, ModelError) as error:
            return str(error)
        if encoder.unscorable:
            return encoder.unscorable
        if counted != len(prompt):
            stated = (
                counted.error if isinstance(counted, Failed) else counted or "no number"
            )
            return (
                f"its tokenisation is another one: {len(prompt)} tokens of a prompt were expected, and its "
                f"usage.prompt_tokens is: {stated}; allowed is tokenizer=FOLDER with the tokenizer it uses"
            )
        tried = []
        for dialect in DIALECTS:
            if not (wrong := self._wrong(dialect, pair)):
                return dialect, encoder
            tried.append(f"{dialect.name} ({wrong})")
        return f"tried were {'; '.join(tried)}"

    @property
    def encoder(self) -> PromptEncoder:
        """The encoder of prompts; :attr:`unscorable` must be empty."""
        assert not isinstance(self.way, str)
        return self.way[1]

    def score(self, pair: Pair) -> Scored | Failed:
        """Return the response to one pair; :attr:`way` must be one. Raises as :meth:`Connection.ask`."""
        assert not isinstance(self.way, str)
        dialect, encoder = self.way
        values = self._values(dialect, pair)
        if not isinstance(values, Failed):
            values = tuple(map(math.exp, values))
        return encoder.scored(pair, values)

    def _values(self, dialect: Dialect, pair: Pair) -> tuple[float, ...] | Failed:
        values = []
        questions: list[tuple[Ids, Ids]] = [(pair.context, pair.targets)]
        if dialect.stepwise:
            questions = [(before, (token,)) for before, token in pair.steps()]
        for before, targets in questions:
            path, body = dialect.path, dialect.body(before, targets)
            if path == _COMPLETIONS:
                body = {"model": self._spec.name, **_ONE_TOKEN, **body}
            else:
                path = _outside(self._spec, path)
            reply = self._replies.ask(path, body | self._spec.extra)
            if isinstance(reply, Failed):
                return reply
            try:
                values += dialect.read(reply, before, targets)
            except ValueError as error:
                return Failed(error=str(error))
            except (LookupError, TypeError, AttributeError):
                return Failed(
                    error=f"no log-probabilities in the reply: {excerpt(reply)}"
                )
        return tuple(values)

    def _wrong(self, dialect: Dialect, pair: Pair) -> str:
        """Return what is wrong with a dialect of this server; empty if nothing is.

        Of the second pair a prefix cache serves all but its last token. The others are the alternatives to it.
        """
        *before, _ = pair.targets
        every = dict.fromkeys(reversed((*pair.context, *pair.targets)))
        tokens = [*every][: max(2, len({*pair.targets}))]
        behind = replace(pair, context=(*pair.context, *before))
        asked = [replace(pair, targets=(*before, token)) for token in tokens[:2]]
        asked += [replace(behind, targets=(token,)) for token in tokens]
        told = []
        try:
            for one in asked:
                values = self._values(dialect, one)
                if isinstance(values, Failed):
                    return values.error
                told.append(values)
        except (BudgetError, UnavailableError):
            raise
        except ModelError as error:
            # No such path, or a refused one: the server itself has answered before.
            return str(error)
        first, again, *others = told
        if any(abs(a - b) > _SAME for a, b in zip(first[:-1], again[:-1], strict=True)):
            return (
                "the same tokens got other probabilities when they were asked for again"
            )
        nats = [value for (value,) in others]
        if math.fsum(map(math.exp, nats)) > 1 + _SAME or len({*nats}) == 1:
            return "the probabilities of tokens at one position are no probabilities of one distribution"
        # Of natural logarithms this sum is about two.
        if _MOST < math.fsum(map(math.exp2, nats)) <= 1 + _SAME:
            return (
                "log-probabilities are natural logarithms, and these are to the base 2"
            )
        return ""

    def _encoder(self) -> PromptEncoder:
        spec = self._spec
        if spec.tokenizer:
            import transformers

            from pytest_kbrel.models.pretrained import loading

            path = Path(spec.tokenizer).expanduser()
            with loading("the tokenizer", spec.tokenizer):
                tokenizer = transformers.AutoTokenizer.from_pretrained(
                    str(path) if path.is_dir() else spec.tokenizer,
                    trust_remote_code=False,
                    local_files_only=path.is_dir(),
                )
        else:
            tokenizer = ServerTokenizer(self._tokens)
        return PromptEncoder(
            tokenizer, encoder_decoder=False, chat_template=spec.chats, chat=spec.chat
        )

    def _tokens(self, texts: Sequence[str], special: bool) -> list[Ids]:
        return list(self._pool.map(lambda text: self._tokens_of(text, special), texts))

    def _tokens_of(self, text: str, special: bool) -> Ids:
        # As all servers that have this path take it.
        body = {
            "model": self._spec.name,
            **{"prompt": text, "add_special_tokens": special},
            **{"content": text, "add_special": special},
        }
        try:
            reply = self._replies.ask(_outside(self._spec, "/tokenize"), body)
        except (BudgetError, UnavailableError):
            raise
        except ModelError as error:
            reply = Failed(error=str(error))
        ids = reply.get("tokens") if isinstance(reply, dict) else None
        if not isinstance(ids, list) or not all(
            type(one) is int and one >= 0 for one in ids
        ):
            why = reply.error if isinstance(reply, Failed) else excerpt(reply)
            raise ValueError(
                f"/tokenize of the server gave no token ids: {why}; allowed is tokenizer=FOLDER with the "
                "tokenizer that the server uses"
            )
        return tuple(ids)


class ServerTokenizer:
    """Tokenizer of a server behind its ``/tokenize``, as far as :class:`PromptEncoder` uses one.

    ``tokens(texts, special)`` returns the ids of each text, with the special tokens around it if ``special``.
    """

    chat_template = None

    def __init__(self, tokens: Callable[[Sequence[str], bool], list[Ids]]) -> None:
        self._tokens = tokens
        (bare,), (full,) = tokens(["a"], False), tokens(["a"], True)
        leads = len(full) > len(bare) and full[:1] != bare[:1]
        self.bos_token_id = full[0] if leads else None

    def __call__(
        self, text: str | Iterable[str], add_special_tokens: bool = True
    ) -> dict[str, Any]:
        """Return the ids of a text, or of each of several, under ``input_ids``; raises ``ValueError``."""
        if isinstance(text, str):
            return {"input_ids": self._tokens([text], add_special_tokens)[0]}
        return {"input_ids": self._tokens(list(text), add_special_tokens)}

    def get_added_vocab(self) -> dict[str, int]:
        """Return an empty dict: a server does not list its special tokens."""
        return {}


def without_tokenizer(spec: OpenAISpec) -> str:
    """Return why a server's prompts cannot be tokenised, as far as that is clear without asking it."""
    if spec.tokenizer:
        if any(find_spec(name) is None for name in ("torch", "transformers")):
            return str(
                MissingExtraError(
                    "transformers", "hf", f"loading the tokenizer {spec.tokenizer}"
                )
            )
        return ""
    if spec.chats:
        return (
            "over the endpoint chat nobody but the server knows the token ids of a prompt; model-args "
            "tokenizer=FOLDER names the checkpoint's tokenizer, and endpoint=completions sends raw prompts"
        )
    return ""
