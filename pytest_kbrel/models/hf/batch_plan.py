"""Batch planning: which sequences go through a model together. No weights are needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

from pytest_kbrel.models.hf.lm_head import LOGITS_AT_ONCE
from pytest_kbrel.models.hf.prefix_tree import (
    Group,
    TokenSequence,
    group_by_prefix,
)
from pytest_kbrel.models.hf.sharing import SharingMode
from pytest_kbrel.models.tokens import Ids, Pair, common_prefix
from pytest_kbrel.records import GenerateRequest, record

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


def shared_length(ids: Sequence[Ids]) -> int:
    """Return how many tokens all prompts begin with; the last token of a prompt is never shared."""
    return min(common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)


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
