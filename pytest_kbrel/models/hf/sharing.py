"""Which way of sharing a loaded checkpoint allows: tried on it, not looked up by its name.

Some architectures take a mask of any shape, some only prefixes, some nothing, and those that do not are
wrong without a word. So every way is held against plain batches once, on the checkpoint itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import torch

from pytest_kbrel.models.tokens import Pair

Rung = Literal["packed", "prefix", "plain"]
RUNGS: tuple[Rung, ...] = ("packed", "prefix", "plain")
Probabilities = tuple[float, ...]
Way = Callable[[Sequence[Pair]], list[Probabilities]]

# In tokens a batch. What is right for a checkpoint must not hang on how much memory there is.
TRIAL = 4096
# In nats a token. Batches of another shape differ by less; a mask that is not obeyed by ten times as much.
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE = 0.08
_PREFIX, _CONTEXTS, _ANSWERS = 6, 4, 2


def highest_rung(model: Any, ways: dict[Rung, Way], longest: int | None) -> Rung:
    """Return the first of ``ways`` whose numbers are those of ``ways["plain"]``.

    ``longest`` is the number of tokens the model takes, ``None`` where it sets no limit. Where other
    contexts would not change the numbers clearly, nothing can be told, and nothing is shared.
    """
    pairs, others = sample_pairs(model, longest)
    try:
        plain, moved = ways["plain"](pairs), ways["plain"](others)
    except Exception:
        return "plain"
    if not _furthest(plain, moved) > 10 * _tolerance(model):
        return "plain"
    for rung in (rung for rung in RUNGS[:-1] if rung in ways):
        try:
            found = ways[rung](pairs)
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            continue
        if agree(model, plain, found):
            return rung
    return "plain"


def agree(model: Any, one: Sequence[Probabilities], other: Sequence[Probabilities]) -> bool:
    """Tell whether two ways of computing the same probabilities differ by no more than rounding."""
    return _furthest(one, other) <= _tolerance(model)


def _tolerance(model: Any) -> float:
    return _TOLERANCE.get(model.dtype, _HALF_TOLERANCE)


def sample_pairs(model: Any, longest: int | None) -> tuple[list[Pair], list[Pair]]:
    """Return pairs that share a prefix and contexts, and the same answers after another prefix."""
    draw = random.Random(0)
    vocabulary = int(model.get_input_embeddings().weight.shape[0])

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(vocabulary) for _ in range(count))

    room = 64 if longest is None else longest
    prefix, other = tokens(min(_PREFIX, room // 4)), tokens(min(_PREFIX, room // 4))
    found: list[Pair] = []
    moved: list[Pair] = []
    for number in range(_CONTEXTS):
        middle = tokens(1 + number % 3)
        for length in range(1, _ANSWERS + 1):
            targets = tokens(length)
            for start, into in ((prefix, found), (other, moved)):
                context = (*start, *middle)
                into.append(Pair(prompt=context, context=context, targets=targets))
    return found, moved


def _furthest(one: Sequence[Probabilities], other: Sequence[Probabilities]) -> float:
    distances = [
        abs(math.log(a) - math.log(b)) if a > 0 and b > 0 else 0.0 if a == b else math.inf
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
    sizes = [getattr(text, name, None) for name in _WINDOWS]
    if not packs(config):
        sizes.append(getattr(text, "window_size", None))
    for rope in _ropes(text):
        if (rope.get("rope_type") or rope.get("type")) in ("longrope", "dynamic"):
            sizes.append(
                rope.get("original_max_position_embeddings")
                or getattr(text, "original_max_position_embeddings", None)
                or getattr(text, "max_position_embeddings", None)
            )
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def packs(config: Any) -> bool:
    """Tell whether a mask of our own is all that decides what a token sees.

    GPT-Neo's local layers put a window of their own over it, which counts places in the row.
    """
    return "local" not in str(getattr(config.get_text_config(decoder=True), "attention_layers", ""))


def forget_lengths(model: Any) -> None:
    """Let rotary positions begin anew that depend on the longest text so far, as a short text would."""
    for module in model.modules():
        first = getattr(module, "original_max_seq_len", None)
        for name in [name for name in vars(module) if name.endswith(_LONGEST)] if first is not None else ():
            turns = getattr(module, f"{name.removesuffix(_LONGEST)}original_inv_freq", None)
            if getattr(module, name) > first and turns is not None:
                turned = f"{name.removesuffix(_LONGEST)}inv_freq"
                turns = turns.to(getattr(module, turned).device)
                module.register_buffer(turned, turns, persistent=False)
                setattr(module, name, first)


def check_length(prompt: int, behind: int, limit: int | None, *, encoder_decoder: bool) -> None:
    """Raise ``ValueError`` where a model takes fewer tokens than a prompt and what comes behind it.

    ``limit`` is in tokens, ``None`` where there is none; encoder and decoder each have it for themselves.
    """
    longest = max(prompt, behind) if encoder_decoder else prompt + behind
    if limit is not None and longest > limit:
        raise ValueError(
            f"too long: {prompt} tokens of prompt and {behind} behind it; the model takes {limit}"
        )


def _ropes(text: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of the rotary positions: one, or one a kind of layer."""
    for name in ("rope_parameters", "rope_scaling"):
        found = getattr(text, name, None)
        if isinstance(found, Mapping):
            yield found
            yield from (part for part in found.values() if isinstance(part, Mapping))
