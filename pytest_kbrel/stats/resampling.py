"""The bootstrap over facts: what the faster intervals are checked against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_kbrel.stats.estimates import LEVEL
from pytest_kbrel.stats.samples import Sample

if TYPE_CHECKING:
    import numpy as np

    from pytest_kbrel.stats.samples import Array, Statistic


def bootstrap(
    terms: Sequence[tuple[float, Sample]],
    statistic: Statistic,
    *,
    seed: int,
    draws: int = 2000,
    level: float = LEVEL,
) -> tuple[float, float]:
    """Return the percentile interval (Efron 1979) of the weighted sum of ``statistic`` over ``terms``.

    Terms (weight, sample) as in :func:`pytest_kbrel.stats.jackknife`. Facts are drawn with replacement, in
    all terms and cases the same ones; in each case by itself where no fact occurs in several. Draws in which
    the statistic is undefined are left out.
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    counts = _counts(terms[0][1], draws, rng)
    drawn = np.zeros(draws)
    for weight, sample in terms:
        parts = [(n @ values, n.sum(axis=1)) for n, values in zip(counts, sample.values, strict=True)]
        drawn += weight * np.asarray(statistic(parts))
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _counts(sample: Sample, draws: int, rng: np.random.Generator) -> list[Array]:
    """Return how often each row of each case is drawn, shape (draws, rows)."""
    import numpy as np

    ids = [fact for facts in sample.facts for fact in facts]
    if len(set(ids)) == len(ids):
        return [
            rng.multinomial(len(facts), np.full(len(facts), 1 / len(facts)), size=draws).astype(float)
            for facts in sample.facts
        ]
    place = {fact: number for number, fact in enumerate(dict.fromkeys(ids))}
    times = rng.multinomial(len(place), np.full(len(place), 1 / len(place)), size=draws).astype(float)
    return [times[:, [place[fact] for fact in facts]] for facts in sample.facts]
