"""Which sequences go through a model together when they are scored: engine and plan take it from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_kbrel.models.batching import Batcher
from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE
from pytest_kbrel.models.hf.packing import asked_of
from pytest_kbrel.models.hf.sharing_support import Rung
from pytest_kbrel.models.prefix_tree import Group, Row, plan
from pytest_kbrel.models.tokens import Pair
from pytest_kbrel.records import Failed

R = TypeVar("R")

# In tokens. A longer row repeats fewer shared beginnings, and attends to more that it does not need.
ROW = 128


class Batches:
    """Lays pairs into batches. ``vocabulary`` is how many logits a token has.

    ``window`` is up to how many tokens a sequence may share anything, ``None`` for any number.
    """

    def __init__(self, batcher: Batcher, *, vocabulary: int, window: int | None) -> None:
        self._batcher = batcher
        self._vocabulary, self._window = vocabulary, window

    def shareable(self, pairs: Sequence[Pair]) -> list[int]:
        """Return the places of those pairs that may share what they have in common."""
        return [n for n, pair in enumerate(pairs) if self._window is None or length_of(pair) <= self._window]

    def groups(self, pairs: Sequence[Pair], rung: Rung) -> tuple[Group, ...]:
        """Return what is shared with what."""
        row_length = min(ROW, self._batcher.budget) if rung == "packed" else 0
        return plan(asked_of(pairs), row_length)

    def of_rows(
        self, group: Group, answer: Callable[[Sequence[Row]], list[R | Failed]]
    ) -> Iterator[list[R | Failed]]:
        """Yield what ``answer`` makes of the rows of a group, batch by batch."""

        def cost(rows: Sequence[Row]) -> int:
            # Each row has its own copy of the prefix's keys and values.
            tokens = len(rows) * (len(group.prefix) + max(len(row.tokens) for row in rows))
            logits = self._vocabulary * sum(len(places) for row in rows for _, places in row.places)
            return self._within(tokens, logits, len(rows))

        longest_first = sorted(group.rows, key=lambda row: -len(row.tokens))
        yield from self._batcher.ready(longest_first, cost, answer)

    def of_pairs(
        self,
        pairs: Sequence[Pair],
        places: Iterable[int],
        answer: Callable[[Sequence[Pair]], list[R | Failed]],
    ) -> Iterator[list[tuple[int, R | Failed]]]:
        """Yield what ``answer`` makes of the pairs at ``places``, fed whole: each place with its answer."""

        def cost(some: Sequence[Pair]) -> int:
            lengths = {length_of(one) for one in some}
            # Beyond a window padding is not seen in vain: with some models it moves the numbers.
            if self._window is not None and len(lengths) > 1 and max(lengths) > self._window:
                return self._batcher.budget + 1
            tokens = len(some) * max(lengths)
            return self._within(tokens, self._vocabulary * sum(len(one.targets) for one in some), len(some))

        # Longest first, and what an encoder can read once side by side.
        order = sorted(places, key=lambda n: (-len(pairs[n].context), pairs[n].context, -length_of(pairs[n])))
        for answers in self._batcher.ready([pairs[n] for n in order], cost, answer):
            yield list(zip(order, answers, strict=False))
            del order[: len(answers)]

    def _within(self, tokens: int, logits: int, count: int) -> int:
        if count == 1 or logits <= LOGITS_AT_ONCE:
            return tokens
        return max(tokens, self._batcher.budget + 1)


def length_of(pair: Pair) -> int:
    """Return how many tokens a pair has in all."""
    return len(pair.context) + len(pair.lead) + len(pair.targets)
