"""How far a checkpoint can be fed in rows of our own making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

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
