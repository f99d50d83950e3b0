"""Batch planning: which sequences go through a model together. No weights are needed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from pytest_kbrel.models.batching import Batcher, Batches
from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE
from pytest_kbrel.models.hf.prefix_tree import (
    Group,
    Row,
    TokenSequence,
    group_by_prefix,
)
from pytest_kbrel.models.hf.sharing import SharingMode
from pytest_kbrel.models.tokens import Ids, Pair, common_prefix
from pytest_kbrel.records import Failed, GenerateRequest, record

R = TypeVar("R")

# In tokens. A longer row repeats fewer shared beginnings, and attends to more that it does not need.
ROW_LENGTH = 128
# Reading a slot once more costs so many times what seeing one in vain does; measured on a CPU.
_READING = 9
_MOST_PER_ROW = 32


@record
class Prompt:
    """A prompt's token ids and its request."""

    ids: Ids
    request: GenerateRequest

    @property
    def length(self) -> int:
        """The most tokens that prompt and continuation can have."""
        return len(self.ids) + self.request.max_new_tokens

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what prompts must have in common to be answered in one plain batch."""
        r = self.request
        return (len(self.ids), r.max_new_tokens, r.num_beams, r.steps, r.stop, r.top_k)


def prompt_groups(
    prompts: Sequence[Prompt],
    budget: int,
    mode: SharingMode = "prefix",
    longest: int | None = None,
) -> tuple[Group, ...]:
    """Return the groups of prompts that share a beginning: one decode loop each.

    ``budget`` is in tokens a batch, ``longest`` how many tokens the model takes, ``None`` for no limit.
    """
    sequences = [
        TokenSequence(ids=prompt.ids, start=len(prompt.ids) - 1) for prompt in prompts
    ]
    farthest = max(prompt.length for prompt in prompts)
    if mode == "packed":
        shared = shared_length([prompt.ids for prompt in prompts])
        limits = batch_limits(
            shared,
            farthest - shared,
            budget,
            longest=longest,
            vocabulary=1,
            packed=True,
        )
        room = budget if longest is None else min(budget, longest)
        # As many tokens as a batch may have texts: a row must not hold more of these.
        return group_by_prefix(
            sequences, max(1, min(ROW_LENGTH, room - farthest, limits.texts))
        )
    # A loop of its own for fewer than a batch would leave the model with little to do at a time.
    return group_by_prefix(sequences, 0, least_rows=budget // farthest)


def distinct_prompts(prompts: Sequence[Prompt]) -> dict[Prompt, list[int]]:
    """Return the distinct prompts by token ids and settings, each with its positions in ``prompts``."""
    positions: dict[Prompt, list[int]] = {}
    for number, prompt in enumerate(prompts):
        bare = dataclasses.replace(
            prompt, request=dataclasses.replace(prompt.request, prompt="")
        )
        positions.setdefault(bare, []).append(number)
    return positions


def shared_length(ids: Sequence[Ids]) -> int:
    """Return how many tokens all prompts begin with; the last token of a prompt is never shared."""
    return min(common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)


def fits_decode_loop(prompt: Prompt, window: int | None) -> bool:
    """Return True if the decode loop may continue a prompt; ``window`` is that of :func:`window_of`."""
    return prompt.request.num_beams == 1 and (window is None or prompt.length < window)


@record
class BatchLimits:
    """Size of a decode batch: ``texts`` at most, ``per_row`` of them in one row, ``budget`` slots in all.

    ``longest`` is the number of slots that a row may have, ``None`` for any.
    """

    per_row: int
    texts: int
    budget: int
    longest: int | None = None


def batch_limits(
    before: int,
    own: int,
    budget: int,
    *,
    longest: int | None,
    vocabulary: int,
    packed: bool,
) -> BatchLimits:
    """Return the limits of batches behind a prefix of ``before`` tokens, of texts of at most ``own`` more.

    The more texts share a row, the fewer copies of the prefix there are, and the more slots each passes over.
    """
    per_row = 1
    if packed:
        room = (budget if longest is None else min(budget, longest)) - before
        best = round(math.sqrt(_READING * before / own))
        per_row = max(1, min(best, _MOST_PER_ROW, room // own))
    rows = max(1, budget // (before + per_row * own))
    texts = max(1, min(per_row * rows, LOGITS_AT_ONCE // vocabulary))
    return BatchLimits(
        per_row=per_row, texts=texts, budget=budget, longest=longest if packed else None
    )


def sequences_of(pairs: Sequence[Pair]) -> list[TokenSequence]:
    """Return what must be fed to score ``pairs``: the last token of an answer is never fed."""
    return [
        TokenSequence(
            ids=(*pair.context, *pair.targets[:-1]), start=len(pair.context) - 1
        )
        for pair in pairs
    ]


class ScoringBatches:
    """Batches of pairs to be scored. ``vocabulary`` is the number of logits of a token.

    ``window`` is up to how many tokens a sequence may share anything, ``None`` for any number.
    """

    def __init__(
        self, batcher: Batcher, *, vocabulary: int, window: int | None
    ) -> None:
        self._batcher = batcher
        self._vocabulary, self._window = vocabulary, window

    def shareable(self, pairs: Sequence[Pair]) -> list[int]:
        """Return the indices of those pairs that may share what they have in common."""
        return [
            n
            for n, pair in enumerate(pairs)
            if self._window is None or _length(pair) <= self._window
        ]

    def groups(self, pairs: Sequence[Pair], mode: SharingMode) -> tuple[Group, ...]:
        """Return the groups of pairs that share a prefix."""
        row_length = min(ROW_LENGTH, self._batcher.budget) if mode == "packed" else 0
        return group_by_prefix(sequences_of(pairs), row_length)

    def of_rows(
        self, group: Group, answer: Callable[[Sequence[Row]], list[R | Failed]]
    ) -> Iterator[list[R | Failed]]:
        """Yield the results of ``answer`` for the rows of a group, batch by batch."""

        def cost(rows: Sequence[Row]) -> int:
            # Each row has its own copy of the prefix's keys and values.
            tokens = len(rows) * (
                len(group.prefix) + max(len(row.tokens) for row in rows)
            )
            logits = self._vocabulary * sum(
                len(indices) for row in rows for _, indices in row.outputs
            )
            return self._within(tokens, logits, len(rows))

        longest_first = sorted(group.rows, key=lambda row: -len(row.tokens))
        for batch in self._batcher.ready(longest_first, cost, answer):
            yield [result for _, result in batch]

    def of_pairs(
        self,
        pairs: Sequence[Pair],
        indices: Iterable[int],
        answer: Callable[[Sequence[Pair]], list[R | Failed]],
    ) -> Batches[R]:
        """Yield the results of ``answer`` for the pairs at ``indices``, fed whole, each with its index."""

        def cost(batch: Sequence[Pair]) -> int:
            lengths = {_length(pair) for pair in batch}
            # Beyond a window padding is not seen in vain: with some models it moves the numbers.
            if (
                self._window is not None
                and len(lengths) > 1
                and max(lengths) > self._window
            ):
                return self._batcher.budget + 1
            logits = self._vocabulary * sum(len(pair.targets) for pair in batch)
            return self._within(len(batch) * max(lengths), logits, len(batch))

        # Longest first, and side by side what an encoder can read once.
        order = sorted(
            indices,
            key=lambda n: (
                -len(pairs[n].context),
                pairs[n].context,
                -_length(pairs[n]),
            ),
        )
        return self._batcher.ready(pairs, cost, answer, order)

    def _within(self, tokens: int, logits: int, count: int) -> int:
        if count == 1 or logits <= LOGITS_AT_ONCE:
            return tokens
        return max(tokens, self._batcher.budget + 1)


def _length(pair: Pair) -> int:
    return len(pair.context) + len(pair.lead) + len(pair.targets)
