"""Sharing modes: which of them a loaded checkpoint allows, and up to how many tokens.

Some architectures take a mask of any shape, some only prefixes, some neither, and those that do not give
wrong numbers without an error. So every mode is compared with plain batches once, on the checkpoint itself.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch

from pytest_kbrel.models.hf.lm_head import vocabulary_of
from pytest_kbrel.models.tokens import Pair

SharingMode = Literal["packed", "prefix", "plain"]
SHARING_MODES: tuple[SharingMode, ...] = ("packed", "prefix", "plain")
Probabilities = tuple[float, ...]
ScoreFunction = Callable[[Sequence[Pair]], list[Probabilities]]

# In tokens a batch. What is right for a checkpoint must not hang on how much memory there is.
TRIAL_BUDGET = 4096
# In nats a token. Batches of another shape differ by less; a mask that is not obeyed by ten times as much.
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE = 0.08
_PREFIX, _CONTEXTS, _ANSWERS = 6, 4, 2


def best_sharing_mode(
    model: Any, functions: dict[SharingMode, ScoreFunction], longest: int | None
) -> SharingMode:
    """Return the first mode whose function gives the numbers of ``functions["plain"]``.

    ``longest`` is the number of tokens the model takes, ``None`` where it sets no limit. Where other contexts
    would not change the numbers clearly, the modes cannot be told apart, and nothing is shared.
    """
    pairs, others = sample_pairs(model, longest)
    try:
        plain, other = functions["plain"](pairs), functions["plain"](others)
    except Exception:
        return "plain"
    if not _furthest(plain, other) > 10 * tolerance(model):
        return "plain"
    for mode in SHARING_MODES[:-1]:
        # Whatever an architecture raises here, this mode does not hold for it.
        with contextlib.suppress(Exception):
            if mode in functions and agree(model, plain, functions[mode](pairs)):
                return mode
    return "plain"


def agree(
    model: Any, one: Sequence[Probabilities], other: Sequence[Probabilities]
) -> bool:
    """Return True if two computations of the same probabilities differ by no more than rounding."""
    return _furthest(one, other) <= tolerance(model)


def tolerance(model: Any) -> float:
    """Return by how many nats a model's numbers may differ with the shape of a batch."""
    return _TOLERANCE.get(model.dtype, _HALF_TOLERANCE)


def sample_pairs(model: Any, longest: int | None) -> tuple[list[Pair], list[Pair]]:
    """Return pairs that share a prefix and contexts, and the same answers after another prefix."""
    draw = random.Random(0)
    vocabulary = vocabulary_of(model)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(vocabulary) for _ in range(count))

    room = 64 if longest is None else longest
    prefix, other = tokens(min(_PREFIX, room // 4)), tokens(min(_PREFIX, room // 4))
    pairs: list[Pair] = []
    others: list[Pair] = []
    for number in range(_CONTEXTS):
        middle = tokens(1 + number % 3)
        for length in range(1, _ANSWERS + 1):
            targets = tokens(length)
            for start, into in ((prefix, pairs), (other, others)):
                context = (*start, *middle)
                into.append(Pair(prompt=context, context=context, targets=targets))
    return pairs, others


def _furthest(one: Sequence[Probabilities], other: Sequence[Probabilities]) -> float:
    distances = [
        abs(math.log(a) - math.log(b))
        if a > 0 and b > 0
        else 0.0
        if a == b
        else math.inf
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    return math.nan if any(d != d for d in distances) else max(distances)


_LONGEST = "max_seq_len_cached"
# What the names of transformers' configs call the number of tokens that a layer sees, or chooses from.
_WINDOWS = ("sliding_window", "attention_chunk_size", "keep_window_size", "index_topk")


def window_of(config: Any) -> int | None:
    """Return up to how many tokens a sequence may be packed, ``None`` where any number is right.

    That is what the narrowest layer sees, and the length from which on a model turns its positions by
    factors that depend on the longest sequence of the batch.
    """
    text = config.get_text_config(decoder=True)
    names = _WINDOWS if allows_packing(config) else (*_WINDOWS, "window_size")
    sizes = [getattr(text, name, None) for name in names]
    for rope in _ropes(text):
        if (rope.get("rope_type") or rope.get("type")) in ("longrope", "dynamic"):
            original = "original_max_position_embeddings"
            sizes.append(
                rope.get(original)
                or getattr(text, original, None)
                or getattr(text, "max_position_embeddings", None)
            )
    return min(
        (size for size in sizes if isinstance(size, int) and size > 0), default=None
    )


def allows_packing(config: Any) -> bool:
    """Return True if a mask of our own is all that decides what a token sees.

    GPT-Neo's local layers put a window of their own over it, which counts positions in the row.
    """
    return "local" not in str(
        getattr(config.get_text_config(decoder=True), "attention_layers", "")
    )


def reset_rope_lengths(model: Any) -> None:
    """Reset rotary positions that depend on the longest text so far to those of a short text."""
    for module in model.modules():
        first = getattr(module, "original_max_seq_len", None)
        for name in (
            [name for name in vars(module) if name.endswith(_LONGEST)]
            if first is not None
            else ()
        ):
            kind = name.removesuffix(_LONGEST)
            original = getattr(module, f"{kind}original_inv_freq", None)
            if getattr(module, name) > first and original is not None:
                original = original.to(getattr(module, f"{kind}inv_freq").device)
                module.register_buffer(f"{kind}inv_freq", original, persistent=False)
                setattr(module, name, first)


def _ropes(text: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of the rotary positions: one, or one a kind of layer."""
    for name in ("rope_parameters", "rope_scaling"):
        rope = getattr(text, name, None)
        if isinstance(rope, Mapping):
            yield rope
            yield from (part for part in rope.values() if isinstance(part, Mapping))
