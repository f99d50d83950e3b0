"""Differences on the same facts, paired fact by fact.

Rates have methods of their own (:mod:`pytest_kbrel.stats.paired_rates`). Everything else is judged by what
each fact contributes to the difference: the sign-flip test where few facts changed, the jackknife's t test
where many did, and an interval that two imagined facts keep from being too short.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pytest_kbrel.stats.estimates import (
    FAMILY_LEVEL,
    FLAT,
    LEVEL,
    POWER,
    ROUNDING,
    SIGN_TEST,
    TOO_FEW,
    UNCHANGED,
    Difference,
    Estimate,
    Flips,
)
from pytest_kbrel.stats.flips import MOST_FLIPS, sign_flip
from pytest_kbrel.stats.intervals import jackknife
from pytest_kbrel.stats.paired_rates import mcnemar, rate_difference, rate_mde, rate_recovery
from pytest_kbrel.stats.samples import Sample, alone

if TYPE_CHECKING:
    from pytest_kbrel.stats.samples import Array, Statistic

Better = Literal["higher", "lower"]


def paired_difference(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    *,
    better: Better,
    alpha: float = FAMILY_LEVEL,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    rate: bool = False,
    facts: int | None = None,
) -> Difference:
    """Compare two samples of the same facts in the same order; ``alpha`` is the level of this comparison.

    ``bounds`` are the statistic's own. ``rate`` says that it is a mean of zeros and ones; where each fact has
    one of them before and after, the counts decide (:func:`flips_of`). ``facts`` is how many facts the
    statistic is over, where not over all.

    p is 0.5 where nothing changed. The interval then has the width that no change among so many facts allows,
    and no ends where a single fact may move the figure without bound.
    """
    flips = flips_of(candidate, baseline, statistic) if rate else None
    if flips is not None:
        return _of_rates(flips, candidate.n, better, alpha)
    reach = bounds[1] - bounds[0]
    delta = jackknife([(1.0, candidate), (-1.0, baseline)], statistic)
    if delta.value is None or delta.note == TOO_FEW:
        return Difference(estimate=delta)
    moved = _contributions(candidate, baseline, statistic)
    if not len(moved):
        delta = dataclasses.replace(delta, value=0.0, se=0.0, note=UNCHANGED)
    if delta.se is None:
        return Difference(estimate=delta)
    estimate = _widened(delta, moved, reach, facts or delta.n)
    p = _p(delta, moved, better)
    spread = estimate if len(moved) <= MOST_FLIPS else delta
    return Difference(estimate=estimate, p=p, mde=_mde(spread, alpha))


def paired_recovery(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    share: float,
    *,
    better: Better,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    rate: bool = False,
    facts: int | None = None,
) -> Estimate:
    """Estimate how far the candidate stands above ``share`` of the baseline.

    That is candidate - share * baseline where higher is better, baseline - share * candidate where lower is:
    at least 0 when the candidate recovers that share. Arguments as in :func:`paired_difference`.
    """
    flips = flips_of(candidate, baseline, statistic) if rate else None
    if flips is not None:
        return rate_recovery(flips if better == "higher" else flips.mirrored, share)
    after, before = (1.0, -share) if better == "higher" else (-share, 1.0)
    above = jackknife([(after, candidate), (before, baseline)], statistic)
    if above.se is None:
        return above
    moved = _contributions(candidate, baseline, statistic)
    return _widened(above, moved * max(share, 1.0), bounds[1] - bounds[0], facts or above.n)


def flips_of(candidate: Sample, baseline: Sample, statistic: Statistic) -> Flips | None:
    """Count how facts flipped; ``None`` unless each has one 0 or 1, or is in neither rate."""
    import numpy as np

    after, before = (alone(sample, statistic) for sample in (candidate, baseline))
    counted = ~np.isnan(before)
    ids = np.array([fact for facts in candidate.facts for fact in facts])[counted]
    if len(set(ids.tolist())) != len(ids) or not np.array_equal(counted, ~np.isnan(after)):
        return None
    after, before = after[counted], before[counted]
    if not (np.isin(after, (0.0, 1.0)).all() and np.isin(before, (0.0, 1.0)).all()):
        return None
    return Flips(
        n=len(ids),
        down=int((before > after).sum()),
        up=int((after > before).sum()),
        both=int((after * before).sum()),
    )


def _of_rates(flips: Flips, facts: int, better: Better, alpha: float) -> Difference:
    estimate = dataclasses.replace(rate_difference(flips), n=facts)
    if estimate.low is None:
        return Difference(estimate=estimate)
    changed = flips.down + flips.up
    worse = flips if better == "higher" else flips.mirrored
    return Difference(
        estimate=estimate if changed else dataclasses.replace(estimate, note=UNCHANGED),
        p=mcnemar(worse.down, worse.up),
        mde=rate_mde(flips.n, changed, alpha),
        flips=worse,
    )


def _contributions(candidate: Sample, baseline: Sample, statistic: Statistic) -> Array:
    """Return by how much the figure would differ, had a fact not changed: one value for each that did."""
    import numpy as np

    order = {
        fact: place for place, fact in enumerate(dict.fromkeys(f for ids in candidate.facts for f in ids))
    }
    changed: set[int] = set()
    without = []
    for (totals, n), after, before, facts in zip(
        candidate.totals, candidate.values, baseline.values, candidate.facts, strict=True
    ):
        places = np.array([order[fact] for fact in facts], dtype=int)
        moves = np.zeros((len(order), after.shape[1]))
        np.add.at(moves, places, after - before)
        changed.update(places[(after != before).any(axis=1)].tolist())
        without.append((totals, n, moves))
    rows = np.array(sorted(changed), dtype=int)
    value = float(statistic(candidate.totals))
    left = statistic([(totals - moves[rows], np.broadcast_to(n, rows.shape)) for totals, n, moves in without])
    contributions: Array = value - np.broadcast_to(left, rows.shape)
    # Where one fact defines the figure, nothing can be said of it without.
    contributions = contributions[~np.isnan(contributions)]
    return contributions[np.abs(contributions) > ROUNDING * max(1.0, abs(value))]


def _widened(delta: Estimate, moved: Array, reach: float, facts: int) -> Estimate:
    """Give ``delta`` an interval that does not rest on the few facts that happened to change.

    As Agresti and Min (2005) and Bonett and Price (2012) do for rates, two imagined facts are added, one lost
    and one gained. They move the figure as far as those that changed (root mean square), but no less, when k
    did, than 1.96 / sqrt(2 k) of the farthest there can be, which is ``reach`` divided by ``facts``. With no
    change at all this is near the "rule of three". Their variance has the degrees of freedom of all facts; a
    small case in which the only change happened to be counts by its share of the variance.
    """
    import numpy as np
    from scipy.special import ndtri, stdtrit

    assert delta.value is not None
    assert delta.se is not None
    if not math.isfinite(reach) and not len(moved):
        return dataclasses.replace(delta, se=None, low=None, high=None)
    seen = float(np.square(moved).mean()) if len(moved) else 0.0
    possible = reach / facts if math.isfinite(reach) else 0.0
    z = float(ndtri((1 + LEVEL) / 2))
    step = max(seen, (z * possible) ** 2 / 2 / max(len(moved), 1))
    shrunk = delta.n / (delta.n + 2)
    found = delta.se**2 * (delta.n - 1) / delta.n
    imagined = 2 * step + 2 * shrunk * (delta.value / delta.n) ** 2
    se = shrunk * math.sqrt(found + imagined)
    df = float(delta.n - 1)
    if delta.df:
        # Welch and Satterthwaite's, but never more than of one sample of all facts.
        share = found / (found + imagined)
        df = min(1 / (share**2 / delta.df + (1 - share) ** 2 / df), df)
    half = float(stdtrit(df, (1 + LEVEL) / 2)) * se
    centre = shrunk * delta.value
    return dataclasses.replace(
        delta,
        se=se,
        df=df,
        low=max(centre - half, -reach),
        high=min(centre + half, reach),
        note=SIGN_TEST if delta.note == FLAT else delta.note,
    )


def _p(delta: Estimate, moved: Array, better: Better) -> float:
    import numpy as np
    from scipy.special import ndtr, stdtr

    assert delta.value is not None
    assert delta.se is not None
    drops = moved if better == "higher" else -moved
    if len(drops) <= MOST_FLIPS:
        return sign_flip(drops)
    value = delta.value if better == "higher" else -delta.value
    if not delta.se:
        # The cases have no spread within. What they lost and gained is set off as in the sign-flip test.
        if drops.min() < 0 < drops.max():
            return float(ndtr(drops.sum() / math.sqrt(np.square(drops).sum())))
        return 0.5 ** (len(drops) + 1) if value < 0 else 1 - 0.5 ** (len(drops) + 1)
    return float(stdtr(delta.df, value / delta.se))


def _mde(estimate: Estimate, alpha: float) -> float | None:
    from scipy.special import stdtrit

    if not estimate.se:
        return None
    quantiles: Sequence[float] = [float(stdtrit(estimate.df, level)) for level in (1 - alpha, POWER)]
    return sum(quantiles) * estimate.se
