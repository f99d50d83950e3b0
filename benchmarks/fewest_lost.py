"""The fewest lost facts at which a gate on a rate fails, by how many are gained."""

from __future__ import annotations

import functools

import numpy as np

from pytest_kbrel.stats.estimates import Array
from pytest_kbrel.stats.paired_rates import drop_p


@functools.lru_cache(maxsize=1024)
def _tables_of_fewest(n: int, alpha: float, allowed: float) -> list[int]:
    return []


def fewest_lost(n: int, most: int, alpha: float, allowed: float) -> Array:
    """Return the fewest lost facts that :func:`drop_p` finds at ``alpha``, by facts gained, 0 to ``most``.

    It is one more than all facts where none are enough.
    """
    table = _tables_of_fewest(n, alpha, allowed)
    for gained in range(len(table), most + 1):
        # It rises with the facts gained, by one or two each.
        lost = table[-1] if table else 0
        while lost <= n - gained and drop_p(n, lost, gained, allowed) >= alpha:
            lost += 1
        table.append(lost)
    return np.array(table[: most + 1], dtype=float)
