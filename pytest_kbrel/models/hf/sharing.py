"""Sharing modes: which of them a loaded checkpoint allows, and up to how many tokens.

Some architectures take a mask of any shape, some only prefixes, some neither, and those that do not give
wrong numbers without an error. So every mode is compared with plain batches once, on the checkpoint itself. In
half precision single sequences and another implementation of attention differ from plain batches too, the more
the larger the logits are: this distance is the checkpoint's own rounding, and a mode may differ by a few times as
much.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from pytest_kbrel.models.batching import (
    describe_error,
    is_out_of_memory,
    release_memory,
)
from pytest_kbrel.models.checkpoint.endings import vocabulary_of
from pytest_kbrel.models.tokens import Pair

SharingMode = Literal["packed", "prefix", "plain"]
SHARING_MODES: tuple[SharingMode, ...] = ("packed", "prefix", "plain")
Probabilities = tuple[float, ...]
ScoreFunction = Callable[[Sequence[Pair]], list[Probabilities]]

# In tokens a batch. What is right for a checkpoint must not hang on how much memory there is.
TRIAL_BUDGET = 4096
# A mode may differ by so many times what plain batches differ from single sequences by.
_ROUNDINGS = 4
# Other contexts must move the numbers by so many times what rounding does.
_CLEARLY = 10
_PREFIX, _CONTEXTS, _ANSWERS = 6, 4, 2
# From the last pair on, one in so many is fed as a single sequence too.
_SINGLE = -4
# The probability of smaller ones: beneath it float32 has few digits, and then none.
_LEAST = 1e-37
# How often a trial that finds no memory is tried: what others hold may be given back.
_TRIES = 3
T = TypeVar("T")


def best_sharing_mode(
    model: Any,
    functions: dict[SharingMode, ScoreFunction],
    longest: int | None,
    refused: list[str],
) -> SharingMode:
    """Return the first mode whose function gives the numbers of ``functions["plain"]``.

    ``longest`` is the number of tokens the model takes, ``None`` where it sets no limit. Where other contexts
    would not change the numbers clearly, the modes cannot be told apart, and nothing is shared. A line for
    each mode that does not hold is appended to ``refused``.
    """
    pairs, others = sample_pairs(model, longest)
    score = functions["plain"]
    try:
        plain, allowed = retried(
            lambda: plain_and_allowed(model, score, [*pairs, *others])
        )
        plain, other = plain[: len(pairs)], plain[len(pairs) :]
        moved = _furthest(plain, other)
    except Exception as error:
        refused.append(f"shared batches: {describe_error(error)}")
        return "plain"
    if not moved > _CLEARLY * allowed / _ROUNDINGS:
        refused.append(
            f"shared batches: another context moves a token by {moved:.2g} nats, and rounding by up to "
            f"{allowed:.2g}"
        )
        return "plain"
    for mode, function in functions.items():
        if mode != "plain":
            reason = difference(plain, function, pairs, allowed)
            if not reason:
                return mode
            refused.append(f"{mode}: {reason}")
    return "plain"


def difference(
    plain: Sequence[Probabilities],
    function: ScoreFunction,
    pairs: Sequence[Pair],
    allowed: float,
) -> str:
    """Return why ``function`` does not give the numbers of plain batches within ``allowed`` nats, else ``""``."""
    # Whatever an architecture raises here, this mode does not hold for it.
    try:
        apart = _furthest(plain, retried(lambda: function(pairs)))
    except Exception as error:
        return describe_error(error)
    if apart <= allowed:
        return ""
    return f"{apart:.2g} nats from plain batches, allowed {allowed:.2g}"


def plain_and_allowed(
    model: Any, score: ScoreFunction, pairs: Sequence[Pair]
) -> tuple[list[Probabilities], float]:
    """Return what a plain batch gives, and by how many nats another way to it may differ."""
    plain = score(pairs)
    single = [one for pair in pairs[::_SINGLE] for one in score([pair])]
    with _eager_attention(model):
        eager = score(pairs)
    # What is not a number stays so, and refuses every mode.
    rounding = _furthest([*plain[::_SINGLE], *plain], [*single, *eager])
    return plain, max(_ROUNDINGS * rounding, tolerance(model))


@contextmanager
def _eager_attention(model: Any) -> Iterator[None]:
    """Let a model compute attention step by step; one that cannot goes on as it is."""
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    before = inner.config._attn_implementation
    # Single sequences alone then tell the rounding: a mode may be refused needlessly, and none is taken wrongly.
    with contextlib.suppress(ValueError, NotImplementedError):
        inner.set_attn_implementation("eager")
    try:
        yield
    finally:
        inner.set_attn_implementation(before)


def retried(compute: Callable[[], T]) -> T:
    """Return what ``compute`` returns; it is called again where there was no memory."""
    for _ in range(_TRIES - 1):
        try:
            return compute()
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        release_memory()
    return compute()


def tolerance(model: Any) -> float:
    """Return by how many nats a token may differ with the shape of a batch, whatever was measured."""
    return 1e-3 if model.dtype.itemsize > 2 else 0.02


def sample_pairs(model: Any, longest: int | None) -> tuple[list[Pair], list[Pair]]:
    """Return pairs that share a prefix and contexts, and the same answers after another prefix."""
    draw = random.Random(0)
    vocabulary = vocabulary_of(model)

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(vocabulary) for _ in range(count))

    length = _PREFIX if longest is None else min(_PREFIX, longest // 4)
    prefix, other = tokens(length), tokens(length)
    pairs: list[Pair] = []
    others: list[Pair] = []
    for number in range(_CONTEXTS):
        middle = tokens(1 + number % 3)
        for count in range(1, _ANSWERS + 1):
            targets = tokens(count)
            for start, into in ((prefix, pairs), (other, others)):
                context = (*start, *middle)
                into.append(Pair(prompt=context, context=context, targets=targets))
    return pairs, others


def _furthest(one: Sequence[Probabilities], other: Sequence[Probabilities]) -> float:
    distances = [
        abs(math.log(max(a, _LEAST)) - math.log(max(b, _LEAST)))
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
    # One, or one a kind of layer.
    ropes = [getattr(text, name, None) for name in ("rope_parameters", "rope_scaling")]
    ropes += [part for of in ropes if isinstance(of, Mapping) for part in of.values()]
    for rope in ropes:
        if not isinstance(rope, Mapping):
            continue
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
