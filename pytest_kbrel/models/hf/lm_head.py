"""Logits and probabilities from the output layer, computed at the needed positions only.

For short answers and a large vocabulary this layer costs more than all others together, and its logits are
the largest thing in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

# Logits held at once on a CPU, in numbers: what the next operation finds still near the processor.
_AT_ONCE_ON_CPU = 8_000_000
_LEAST_ROWS = 128
# Logits held at once elsewhere, in numbers: 2**26 float32 are 256 MiB, whatever the vocabulary's size.
LOGITS_AT_ONCE = 2**26

_last: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def vocabulary_of(model: Any) -> int:
    """Return the number of tokens that a model's embedding has rows for."""
    return int(model.get_input_embeddings().weight.shape[0])


def logits_at(
    model: Any,
    rows: torch.Tensor,
    columns: torch.Tensor,
    inputs: dict[str, Any],
    *,
    use_cache: bool = False,
) -> torch.Tensor:
    """Return the logits ``(positions, vocabulary)`` at the given rows and columns of the batch."""
    fired: list[bool] = []

    def gather(states: torch.Tensor) -> torch.Tensor:
        fired.append(True)
        return _at(states, rows, columns)[None]

    with torch.inference_mode(), _before_head(model, gather):
        logits: torch.Tensor = model(**inputs, use_cache=use_cache).logits
    return logits[0] if fired else logits[rows, columns]


def probabilities_at(
    model: Any,
    rows: torch.Tensor,
    columns: torch.Tensor,
    inputs: dict[str, Any],
    spots: torch.Tensor,
    targets: torch.Tensor,
    *,
    use_cache: bool = False,
) -> list[float]:
    """Return the probability of token ``targets[i]`` at position ``spots[i]``, by float32 softmax.

    ``spots`` are indices into ``rows`` and ``columns``, which should name each position once.
    """
    if not head_is_last(model):
        logits = logits_at(model, rows, columns, inputs, use_cache=use_cache)
        return list(logits.float().softmax(-1)[spots, targets].tolist())
    hidden = _hidden_at(model, rows, columns, inputs, use_cache=use_cache)
    head = model.get_output_embeddings()
    count = _rows_at_once(head, hidden)
    scores = torch.empty(len(targets), dtype=torch.float32, device=targets.device)
    with torch.inference_mode():
        for start in range(0, len(hidden), count):
            here = ((spots >= start) & (spots < start + count)).nonzero()[:, 0]
            probabilities = head(hidden[start : start + count]).float().softmax(-1)
            scores[here] = _at(probabilities, spots[here] - start, targets[here]).to(
                scores.device
            )
    return list(scores.tolist())


def head_is_last(model: Any) -> bool:
    """Return True if a model's logits are its output layer's; some cap or scale them. It is tried once."""
    if model not in _last:
        try:
            _last[model] = _try_head(model)
        # Whatever an architecture raises here, its head is not used alone.
        except Exception:
            _last[model] = False
    return _last[model]


def _try_head(model: Any) -> bool:
    head = model.get_output_embeddings()
    if head is None:
        return False
    inputs = {"input_ids": torch.tensor([[1, 2, 3]], device=model.device)}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = inputs["input_ids"]
    # A cap leaves small numbers nearly as they are, and what is added is lost beside large ones.
    if not all(_is_last(model, head, inputs, times) for times in (0, 1, 1000)):
        return False
    # Also with nothing for the layer to do, as in :func:`probabilities_at`.
    first = torch.zeros(1, dtype=torch.long, device=model.device)
    _hidden_at(model, first, first, inputs, use_cache=False)
    return True


def _is_last(model: Any, head: Any, inputs: dict[str, Any], times: int) -> bool:
    """Return True if the logits are the layer's own when its input is multiplied by ``times``."""
    scaled: list[torch.Tensor] = []

    def scale(states: torch.Tensor) -> torch.Tensor:
        scaled.append(states * times)
        return scaled[-1]

    with torch.inference_mode(), _before_head(model, scale):
        logits = model(**inputs, use_cache=False).logits
    if len(scaled) != 1:
        return False
    with torch.inference_mode():
        alone = head(scaled[0])
    if alone.shape != logits.shape:
        return False
    alone = alone.to(logits.device)
    return bool(
        (alone.float() - logits.float()).abs().max() <= 1e-5 * alone.float().abs().max()
    )


def _hidden_at(
    model: Any,
    rows: torch.Tensor,
    columns: torch.Tensor,
    inputs: dict[str, Any],
    *,
    use_cache: bool,
) -> torch.Tensor:
    """Return the input of the output layer at rows and columns, shape (positions, width)."""
    hidden: list[torch.Tensor] = []

    def gather(states: torch.Tensor) -> torch.Tensor:
        hidden.append(_at(states, rows, columns))
        return states[:1, :0]

    with torch.inference_mode(), _before_head(model, gather):
        model(**inputs, use_cache=use_cache)
    return hidden[0]


def _at(
    states: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor
) -> torch.Tensor:
    """Return ``states[rows, columns]``; the head may lie on another device than the inputs."""
    return states[rows.to(states.device), columns.to(states.device)]


def _rows_at_once(head: Any, hidden: torch.Tensor) -> int:
    vocabulary = int(head.weight.shape[0])
    if hidden.device.type != "cpu":
        return max(1, LOGITS_AT_ONCE // vocabulary)
    return max(_LEAST_ROWS, _AT_ONCE_ON_CPU // vocabulary)


@contextmanager
def _before_head(
    model: Any, change: Callable[[torch.Tensor], torch.Tensor]
) -> Iterator[None]:
    """Let ``change`` replace the input of the output layer; a model without one goes on as it is."""

    def hook(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return (change(args[0]), *args[1:]) if args else None

    head = model.get_output_embeddings()
    # The handle removes the hook as it leaves.
    with head.register_forward_pre_hook(hook) if head is not None else nullcontext():
        yield
