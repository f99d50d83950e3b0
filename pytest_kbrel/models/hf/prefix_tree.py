"""What questions share, and how they are fed so that it is computed once: pure arithmetic on token ids.

The sequences that are to be fed form a prefix tree. A *group* is a part of it whose common beginning (its
prefix) is computed once and kept; the rest is laid into *rows*, in which every node of the tree stands once:
a token sees the prefix, its own ancestors in the row, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from pytest_kbrel.models.tokens import Ids, common_prefix
from pytest_kbrel.records import record

# A prefix of its own is a forward pass of its own: it must spare more than so many times its length.
_WORTH = 2


@record
class Asked:
    """Token ids to be fed; what is wanted are the logits behind each of them from place ``start`` on."""

    ids: Ids
    start: int


@record
class Row:
    """Tokens behind a prefix. ``parents[i]`` is the place in the row of token i's parent, -1: the prefix.

    They lie branch by branch: right behind a token all that descends from it.
    ``depths`` are positions in the sequence, the first behind the prefix being its length. ``places`` has,
    for each sequence that ends in this row, its number and the places of the tokens whose logits it wants.
    """

    tokens: Ids
    parents: tuple[int, ...]
    depths: tuple[int, ...]
    places: tuple[tuple[int, tuple[int, ...]], ...]


@record
class Group:
    """Rows behind one prefix."""

    prefix: Ids
    rows: tuple[Row, ...]


def plan(sequences: Sequence[Asked], row_length: int, least_rows: int = 0) -> tuple[Group, ...]:
    """Return how to feed ``sequences`` in rows of at most ``row_length`` tokens, longer ones where need be.

    With a ``row_length`` of 0 no row branches: each is one sequence, with others that it continues. Every
    sequence must want the logits behind at least one of its tokens. No part of a group gets a prefix of its
    own for fewer than ``least_rows``.
    """
    order = sorted(range(len(sequences)), key=lambda number: sequences[number].ids)
    shared = [common_prefix(sequences[a].ids, sequences[b].ids) for a, b in pairwise(order)]
    return tuple(_groups(sequences, order, shared, row_length, least_rows))


def distinct_tokens(sequences: Iterable[Ids]) -> int:
    """Return the number of nodes of the prefix tree of ``sequences``: the least that can be fed."""
    return distinct_in_order(sorted(sequences))


def distinct_in_order(sequences: Iterable[Ids]) -> int:
    """Return the same of ``sequences`` that come sorted: none but the last is held."""
    found, before = 0, Ids()
    for ids in sequences:
        found += len(ids) - common_prefix(before, ids)
        before = ids
    return found


def _groups(
    sequences: Sequence[Asked], order: list[int], shared: list[int], row_length: int, least_rows: int
) -> list[Group]:
    """Split sorted sequences where a longer prefix of fewer of them spares enough."""
    done: list[Group] = []
    # (from, to) in ``order``, and the length of the prefix that the part already has in common.
    waiting = [(0, len(order))] if order else []
    while waiting:
        low, high = waiting.pop()
        length = _prefix_length(sequences, order, shared, low, high)
        parts = _parts(shared, low, high, length)
        worthy = {
            part
            for part in parts
            if _spared(sequences, order, shared, part, length, row_length) >= max(least_rows, 1)
        }
        left = [number for part in parts if part not in worthy for number in range(part[0], part[1])]
        waiting += sorted(worthy, reverse=True)
        if left:
            numbers = [order[place] for place in left]
            rows = _rows(sequences, numbers, length, row_length)
            whole = _rows(sequences, numbers, 0, row_length) if len(rows) <= _WORTH else ()
            # Too few rows for a forward pass of the prefix alone: they hold it themselves, unless that makes
            # many rows of them.
            if whole and _fed(whole) <= _WORTH * length + _fed(rows):
                length, rows = 0, whole
            done.append(Group(prefix=sequences[numbers[0]].ids[:length], rows=rows))
    return done


def _fed(rows: Sequence[Row]) -> int:
    return sum(len(row.tokens) for row in rows)


def _prefix_length(
    sequences: Sequence[Asked], order: list[int], shared: list[int], low: int, high: int
) -> int:
    """Return the length of what the part has in common, ending before any token whose logits are wanted."""
    common = min(shared[low : high - 1], default=len(sequences[order[low]].ids))
    return min(common, min(sequences[order[place]].start for place in range(low, high)))


def _parts(shared: list[int], low: int, high: int, length: int) -> list[tuple[int, int]]:
    """Return the stretches of the part that have more than ``length`` tokens in common."""
    cuts = [place + 1 for place in range(low, high - 1) if shared[place] <= length]
    return list(pairwise([low, *cuts, high]))


def _spared(
    sequences: Sequence[Asked],
    order: list[int],
    shared: list[int],
    part: tuple[int, int],
    length: int,
    row_length: int,
) -> int:
    """Return in how many rows a longer prefix for ``part`` would spare tokens; 0 if that is too few."""
    low, high = part
    longer = _prefix_length(sequences, order, shared, low, high) - length
    nodes = sum(len(sequences[order[place]].ids) - length for place in range(low, high))
    nodes -= sum(shared[place] - length for place in range(low, high - 1))
    rows = (nodes - longer) // row_length if row_length else high - low
    # Within a row the common beginning stands once already.
    return rows if longer > 0 and (rows - 1) * longer >= _WORTH * (longer + length) else 0


def _rows(
    sequences: Sequence[Asked], numbers: Sequence[int], prefix: int, row_length: int
) -> tuple[Row, ...]:
    rows: list[Row] = []
    row = _Filling(prefix)
    for number in numbers:
        ids = sequences[number].ids
        if row.tokens and not (row.fits(ids, row_length) if row_length else row.is_continued_by(ids)):
            rows.append(row.finished())
            row = _Filling(prefix)
        row.add(number, sequences[number])
    rows.append(row.finished())
    return tuple(rows)


class _Filling:
    """A row while sorted sequences are laid into it: each shares most with the one before it."""

    def __init__(self, prefix: int) -> None:
        self.tokens: list[int] = []
        self._prefix = prefix
        self._parents: list[int] = []
        self._depths: list[int] = []
        self._places: list[tuple[int, tuple[int, ...]]] = []
        self._last: Ids = ()
        self._path: list[int] = []

    def fits(self, ids: Ids, row_length: int) -> bool:
        """Tell whether the row keeps its length with ``ids`` in it."""
        return len(self.tokens) + len(ids) - max(self._prefix, common_prefix(self._last, ids)) <= row_length

    def is_continued_by(self, ids: Ids) -> bool:
        """Tell whether ``ids`` begin with the sequence that is in the row."""
        return ids[: len(self._last)] == self._last

    def add(self, number: int, sequence: Asked) -> None:
        ids = sequence.ids
        known = max(self._prefix, common_prefix(self._last, ids)) - self._prefix
        del self._path[known:]
        for depth in range(self._prefix + known, len(ids)):
            self._parents.append(self._path[-1] if self._path else -1)
            self._depths.append(depth)
            self._path.append(len(self.tokens))
            self.tokens.append(ids[depth])
        self._places.append((number, tuple(self._path[sequence.start - self._prefix :])))
        self._last = ids

    def finished(self) -> Row:
        return Row(
            tokens=tuple(self.tokens),
            parents=tuple(self._parents),
            depths=tuple(self._depths),
            places=tuple(self._places),
        )
