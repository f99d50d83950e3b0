"""From what a backend computed to answers, and what is wrong with a request: alike in all backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.tokens import Ids, Pair, PromptEncoder
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Scored

if TYPE_CHECKING:
    from pytest_kbrel.models.hf.stopping import Continuation


def failed(error: Exception) -> Failed:
    """Return an error as an answer: our own words as they are, others with their kind."""
    return Failed(error=str(error) if isinstance(error, ValueError) else describe_error(error))


def scored(encoder: PromptEncoder, pair: Pair, values: tuple[float, ...] | Failed) -> Scored | Failed:
    """Return the answer that holds the probabilities of ``pair.targets``."""
    if isinstance(values, Failed):
        return values
    if any(value != value for value in values):
        return Failed(error="not a number among the probabilities")
    return Scored(
        probabilities=tuple(min(value, 1.0) for value in values),
        token_ids=pair.targets,
        prompt_tokens=len(pair.prompt),
        prompt_digest=encoder.digest(pair.prompt),
    )


def generated(encoder: PromptEncoder, prompt: Ids, reply: Continuation | Failed) -> Generated | Failed:
    """Return the answer that holds what a model wrote behind ``prompt``."""
    if isinstance(reply, Failed):
        return reply
    return Generated(
        text=reply.text,
        token_ids=reply.token_ids,
        finish=reply.finish,
        prompt_tokens=len(prompt),
        prompt_digest=encoder.digest(prompt),
        steps=reply.steps,
        thought=reply.thought,
        thought_tokens=reply.thought_tokens,
    )


def check_ids(ids: Ids, vocabulary: int) -> None:
    """Raise ``ValueError`` for token ids that no model with ``vocabulary`` tokens has.

    One of them would stop the whole batch, and on a GPU the process.
    """
    if ids and not 0 <= max(ids) < vocabulary:
        raise ValueError(f"token {max(ids)} is beyond the model's {vocabulary} tokens")


def check_request(request: GenerateRequest, prompt: Ids, vocabulary: int) -> None:
    """Raise ``ValueError`` for a request that no model with ``vocabulary`` tokens can answer."""
    if request.max_new_tokens < 1 or request.num_beams < 1:
        raise ValueError("max_new_tokens and num_beams must be at least 1")
    check_ids(prompt, vocabulary)
    # One such row would stop the whole batch.
    if not all(0 <= token < vocabulary for token in request.watch):
        raise ValueError(f"watch: token ids are numbers from 0 to {vocabulary - 1}, found {request.watch}")
    if not prompt:
        raise ValueError(
            "an empty prompt needs a BOS token, and this tokenizer has none; model-args prefix_token_id=ID "
            "names the token to start from"
        )
