"""The output layer: what it is given, and what comes out of it, at the places that are needed and only there.

For short answers and a large vocabulary it costs more than all other layers together, and its logits are the
largest thing in memory.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

# Logits held at once on a CPU, in numbers: what the next operation finds still near the processor.
_AT_ONCE_ON_CPU = 8_000_000
_LEAST_ROWS = 128
# Logits held at once elsewhere, in numbers: 2**26 float32 are 256 MiB, whatever the vocabulary's size.
LOGITS_AT_ONCE = 2**26

_last: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()


def logits_at(
    model: Any, rows: torch.Tensor, columns: torch.Tensor, inputs: dict[str, Any], *, use_cache: bool = False
) -> torch.Tensor:
    """Return the logits ``(positions, vocabulary)`` at the given places of the batch."""
    fired: list[bool] = []

    def gather(given: torch.Tensor) -> torch.Tensor:
        fired.append(True)
        return _at(given, rows, columns)[None]

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
    """Return the probability of token ``targets[i]`` at place ``spots[i]``, by float32 softmax.

    ``spots`` counts the places given by ``rows`` and ``columns``; these should be different ones.
    """
    if not head_is_last(model):
        logits = logits_at(model, rows, columns, inputs, use_cache=use_cache)
        return list(logits.float().softmax(-1)[spots, targets].tolist())
    hidden = _hidden_at(model, rows, columns, inputs, use_cache=use_cache)
    head = model.get_output_embeddings()
    many = _rows_at_once(head, hidden)
    scores = torch.empty(len(targets), dtype=torch.float32, device=targets.device)
    with torch.inference_mode():
        for start in range(0, len(hidden), many):
            here = ((spots >= start) & (spots < start + many)).nonzero()[:, 0]
            probabilities = head(hidden[start : start + many]).float().softmax(-1)
            scores[here] = _at(probabilities, spots[here] - start, targets[here]).to(scores.device)
    return list(scores.tolist())


def head_is_last(model: Any) -> bool:
    """Tell whether the logits are what the output layer gives, and nothing is done to them afterwards.

    Tried on the model itself, once: some cap or scale them.
    """
    if model not in _last:
        try:
            _last[model] = _try_head(model)
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            _last[model] = False
    return _last[model]


def _try_head(model: Any) -> bool:
    head = model.get_output_embeddings()
    if head is None:
        return False
    tokens = torch.tensor([[1, 2, 3]], device=model.device)
    named = {"decoder_input_ids": tokens} if model.config.is_encoder_decoder else {}
    inputs = {"input_ids": tokens, **named}
    # A cap leaves small numbers nearly as they are, and what is added is lost beside large ones.
    if not all(_is_last(model, head, inputs, times) for times in (0, 1, 1000)):
        return False
    # Also with nothing for the layer to do, which is how the model will be asked.
    place = torch.zeros(1, dtype=torch.long, device=model.device)
    _hidden_at(model, place, place, inputs, use_cache=False)
    return True


def _is_last(model: Any, head: Any, inputs: dict[str, Any], times: int) -> bool:
    """Tell whether the logits are the layer's own if it is given so many times what it was to be given."""
    kept: list[torch.Tensor] = []

    def change(given: torch.Tensor) -> torch.Tensor:
        kept.append(given * times)
        return kept[-1]

    with torch.inference_mode(), _before_head(model, change):
        logits = model(**inputs, use_cache=False).logits
    if len(kept) != 1:
        return False
    with torch.inference_mode():
        alone = head(kept[0])
    if alone.shape != logits.shape:
        return False
    alone = alone.to(logits.device)
    return bool((alone.float() - logits.float()).abs().max() <= 1e-5 * alone.float().abs().max())


def _hidden_at(
    model: Any, rows: torch.Tensor, columns: torch.Tensor, inputs: dict[str, Any], *, use_cache: bool
) -> torch.Tensor:
    """Return what the output layer is given at the given places, shape (positions, width)."""
    kept: list[torch.Tensor] = []

    def keep(given: torch.Tensor) -> torch.Tensor:
        kept.append(_at(given, rows, columns))
        return given[:1, :0]

    with torch.inference_mode(), _before_head(model, keep):
        model(**inputs, use_cache=use_cache)
    return kept[0]


def _at(given: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
    """Return ``given[rows, columns]``; the head may lie on another device than the inputs."""
    return given[rows.to(given.device), columns.to(given.device)]


def _rows_at_once(head: Any, hidden: torch.Tensor) -> int:
    vocabulary = int(head.weight.shape[0])
    if hidden.device.type != "cpu":
        return max(1, LOGITS_AT_ONCE // vocabulary)
    return max(_LEAST_ROWS, _AT_ONCE_ON_CPU // vocabulary)


@contextmanager
def _before_head(model: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """Let ``change`` replace what the output layer is given; a model without one goes on as it is."""

    def hook(_module: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return (change(args[0]), *args[1:]) if args else None

    head = model.get_output_embeddings()
    handle = head.register_forward_pre_hook(hook) if head is not None else None
    try:
        yield
    finally:
        if handle is not None:
            handle.remove()
