"""Corrections for the number of comparisons.

Šidák's is made over cases: it needs nothing but their number, so an item can decide by it before the other
p-values are known. Inside a case, Simes' test combines its gates and Hommel's procedure names those that
fail. The p-values adjusted after Holm and after Benjamini and Hochberg are reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

from pytest_kbrel.stats.estimates import FAMILY_LEVEL


def sidak(comparisons: int) -> float:
    """Return the level of each of ``comparisons`` tests that keeps that of the family (Šidák 1967)."""
    return -math.expm1(math.log1p(-FAMILY_LEVEL) / max(comparisons, 1))


def sidak_p(p: float, comparisons: int) -> float:
    """Return ``p`` adjusted for ``comparisons`` tests: below ``family`` where p is below :func:`sidak`'s."""
    return 1.0 if p >= 1 else -math.expm1(max(comparisons, 1) * math.log1p(-p))


def holm(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the p-values adjusted after Holm (1979), in the order given: they keep the family-wise rate.

    ``None`` (no test was possible) stays ``None`` and does not count as a comparison.
    """
    return _stepped(ps, lambda n, at: n - at, max)


def benjamini_hochberg(ps: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return the p-values adjusted after Benjamini and Hochberg (1995): they keep the false discovery rate.

    Order and ``None`` as in :func:`holm`.
    """
    return _stepped(ps, lambda n, at: n / (n - at), min)


def _stepped(
    ps: Sequence[float | None],
    factor: Callable[[int, int], float],
    keep: Callable[[float, float], float],
) -> tuple[float | None, ...]:
    """Return p-values times ``factor``, the least first where the largest so far is kept, else last."""
    tested = [(p, at) for at, p in enumerate(ps) if p is not None]
    tested.sort(reverse=keep is min)
    raised = (min(factor(len(tested), n) * p, 1.0) for n, (p, _) in enumerate(tested))
    by_index = dict(
        zip((at for _, at in tested), accumulate(raised, keep), strict=True)
    )
    return tuple(map(by_index.get, range(len(ps))))


def simes(ps: Sequence[float]) -> float:
    """Return the p-value of "none of these hypotheses is false" (Simes 1986): min over j of k p_(j) / j.

    It holds where the tests are positively dependent (Sarkar 1998); 1 without any p-value.
    """
    return min(
        (len(ps) * p / rank for rank, p in enumerate(sorted(ps), start=1)), default=1.0
    )


def hommel(ps: Sequence[float]) -> tuple[float, ...]:
    """Return the p-values adjusted after Hommel (1988), in the order given: they keep the family-wise rate.

    A hypothesis is rejected if every set of hypotheses that it is in is rejected by :func:`simes`; of the
    sets of one size, the one with the largest other p-values decides.
    """
    adjusted = []
    for index, p in enumerate(ps):
        others = sorted([*ps[:index], *ps[index + 1 :]], reverse=True)
        adjusted.append(max(simes([p, *others[:size]]) for size in range(len(ps))))
    return tuple(adjusted)
