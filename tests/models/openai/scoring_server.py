"""Routes of servers that score: a small language model over bytes, and each dialect's way of telling it."""

from __future__ import annotations

import functools
import math

BOS = 256
VOCABULARY = range(257)
_LETTERS = frozenset(b" abcdefghijklmnopqrstuvwxyz")


def tokens_of(text, special=True):
    return [BOS] * special + list(text.encode())


def text_of(ids):
    return bytes(token for token in ids if token < BOS).decode(errors="replace")


def logprob(before, token):
    """Return the log-probability of a token behind others: of one distribution over the vocabulary."""
    state = 31 * len(before) + 17 * sum(before)
    return _logit(state, token) - _normaliser(state)


def _logit(state, token):
    # Letters and blanks are more probable, as they are in texts.
    return (state + 7 * token * token) % 97 / 48 + 4 * (token in _LETTERS)


@functools.cache
def _normaliser(state):
    return math.log(sum(math.exp(_logit(state, token)) for token in VOCABULARY))


def logprobs_of(ids):
    return [None, *(logprob(ids[:n], ids[n]) for n in range(1, len(ids)))]


def tokenize(call):
    assert call.body["prompt"] == call.body["content"]
    return {"tokens": tokens_of(call.body["prompt"], call.body["add_special_tokens"])}


def _completion(call, **choice):
    prompt = call.body["prompt"]
    count = len(tokens_of(prompt)) if isinstance(prompt, str) else len(prompt)
    text = "Berlin" if isinstance(prompt, str) and "Germany" in prompt else "unsure"
    answer = {
        "index": 0,
        "text": text,
        "finish_reason": "stop",
        "logprobs": None,
        **choice,
    }
    return {"model": "judge", "choices": [answer], "usage": {"prompt_tokens": count}}


def writer(call):
    """Answer as a server that writes only, and ignores what it does not know."""
    return _completion(call)


def vllm(call):
    """Answer as vLLM: each token of the prompt with its id."""
    ids = call.body["prompt"]
    if "prompt_logprobs" not in call.body:
        return _completion(call)
    entries = [
        value
        and {
            str(token): {"logprob": value, "rank": 1, "decoded_token": text_of([token])}
        }
        for token, value in zip(ids, logprobs_of(ids), strict=True)
    ]
    return _completion(call, prompt_logprobs=entries)


def vllm_steps(call):
    """Answer as vLLM with log-probabilities of tokens that are named, and none of a prompt."""
    if "logprob_token_ids" not in call.body:
        return _completion(call)
    assert call.body["return_tokens_as_token_ids"]
    assert call.body["logprobs"] is not None
    ids = call.body["prompt"]
    (token,) = call.body["logprob_token_ids"]
    # The token that it writes comes with the named one.
    entries = {f"token_id:{one}": logprob(ids, one) for one in (120, token)}
    return _completion(
        call, logprobs={"tokens": ["token_id:120"], "top_logprobs": [entries]}
    )


def echo(call):
    """Answer as a server with echo: a list of numbers, the last of a token that it wrote."""
    if not call.body.get("echo"):
        return _completion(call)
    ids = call.body["prompt"]
    values = [*logprobs_of(ids), -0.5]
    texts = [text_of([token]) for token in [*ids, 120]]
    return _completion(
        call, text="".join(texts), logprobs={"tokens": texts, "token_logprobs": values}
    )


def llama_cpp(call):
    """Answer as llama.cpp's own path: one token, made the biased one, with its unbiased probability."""
    ids = call.body["prompt"]
    ((token, bias),) = call.body["logit_bias"]
    assert bias > 100
    assert not call.body["post_sampling_probs"]
    entry = {
        "id": token,
        "token": text_of([token]),
        "logprob": logprob(ids, token),
        "top_logprobs": [],
    }
    about = {"content": text_of([token]), "tokens_evaluated": len(ids)}
    return {**about, "completion_probabilities": [entry]}


def sglang(call):
    """Answer as SGLang: the tokens from ``logprob_start_len`` on, the first without a number."""
    ids = call.body["input_ids"]
    start = call.body["logprob_start_len"]
    rows = [
        [value, token, None] for token, value in zip(ids, logprobs_of(ids), strict=True)
    ][start:]
    about = {
        "prompt_tokens": len(ids),
        "input_token_logprobs": [[None, *rows[0][1:]], *rows[1:]],
    }
    return {"text": "x", "meta_info": about}


ROUTES = {
    "prompt_logprobs of vLLM": {"completions": vllm},
    "logprob_token_ids of vLLM": {"completions": vllm_steps},
    "completions with echo and logprobs": {"completions": echo},
    "/completion of llama.cpp": {"completions": writer, "/completion": llama_cpp},
    "/generate of SGLang": {"completions": writer, "/generate": sglang},
}
