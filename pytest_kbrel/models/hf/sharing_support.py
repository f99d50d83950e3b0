"""Which way of sharing a loaded checkpoint allows: tried on it, not looked up by its name.

Some architectures take a mask of any shape, some only prefixes, some nothing, and those that do not are
wrong without a word. So every way is held against plain batches once, on the checkpoint itself.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from pytest_kbrel.models.hf.logprobs import Probabilities
from pytest_kbrel.models.tokens import Pair

Rung = Literal["packed", "prefix", "plain"]
RUNGS: tuple[Rung, ...] = ("packed", "prefix", "plain")
Way = Callable[[Sequence[Pair]], list[Probabilities]]

# In tokens a batch. What is right for a checkpoint must not hang on how much memory there is.
TRIAL = 4096
# In nats a token. Batches of another shape differ by less; a mask that is not obeyed by ten times as much.
_TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-3}
_HALF_TOLERANCE = 0.08
_PREFIX, _CONTEXTS, _ANSWERS = 6, 4, 2


def highest_rung(model: Any, ways: dict[Rung, Way], longest: int | None) -> Rung:
    """Return the first of ``ways`` whose numbers are those of ``ways["plain"]``.

    ``longest`` is the number of tokens the model takes, ``None`` where it sets no limit. Where other
    contexts would not change the numbers clearly, nothing can be told, and nothing is shared.
    """
    pairs, others = sample_pairs(model, longest)
    try:
        plain, moved = ways["plain"](pairs), ways["plain"](others)
    except Exception:
        return "plain"
    if not _furthest(plain, moved) > 10 * _tolerance(model):
        return "plain"
    for rung in (rung for rung in RUNGS[:-1] if rung in ways):
        try:
            found = ways[rung](pairs)
        # Whatever an architecture raises here, it says that this way is closed.
        except Exception:
            continue
        if agree(model, plain, found):
            return rung
    return "plain"


def agree(model: Any, one: Sequence[Probabilities], other: Sequence[Probabilities]) -> bool:
    """Tell whether two ways of computing the same probabilities differ by no more than rounding."""
    return _furthest(one, other) <= _tolerance(model)


def _tolerance(model: Any) -> float:
    return _TOLERANCE.get(model.dtype, _HALF_TOLERANCE)


def sample_pairs(model: Any, longest: int | None) -> tuple[list[Pair], list[Pair]]:
    """Return pairs that share a prefix and contexts, and the same answers after another prefix."""
    draw = random.Random(0)
    vocabulary = int(model.get_input_embeddings().weight.shape[0])

    def tokens(count: int) -> tuple[int, ...]:
        return tuple(draw.randrange(vocabulary) for _ in range(count))

    room = 64 if longest is None else longest
    prefix, other = tokens(min(_PREFIX, room // 4)), tokens(min(_PREFIX, room // 4))
    found: list[Pair] = []
    moved: list[Pair] = []
    for number in range(_CONTEXTS):
        middle = tokens(1 + number % 3)
        for length in range(1, _ANSWERS + 1):
            targets = tokens(length)
            for start, into in ((prefix, found), (other, moved)):
                context = (*start, *middle)
                into.append(Pair(prompt=context, context=context, targets=targets))
    return found, moved


def _furthest(one: Sequence[Probabilities], other: Sequence[Probabilities]) -> float:
    distances = [
        abs(math.log(a) - math.log(b)) if a > 0 and b > 0 else 0.0 if a == b else math.inf
        for left, right in zip(one, other, strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    return math.nan if any(d != d for d in distances) else max(distances)
