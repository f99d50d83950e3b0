"""Prefix sharing: lays token sequences into rows, and into caches, so that common beginnings are computed once.

The sequences form a prefix tree. A *group* is a part of it whose common beginning (its prefix) is computed
once and kept; the rest is laid into *rows*, in which every node of the tree stands once: a token sees the
prefix, its own ancestors in the row, and nothing else. This module is arithmetic on token ids.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from pytest_kbrel.models.tokens import Ids, common_prefix
from pytest_kbrel.records import record

# Keys and values, one pair a layer, each of shape (rows, heads, slots, width).
Layers = Sequence[tuple[torch.Tensor, torch.Tensor]]
# A cache with sources and targets of slots that leave it, both as row * room + slot.
SlotMoves = tuple[Any, torch.Tensor, torch.Tensor]


def cache_of(model: Any, layers: Layers, rows: int) -> Any:
    """Return a cache of ``rows`` rows that all hold ``layers``, which have one row."""
    return _filled(DynamicCache(config=model.config), layers, rows)


def _filled(cache: Any, layers: Layers, rows: int) -> Any:
    for number, (keys, values) in enumerate(layers):
        cache.update(
            keys.expand(rows, -1, -1, -1), values.expand(rows, -1, -1, -1), number
        )
    return cache


class PreallocatedLayer(DynamicLayer):  # type: ignore[misc,no-untyped-call,unused-ignore]
    """Cache layer that is written in place; transformers' growing one copies all it holds for every token.

    Memory for ``room`` slots is taken at the first writing, of shape (rows, room, heads, width): keys and
    values of a slot lie side by side, so that it moves as a whole.
    """

    def __init__(self, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self.room, self.used = room, 0
        self.part: torch.Tensor | None = None
        # Of a key; the rest is the value.
        self.width = 0

    def update(
        self,
        key_states: torch.Tensor,
        value_states: torch.Tensor,
        *args: Any,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append keys and values; raise ``RuntimeError`` where the room does not suffice."""
        states = torch.cat([key_states, value_states], -1).transpose(1, 2)
        if self.part is None:
            self.width = key_states.shape[-1]
            self.part = states.new_empty((len(states), self.room, *states.shape[2:]))
        end = self.used + states.shape[1]
        # Written into no slot at all, one token's state would vanish without a word.
        if end > self.room:
            raise RuntimeError(
                f"a cache with room for {self.room} slots was to hold {end}"
            )
        self.part[:, self.used : end] = states
        return self.show(self.part, end)

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep the rows ``indices``, and those only."""
        if self.part is not None:
            self.show(self.part[indices], self.used)

    def show(self, part: torch.Tensor, used: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Make ``used`` slots of ``part`` visible, and return their keys and values."""
        self.part, self.used, self.is_initialized = part, used, True
        seen = part[:, :used].transpose(1, 2)
        self.keys, self.values = seen[..., : self.width], seen[..., self.width :]
        self.dtype, self.device = part.dtype, part.device
        return self.keys, self.values


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

    # Layers may lie on several devices; on one they all move the same slots.
    @functools.cache
    def indices(device: torch.device) -> list[list[torch.Tensor]]:
        return [[part.to(device) for part in parts] for _, *parts in moves]

    for old in zip(*(cache.layers for cache, *_ in moves), strict=True):
        layer, given = PreallocatedLayer(room), old[0].part
        layer.width = old[0].width
        part = given.new_empty((rows, room, *given.shape[2:]))
        part[:, :before] = given[:1, :before]
        part[:, before:slots] = 0
        flat = part.flatten(0, 1)
        for source, (sources, targets) in zip(old, indices(part.device), strict=True):
            moved = source.part.flatten(0, 1).index_select(0, sources)
            flat.index_copy_(0, targets, moved)
            source.part = None
        layer.show(part, slots)
        new.layers.append(layer)
    return new


# Behind the end of any row.
OPEN = 2**31
# A prefix of its own is a forward pass of its own: it must spare more than so many times its length.
_WORTH = 2


@record
class TokenSequence:
    """Token ids to be fed; the logits behind each of them from index ``start`` on are wanted."""

    ids: Ids
    start: int


class Row:
    """Tokens behind a prefix. They lie branch by branch: a token is followed by all its descendants.

    ``ends[i]`` is the index behind those of token i, or :data:`OPEN` if the row ends with them. ``depths`` are positions in the
    sequence, the first behind the prefix being its length. ``outputs`` has, for each sequence that ends in
    this row, its number and the indices of the tokens whose logits it wants. Sequences are added in order:
    each shares most with the one before it.
    """

    def __init__(self, prefix: int) -> None:
        self.tokens: list[int] = []
        self.ends: list[int] = []
        self.depths: list[int] = []
        self.outputs: list[tuple[int, Ids]] = []
        self._prefix = prefix
        self._last: Ids = ()
        self._path: list[int] = []

    def fits(self, ids: Ids, row_length: int) -> bool:
        """Return True if a sequence can be added to a row of ``row_length`` tokens, 0 for no branches."""
        if not row_length:
            return ids[: len(self._last)] == self._last
        return (
            len(self.tokens)
            + len(ids)
            - max(self._prefix, common_prefix(self._last, ids))
            <= row_length
        )

    def add(self, number: int, sequence: TokenSequence) -> None:
        """Add the sequence of a number."""
        ids = sequence.ids
        shared = max(self._prefix, common_prefix(self._last, ids)) - self._prefix
        for index in self._path[shared:]:
            self.ends[index] = len(self.tokens)
        del self._path[shared:]
        for depth in range(self._prefix + shared, len(ids)):
            self.ends.append(OPEN)
            self.depths.append(depth)
            self._path.append(len(self.tokens))
            self.tokens.append(ids[depth])
        self.outputs.append(
            (number, tuple(self._path[sequence.start - self._prefix :]))
        )
        self._last = ids


@record
class Group:
    """Rows behind one prefix."""

    prefix: Ids
    rows: tuple[Row, ...]


def group_by_prefix(
    sequences: Sequence[TokenSequence],
    row_length: int,
    pays: Callable[[int, int], bool] = lambda times, tokens: True,
) -> tuple[Group, ...]:
    """Return how to feed ``sequences`` in rows of at most ``row_length`` tokens, longer ones where need be.

    With a ``row_length`` of 0 no row branches: each is one sequence, with others that it continues. Every
    sequence must want the logits behind at least one of its tokens. A part of a
    group gets a prefix of its own only where ``pays(times, tokens)``: so many tokens are spared so often.
    """
    order = sorted(range(len(sequences)), key=lambda number: sequences[number].ids)
    ordered = [sequences[number] for number in order]
    shared = [common_prefix(one.ids, other.ids) for one, other in pairwise(ordered)]

    def prefix_length(low: int, high: int) -> int:
        """Return the length of what a part has in common, ending before any token whose logits are wanted."""
        common = min(shared[low : high - 1], default=len(ordered[low].ids))
        return min(common, min(sequence.start for sequence in ordered[low:high]))

    def is_worthy(low: int, high: int, length: int) -> bool:
        """Return True if a longer prefix for a part spares enough."""
        longer = prefix_length(low, high) - length
        times = high - low
        if row_length:
            nodes = sum(len(sequence.ids) - length for sequence in ordered[low:high])
            nodes -= sum(count - length for count in shared[low : high - 1])
            # Within a row the common beginning stands once already; one that holds much of it has room for
            # little else.
            times = min(times, (nodes - longer) // max(row_length - longer, 1))
        is_enough = longer > 0 and (times - 1) * longer >= _WORTH * (longer + length)
        return is_enough and pays(times, longer)

    def rows_of(numbers: Sequence[int], prefix: int) -> tuple[Row, ...]:
        rows = [Row(prefix)]
        for number in numbers:
            sequence = sequences[number]
            if rows[-1].tokens and not rows[-1].fits(sequence.ids, row_length):
                rows.append(Row(prefix))
            rows[-1].add(number, sequence)
        return tuple(rows)

    groups: list[Group] = []
    # (from, to) in ``order``.
    waiting = [(0, len(order))] if order else []
    while waiting:
        low, high = waiting.pop()
        length = prefix_length(low, high)
        cuts = [index + 1 for index in range(low, high - 1) if shared[index] <= length]
        # Those that have more than ``length`` tokens in common.
        parts = list(pairwise([low, *cuts, high]))
        worthy = {part for part in parts if is_worthy(*part, length)}
        waiting += sorted(worthy, reverse=True)
        numbers = [
            order[index]
            for part in parts
            if part not in worthy
            for index in range(*part)
        ]
        if numbers:
            rows = rows_of(numbers, length)
            whole = rows_of(numbers, 0) if len(rows) <= _WORTH else ()
            # Too few rows for a forward pass of the prefix alone: they hold it themselves, unless that makes
            # many rows of them.
            if whole and tokens_in(whole) <= _WORTH * length + tokens_in(rows):
                length, rows = 0, whole
            groups.append(Group(prefix=sequences[numbers[0]].ids[:length], rows=rows))
    return tuple(groups)


def tokens_in(rows: Sequence[Row]) -> int:
    """Return the number of tokens in rows."""
    return sum(len(row.tokens) for row in rows)
