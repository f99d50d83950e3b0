"""Key-value caches: preallocated and written in place, rearranged when sequences leave or come in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from pytest_kbrel.models.tokens import Ids, common_prefix

# Keys and values, one pair a layer, each of shape (rows, heads, slots, width).
Layers = Sequence[tuple[torch.Tensor, torch.Tensor]]
# A cache with (source, target) of slots that leave it, both as row * room + slot.
SlotMoves = tuple[Any, list[tuple[int, int]]]


def cache_of(model: Any, layers: Layers, rows: int) -> Any:
    """Return a cache of ``rows`` rows that all hold ``layers``, which have one row."""
    return _filled(DynamicCache(config=model.config), layers, rows)


def _filled(cache: Any, layers: Layers, rows: int) -> Any:
    for number, (keys, values) in enumerate(layers):
        cache.update(
            keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), number
        )
    return cache


class PrefixCache:
    """Cache of the keys and values of the last prefix: calls often begin with the same few-shot examples.

    ``feed`` computes those of token ids.
    """

    def __init__(self, feed: Callable[[Ids], Layers]) -> None:
        self._feed = feed
        self._ids: Ids = ()
        self._layers: Layers = []

    def layers(self, ids: Ids) -> Layers:
        """Return those of ``ids``: the cached ones, cut where they are more."""
        if not ids:
            return []
        if common_prefix(self._ids, ids) < len(ids):
            # Never both in memory.
            self.forget()
            self._layers, self._ids = self._feed(ids), ids
        return [
            (keys[:, :, : len(ids)], values[:, :, : len(ids)])
            for keys, values in self._layers
        ]

    def forget(self) -> None:
        """Free the memory."""
        self._ids, self._layers = (), []


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc,no-untyped-call,unused-ignore]
    """Cache layer that is written in place; transformers' growing one copies all it holds for every token.

    Memory for ``room`` slots is taken at the first writing, of shape (rows, room, heads, width): a slot's
    heads lie side by side, so that slots move as a whole.
    """

    def __init__(self, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.room, self.used = room, 0
        self.parts: list[torch.Tensor] = []

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values; raise ``RuntimeError`` where the room does not suffice."""
        states = [given.transpose(1, 2) for given in (key_states, value_states)]
        if not self.parts:
            self.parts = [
                s.new_empty((s.shape[0], self.room, *s.shape[2:])) for s in states
            ]
        end = self.used + key_states.shape[-2]
        # Written into no slot at all, one token's state would vanish without a word.
        if end > self.room:
            raise RuntimeError(
                f"a cache with room for {self.room} slots was to hold {end}"
            )
        for part, written in zip(self.parts, states, strict=True):
            part[:, self.used : end] = written
        return self.show(end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows ``indices``, and those only."""
        if self.parts:
            self.parts = [part[indices] for part in self.parts]
            self.show(self.used)

    def show(self, used: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Make ``used`` slots visible, and return their keys and values."""
        keys, values = (part[:, :used].transpose(1, 2) for part in self.parts)
        self.used, self.is_initialized = used, True
        self.keys, self.values = keys, values
        self.dtype, self.device = keys.dtype, keys.device
        return keys, values


def preallocated_cache(rows: int, room: int, prefix: Layers) -> Any:
    """Return a cache of ``rows`` rows for ``room`` slots each, all of which begin with ``prefix``."""
    cache: Any = DynamicCache()
    cache.layer_class_to_replicate = functools.partial(PreallocatedLayer, room)
    return _filled(cache, prefix, rows)


def rearranged_cache(
    rows: int, slots: int, room: int, before: int, moves: Sequence[SlotMoves]
) -> Any:
    """Return a cache of ``rows`` rows with ``slots`` in use and room for ``room``, and empty the old ones.

    All rows of all caches begin with the same ``before`` slots; of the others, those that ``moves`` do not
    name are zero: what a mask hides must still be a number.
    """
    new = preallocated_cache(rows, room, [])
    filled = {target for _, pairs in moves for _, target in pairs}
    cells = (row * room + slot for row in range(rows) for slot in range(before, slots))
    gaps = [cell for cell in cells if cell not in filled]

    # Layers may lie on several devices; on one they all move the same slots.
    @functools.cache
    def indices(device: torch.device) -> list[torch.Tensor]:
        tables = [[gaps], *(list(zip(*pairs, strict=True)) for _, pairs in moves)]
        return [
            torch.tensor(table, dtype=torch.long, device=device) for table in tables
        ]

    for old in zip(*(cache.layers for cache, _ in moves), strict=True):
        layer = PreallocatedLayer(room)
        layer.parts = [p.new_empty((rows, room, *p.shape[2:])) for p in old[0].parts]
        for which, part in enumerate(layer.parts):
            part[:, :before] = old[0].parts[which][:1, :before]
            flat = part.flatten(0, 1)
            (empty,), *moved = indices(part.device)
            for (sources, targets), source in zip(moved, old, strict=True):
                flat[targets] = source.parts[which].flatten(0, 1)[sources]
            flat[empty] = 0
        for source in old:
            source.parts = []
        layer.show(slots)
        new.layers.append(layer)
    return new
