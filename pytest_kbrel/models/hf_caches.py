"""Keys and values of several rows: taken apart, moved together, put beside others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache

# Keys and values, one pair a layer, each of shape (rows, heads, slots, width).
Layers = Sequence[tuple[torch.Tensor, torch.Tensor]]


def cache_of(model: Any, layers: Layers) -> Any:
    """Return a cache that holds ``layers``; an empty one for none."""
    cache = DynamicCache(config=model.config)
    for number, (keys, values) in enumerate(layers):
        cache.update(keys, values, number)
    return cache


def layers_of(cache: Any) -> Layers:
    """Return what a cache holds."""
    return [(layer.keys, layer.values) for layer in cache.layers]


def moved_together(layers: Layers, mask: torch.Tensor, rows: Sequence[int]) -> tuple[Layers, torch.Tensor]:
    """Return ``rows`` of the layers with the slots in use in front, and the mask of these.

    ``mask``, shape (len(rows), slots), tells which slots of each are in use.
    """
    if not rows:
        return [], mask[:, :0]
    order = mask.argsort(dim=1, descending=True, stable=True)[:, : int(mask.sum(1).max())]
    chosen = torch.tensor(rows)

    def moved(part: torch.Tensor) -> torch.Tensor:
        spots = order.to(part.device)[:, None, :, None].expand(-1, part.shape[1], -1, part.shape[3])
        return part[chosen.to(part.device)].gather(2, spots)

    return [(moved(keys), moved(values)) for keys, values in layers], mask.gather(1, order)


def beside(
    layers: Layers, mask: torch.Tensor, others: Layers, other_mask: torch.Tensor
) -> tuple[Layers, torch.Tensor]:
    """Return both lots of rows as one, the shorter filled up with slots that are not in use."""
    slots = max(mask.shape[1], other_mask.shape[1])

    def joined(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        filled = [torch.nn.functional.pad(p, (0, 0, 0, slots - p.shape[2])) for p in (one, other)]
        return torch.cat(filled)

    masks = [torch.nn.functional.pad(m, (0, slots - m.shape[1])) for m in (mask, other_mask)]
    pairs = zip(layers, others, strict=True)
    return [(joined(k, ok), joined(v, ov)) for (k, v), (ok, ov) in pairs], torch.cat(masks)
