"""Prefix sharing: lays token sequences into rows so that common beginnings are computed once.

The sequences form a prefix tree. A *group* is a part of it whose common beginning (its prefix) is computed
once and kept; the rest is laid into *rows*, in which every node of the tree stands once: a token sees the
prefix, its own ancestors in the row, and nothing else. This module is arithmetic on token ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from pytest_kbrel.models.tokens import Ids, common_prefix
from pytest_kbrel.records import record

# A prefix of its own is a forward pass of its own: it must spare more than so many times its length.
_WORTH = 2


@record
class TokenSequence:
    """Token ids to be fed; the logits behind each of them from index ``start`` on are wanted."""

    ids: Ids
    start: int


class Row:
    """Tokens behind a prefix. ``parents[i]`` is the index in the row of token i's parent, -1 for the prefix.

    They lie branch by branch: a token is followed by all its descendants. ``depths`` are positions in the
    sequence, the first behind the prefix being its length. ``outputs`` has, for each sequence that ends in
    this row, its number and the indices of the tokens whose logits it wants. Sequences are added in order:
    each shares most with the one before it.
    """

    def __init__(self, prefix: int) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
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
        del self._path[shared:]
        for depth in range(self._prefix + shared, len(ids)):
            self.parents.append(self._path[-1] if self._path else -1)
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
    sequences: Sequence[TokenSequence], row_length: int, least_rows: int = 0
) -> tuple[Group, ...]:
    """Return how to feed ``sequences`` in rows of at most ``row_length`` tokens, longer ones where need be.

    With a ``row_length`` of 0 no row branches: each is one sequence, with others that it continues. Every
    sequence must want the logits behind at least one of its tokens. No part of a group gets a prefix of its
    own for fewer than ``least_rows``.
    """
    order = sorted(range(len(sequences)), key=lambda number: sequences[number].ids)
    ordered = [sequences[number] for number in order]
    shared = [common_prefix(one.ids, other.ids) for one, other in pairwise(ordered)]
    groups: list[Group] = []
    # (from, to) in ``order``.
    waiting = [(0, len(order))] if order else []
    while waiting:
        low, high = waiting.pop()
        length = _prefix_length(ordered, shared, low, high)
        cuts = [index + 1 for index in range(low, high - 1) if shared[index] <= length]
        # Those that have more than ``length`` tokens in common.
        parts = list(pairwise([low, *cuts, high]))
        worthy = {
            part
            for part in parts
            if _spared_rows(ordered, shared, part, length, row_length)
            >= max(least_rows, 1)
        }
        waiting += sorted(worthy, reverse=True)
        numbers = [
            order[index]
            for part in parts
            if part not in worthy
            for index in range(*part)
        ]
        if numbers:
            rows = _rows(sequences, numbers, length, row_length)
            whole = (
                _rows(sequences, numbers, 0, row_length) if len(rows) <= _WORTH else ()
            )
            # Too few rows for a forward pass of the prefix alone: they hold it themselves, unless that makes
            # many rows of them.
            if whole and tokens_in(whole) <= _WORTH * length + tokens_in(rows):
                length, rows = 0, whole
            groups.append(Group(prefix=sequences[numbers[0]].ids[:length], rows=rows))
    return tuple(groups)


def tokens_in(rows: Sequence[Row]) -> int:
    """Return the number of tokens in rows."""
    return sum(len(row.tokens) for row in rows)


def _prefix_length(
    ordered: Sequence[TokenSequence], shared: Sequence[int], low: int, high: int
) -> int:
    """Return the length of what the part has in common, ending before any token whose logits are wanted."""
    common = min(shared[low : high - 1], default=len(ordered[low].ids))
    return min(common, min(sequence.start for sequence in ordered[low:high]))


def _spared_rows(
    ordered: Sequence[TokenSequence],
    shared: Sequence[int],
    part: tuple[int, int],
    length: int,
    row_length: int,
) -> int:
    """Return in how many rows a longer prefix for ``part`` would spare tokens; 0 if that is too few."""
    low, high = part
    longer = _prefix_length(ordered, shared, low, high) - length
    nodes = sum(len(sequence.ids) - length for sequence in ordered[low:high])
    nodes -= sum(count - length for count in shared[low : high - 1])
    rows = (nodes - longer) // row_length if row_length else high - low
    # Within a row the common beginning stands once already.
    return (
        rows if longer > 0 and (rows - 1) * longer >= _WORTH * (longer + length) else 0
    )


def _rows(
    sequences: Sequence[TokenSequence],
    numbers: Sequence[int],
    prefix: int,
    row_length: int,
) -> tuple[Row, ...]:
    rows = [Row(prefix)]
    for number in numbers:
        ids = sequences[number].ids
        if rows[-1].tokens and not rows[-1].fits(ids, row_length):
            rows.append(Row(prefix))
        rows[-1].add(number, sequences[number])
    return tuple(rows)
