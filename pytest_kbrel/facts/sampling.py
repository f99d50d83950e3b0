"""A share of the facts, the same on every machine and in every process."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from pytest_kbrel.records import Fact


def sample(facts: Sequence[Fact], limit: int | float | None, seed: int) -> tuple[Fact, ...]:
    """Return ``limit`` of the facts, drawn by seed and fact id, in the order in which they came.

    A whole number is a number of facts, a float in (0, 1] a share of them, rounded up; ``None`` means all.
    Whether a fact is in depends on no other fact's text or place, and a larger limit keeps all that a smaller
    one has. Raises ``ValueError`` on any other limit.
    """
    if limit is None:
        return tuple(facts)
    count = _count(limit, len(facts))
    if count >= len(facts):
        return tuple(facts)
    ranks = [hashlib.sha256(f"{seed}\0{fact.id}".encode()).digest() for fact in facts]
    last = sorted(ranks)[count - 1]
    return tuple(fact for fact, rank in zip(facts, ranks, strict=True) if rank <= last)


def _count(limit: int | float, total: int) -> int:
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1:
        return limit
    if isinstance(limit, float) and 0 < limit <= 1:
        # 0.07 * 100 is 7.000000000000001 in binary and must not become 8.
        return max(1, math.ceil(limit * total - 1e-9))
    raise ValueError(f"a limit is a whole number from 1 or a share above 0 up to 1.0, found {limit!r}")
