"""How far back a checkpoint's layers see."""

from __future__ import annotations

from typing import Any


def window_of(config: Any) -> int | None:
    """Return how many tokens the narrowest layer sees, ``None`` where all layers see everything."""
    text = config.get_text_config(decoder=True)
    sizes = [getattr(text, name, None) for name in ("sliding_window", "attention_chunk_size")]
    # GPT-Neo's local layers have a name of their own.
    if "local" in str(getattr(text, "attention_layers", "")):
        sizes.append(getattr(text, "window_size", None))
    return min((size for size in sizes if isinstance(size, int) and size > 0), default=None)
