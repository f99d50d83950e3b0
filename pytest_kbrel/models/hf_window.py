"""How far a checkpoint can be fed in rows of our own making."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def window_of(config: Any) -> int | None:
    """Return up to how many tokens a sequence may be packed, ``None`` where any number is right.

    That is what the narrowest layer sees, and the length from which on a model turns its positions by
    factors that depend on the longest sequence of the batch.
    """
    text = config.get_text_config(decoder=True)
    sizes = [getattr(text, name, None) for name in ("sliding_window", "attention_chunk_size")]
    # GPT-Neo's local layers have a name of their own.
    if "local" in str(getattr(text, "attention_layers", "")):
        sizes.append(getattr(text, "window_size", None))
    for rope in _ropes(text):
        if (rope.get("rope_type") or rope.get("type")) in ("longrope", "dynamic"):
            sizes.append(
                rope.get("original_max_position_embeddings")
                or getattr(text, "original_max_position_embeddings", None)
                or getattr(text, "max_position_embeddings", None)
            )
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)


def _ropes(text: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the settings of the rotary positions: one, or one a kind of layer."""
    for name in ("rope_parameters", "rope_scaling"):
        found = getattr(text, name, None)
        if isinstance(found, Mapping):
            yield found
            yield from (part for part in found.values() if isinstance(part, Mapping))
