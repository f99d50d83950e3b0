"""Prompts that are to be continued, and which of them share what: engine and plan take it from here."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from pytest_kbrel.models.hf.batches import ROW
from pytest_kbrel.models.hf.decode_loop import size_of
from pytest_kbrel.models.hf.sharing_support import Rung
from pytest_kbrel.models.prefix_tree import Asked, Group, plan
from pytest_kbrel.models.tokens import Ids, common_prefix
from pytest_kbrel.records import GenerateRequest, record


@record
class Prompt:
    """A prompt's token ids and what is asked about it."""

    ids: Ids
    request: GenerateRequest

    @property
    def length(self) -> int:
        """The most tokens that prompt and continuation can have."""
        return len(self.ids) + self.request.max_new_tokens

    @property
    def kind(self) -> tuple[object, ...]:
        """What prompts must share to be answered in one plain batch."""
        r = self.request
        return (len(self.ids), r.max_new_tokens, r.num_beams, r.steps, r.stop)


def groups_of(
    prompts: Sequence[Prompt], budget: int, rung: Rung = "prefix", longest: int | None = None
) -> tuple[Group, ...]:
    """Return which prompts share a beginning, one loop a group; ``budget`` is in tokens a batch.

    ``longest`` is how many tokens the model takes, ``None`` where it sets no limit.
    """
    asked = [Asked(ids=prompt.ids, start=len(prompt.ids) - 1) for prompt in prompts]
    farthest = max(prompt.length for prompt in prompts)
    if rung == "packed":
        ids = [prompt.ids for prompt in prompts]
        shared = shared_of(ids)
        size = size_of(shared, farthest - shared, budget, longest=longest, vocabulary=1, packed=True)
        room = budget if longest is None else min(budget, longest)
        # As many tokens as a batch may have texts: a row must not hold more of these.
        return plan(asked, max(1, min(ROW, room - farthest, size.most)))
    # A loop of its own for fewer than a batch would leave the model with little to do at a time.
    return plan(asked, 0, least_rows=budget // farthest)


def alike_of(prompts: Sequence[Prompt]) -> dict[Prompt, list[int]]:
    """Return the different prompts by their token ids, and the places of each."""
    alike: dict[Prompt, list[int]] = {}
    for number, prompt in enumerate(prompts):
        bare = dataclasses.replace(prompt, request=dataclasses.replace(prompt.request, prompt=""))
        alike.setdefault(bare, []).append(number)
    return alike


def shared_of(ids: Sequence[Ids]) -> int:
    """Return how many tokens all prompts begin with, and none ends with."""
    return min(common_prefix(min(ids), max(ids)), min(map(len, ids)) - 1)


def may_loop(prompt: Prompt, window: int | None) -> bool:
    """Tell whether a prompt may be continued in the loop; ``window`` as :func:`window_of` tells it."""
    return prompt.request.num_beams == 1 and (window is None or prompt.length < window)
