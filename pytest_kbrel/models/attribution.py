"""Attribution of an answer's log-probability to the tokens of its prompt: integrated gradients by captum.

Sundararajan et al., arXiv 1703.01365; the use of it is that of Wang et al., arXiv 2310.09820, section 6.1.

The input is the embeddings of the prompt's tokens, special ones included. The baseline input has, at each of
these places, the mean of all the vocabulary's embeddings. Not zeros: normalisation layers make the path from
there begin with a jump, and no number of steps tried (up to 256) made the scores of the embedded checkpoint
add up; nor the padding token's, which many checkpoints have not or never trained. The answer's own tokens
stay what they are, and get no score.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.base import Model
from pytest_kbrel.records import Ask, Attribution, ScoreRequest

if TYPE_CHECKING:
    import torch

    from pytest_kbrel.models.hf.loading import LoadedCheckpoint
    from pytest_kbrel.models.tokens import Pair

_FEWEST_STEPS, _MOST_STEPS = 64, 1024
# In nats, or as a share of what is explained, whichever is more.
_TOLERANCE = 0.01
_ROWS_AT_ONCE = 16
_IDS_AT_ONCE = 4096


def check(backend: str) -> None:
    """Raise ``ModelError`` for a backend without gradients, ``MissingExtraError`` without captum."""
    from pytest_kbrel.models.registry import BACKENDS

    if not BACKENDS[backend].gives_gradients:
        raise ModelError(
            f"--kb-attribute needs the model's weights, and the backend {backend} has none here; "
            "allowed: a checkpoint, or no --kb-attribute"
        )
    if find_spec("captum") is None:
        raise MissingExtraError("captum", "attribution", "--kb-attribute")


def attribute(model: Model, ask: Ask) -> Attribution:
    """Return the scores of the prompt's tokens for the log-probability of the continuation ``ask`` scores.

    The number of steps is doubled until the scores add up to the difference of the two log-probabilities
    within 0.01 nats or 1 % of it, or there are 1024; what is left is the result's ``error``. Raises as
    :func:`check`, and ``ModelError`` where the model gives no gradients.
    """
    check(model.describe().backend)
    from pytest_kbrel.models.batching import describe_error
    from pytest_kbrel.models.hf.loading import quiet
    from pytest_kbrel.models.hf.model import HfModel

    request = ask.request
    assert isinstance(request, ScoreRequest)
    assert isinstance(model, HfModel)
    parts = model.parts
    try:
        pair = parts.encoder.pair(request)
        with quiet():
            scores, log_probability, error = _integrated(parts, pair)
    except (RuntimeError, ValueError, NotImplementedError) as caught:
        raise ModelError(
            f"--kb-attribute: {ask.fact_id} ({ask.role}) cannot be explained: {describe_error(caught)}; "
            "allowed: a model that gives gradients, or no --kb-attribute"
        ) from None
    return Attribution(
        fact_id=ask.fact_id,
        role=ask.role,
        prompt=request.prompt,
        target=request.continuation.strip(),
        tokens=tuple(
            parts.tokenizer.decode(
                [token], skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
            for token in pair.context
        ),
        scores=tuple(round(score, 6) for score in scores),
        log_probability=round(log_probability, 6),
        error=round(error, 6),
    )


def _integrated(
    parts: LoadedCheckpoint, pair: Pair
) -> tuple[list[float], float, float]:
    import torch
    from captum.attr import IntegratedGradients

    parts.model.requires_grad_(False)
    embedding = parts.model.get_input_embeddings()
    ids = torch.tensor([pair.context], device=parts.model.device)
    inputs = embedding(ids).detach()
    baselines = (
        _mean_embedding(embedding, parts.model.device)
        .to(inputs.dtype)
        .expand_as(inputs)
    )

    log_probability = partial(_log_probability, parts.model, pair)
    with torch.no_grad():
        score, without = (
            float(log_probability(rows)[0]) for rows in (inputs, baselines)
        )
    explained, steps = score - without, _FEWEST_STEPS
    method = IntegratedGradients(log_probability)
    while True:
        gradients = method.attribute(
            inputs,
            baselines=baselines,
            n_steps=steps,
            internal_batch_size=_ROWS_AT_ONCE,
        )
        scores: list[float] = gradients[0].float().sum(-1).tolist()
        error = sum(scores) - explained
        if (
            abs(error) <= max(_TOLERANCE, _TOLERANCE * abs(explained))
            or steps >= _MOST_STEPS
        ):
            return scores, score, error
        steps *= 2


def _log_probability(model: Any, pair: Pair, rows: torch.Tensor) -> torch.Tensor:
    """Return the log-probability of the pair's targets behind each of ``rows`` (n, tokens, width)."""
    import torch

    targets = torch.tensor([pair.targets], device=rows.device).expand(len(rows), -1)
    if model.config.is_encoder_decoder:
        labels = torch.tensor([(*pair.lead, *pair.targets)], device=rows.device)
        decoder = model.prepare_decoder_input_ids_from_labels(labels=labels).expand(
            len(rows), -1
        )
        logits = model(
            inputs_embeds=rows, decoder_input_ids=decoder, use_cache=False
        ).logits
    else:
        last = torch.tensor([pair.targets[:-1]], dtype=torch.long, device=rows.device)
        tail = model.get_input_embeddings()(last).expand(len(rows), -1, -1)
        logits = model(
            inputs_embeds=torch.cat([rows, tail], dim=1), use_cache=False
        ).logits
    logits = logits[:, -len(pair.targets) :].float().log_softmax(-1)
    log_probabilities: torch.Tensor = logits.gather(-1, targets[..., None])[..., 0].sum(
        -1
    )
    return log_probabilities


def _mean_embedding(embedding: Any, device: torch.device) -> torch.Tensor:
    """Return the mean of all embeddings as the layer gives them: some scale what their weights hold."""
    import torch

    count = int(embedding.weight.shape[0])
    with torch.no_grad():
        sums = [
            embedding(
                torch.arange(start, min(start + _IDS_AT_ONCE, count), device=device)
            )
            .float()
            .sum(0)
            for start in range(0, count, _IDS_AT_ONCE)
        ]
    return torch.stack(sums).sum(0) / count
