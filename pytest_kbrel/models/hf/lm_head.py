"""Logits and probabilities from the output layer, computed at the needed positions only.

For short answers and a large vocabulary this layer costs more than all others together, and its logits are
the largest thing in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from pytest_kbrel.models.checkpoint.endings import vocabulary_of

# Row and column of a token in a batch.
Cell = tuple[int, int]
# Logits held at once on a CPU, in numbers: what the next operation finds still near the processor.
_AT_ONCE_ON_CPU = 8_000_000
_LEAST_ROWS = 128
# Logits held at once elsewhere, in numbers: 2**26 float32 are 256 MiB, whatever the vocabulary's size.
LOGITS_AT_ONCE = 2**26

_last: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def logits_at(
    model: Any, cells: Sequence[Cell], inputs: dict[str, Any]
) -> torch.Tensor:
    """Return the logits ``(cells, vocabulary)`` at the given cells of the batch."""
    logits, given = _run(model, inputs, lambda states: _at(states, cells)[None])
    return logits[0] if given else _at(logits, cells)


def probabilities_at(
    model: Any, wanted: Sequence[tuple[Cell, int]], inputs: dict[str, Any]
) -> list[float]:
    """Return the probability of each token at its cell, by float32 softmax; a cell is computed once."""
    numbers = {cell: n for n, cell in enumerate(dict.fromkeys(c for c, _ in wanted))}
    cells = list(numbers)
    alone = head_is_last(model)
    given = (_hidden_at if alone else logits_at)(model, cells, inputs)
    head = model.get_output_embeddings() if alone else nn.Identity()
    count = _rows_at_once(model, given)
    scores = torch.empty(len(wanted), dtype=torch.float32, device=given.device)
    pairs = [(numbers[cell], token) for cell, token in wanted]
    spots, tokens = torch.tensor(pairs, device=given.device).T
    with torch.inference_mode():
        for start in range(0, len(given), count):
            here = ((spots >= start) & (spots < start + count)).nonzero()[:, 0]
            probabilities = head(given[start : start + count]).float().softmax(-1)
            # The layer may lie on another device than its input.
            index = torch.stack([spots[here] - start, tokens[here]])
            rows, columns = index.to(probabilities.device)
            scores[here] = probabilities[rows, columns].to(scores.device)
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
    _hidden_at(model, [(0, 0)], inputs)
    return True


def _is_last(model: Any, head: Any, inputs: dict[str, Any], times: int) -> bool:
    """Return True if the logits are the layer's own when its input is multiplied by ``times``."""
    logits, given = _run(model, inputs, lambda states: states * times)
    if len(given) != 1:
        return False
    with torch.inference_mode():
        alone = head(given[0] * times)
    if alone.shape != logits.shape:
        return False
    alone = alone.to(logits.device)
    return bool(
        (alone.float() - logits.float()).abs().max() <= 1e-5 * alone.float().abs().max()
    )


def _hidden_at(
    model: Any, cells: Sequence[Cell], inputs: dict[str, Any]
) -> torch.Tensor:
    """Return the input of the output layer at the cells, shape (cells, width)."""
    _, given = _run(model, inputs, lambda states: states[:1, :0])
    return _at(given[0], cells)


def _at(states: torch.Tensor, cells: Sequence[Cell]) -> torch.Tensor:
    # The head may lie on another device than the inputs.
    rows, columns = torch.tensor(cells, device=states.device).T
    return states[rows, columns]


def _rows_at_once(model: Any, hidden: torch.Tensor) -> int:
    vocabulary = vocabulary_of(model)
    if hidden.device.type != "cpu":
        return max(1, LOGITS_AT_ONCE // vocabulary)
    return max(_LEAST_ROWS, _AT_ONCE_ON_CPU // vocabulary)


def _run(
    model: Any, inputs: dict[str, Any], change: Callable[[torch.Tensor], torch.Tensor]
) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return a model's logits where ``change`` replaced the input of its output layer, and that input.

    A model without such a layer goes on as it is, and has no input of it.
    """
    given: list[torch.Tensor] = []

    def hook(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        given.extend(args[:1])
        return (change(args[0]), *args[1:]) if args else None

    head = model.get_output_embeddings()
    # The handle removes the hook as it leaves.
    with (
        torch.inference_mode(),
        head.register_forward_pre_hook(hook) if head is not None else nullcontext(),
    ):
        return model(**inputs, use_cache="past_key_values" in inputs).logits, given
