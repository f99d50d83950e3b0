"""Differences of two figures: paired fact by fact, or of independent estimates (a paper's figure).

Rates have methods of their own (:mod:`pytest_kbrel.stats.paired_rates`). Everything else is judged by what
each fact contributes to the difference: the sign-flip test where few facts changed, the jackknife's t test
where many did, and an interval that two imagined facts keep from being too short.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from pytest_kbrel.stats.estimates import (
    FAMILY_LEVEL,
    FLAT,
    LEVEL,
    ROUNDING,
    SIGN_TEST,
    TOO_FEW,
    UNCHANGED,
    UNDEFINED,
    Array,
    Difference,
    Estimate,
    Flips,
    Sample,
    Statistic,
    Z,
    alone,
)
from pytest_kbrel.stats.intervals import jackknife
from pytest_kbrel.stats.paired_rates import mcnemar, rate_difference, rate_mde, rate_recovery
from pytest_kbrel.stats.power import mde

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
    return Difference(estimate=estimate, p=p, mde=mde(spread.se, spread.df, alpha) if spread.se else None)


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
    changed: set[int] = set()
    without = []
    for (totals, n), after, before, facts in zip(
        candidate.totals, candidate.values, baseline.values, candidate.clusters, strict=True
    ):
        moves = np.zeros((candidate.n, after.shape[1]))
        np.add.at(moves, facts, after - before)
        changed.update(facts[(after != before).any(axis=1)].tolist())
        without.append((totals, n, moves))
    rows = np.array(sorted(changed), dtype=int)
    value = float(statistic(candidate.totals))
    others = statistic(
        [(totals - moves[rows], np.broadcast_to(n, rows.shape)) for totals, n, moves in without]
    )
    contributions: Array = value - np.broadcast_to(others, rows.shape)
    # Where one fact defines the figure, nothing can be said of it without.
    contributions = contributions[~np.isnan(contributions)]
    return contributions[np.abs(contributions) > ROUNDING * max(1.0, abs(value))]


def _widened(delta: Estimate, moved: Array, reach: float, facts: int) -> Estimate:
    """Return ``delta`` with an interval that does not rest on the few facts that happened to change.

    As Agresti and Min (2005) and Bonett and Price (2012) do for rates, two imagined facts are added, one lost
    and one gained. They move the figure as far as those that changed (root mean square), but no less, when k
    did, than 1.96 / sqrt(2 k) of the farthest there can be, which is ``reach`` divided by ``facts``. With no
    change at all this is near the "rule of three". Their variance has the degrees of freedom of all facts; a
    small case in which the only change happened to be counts by its share of the variance.
    """
    assert delta.value is not None
    assert delta.se is not None
    if not math.isfinite(reach) and not len(moved):
        return dataclasses.replace(delta, se=None, low=None, high=None)
    seen = float(np.square(moved).mean()) if len(moved) else 0.0
    possible = reach / facts if math.isfinite(reach) else 0.0
    step = max(seen, (Z * possible) ** 2 / 2 / max(len(moved), 1))
    shrunk = delta.n / (delta.n + 2)
    measured = delta.se**2 * (delta.n - 1) / delta.n
    imagined = 2 * step + 2 * shrunk * (delta.value / delta.n) ** 2
    se = shrunk * math.sqrt(measured + imagined)
    df = float(delta.n - 1)
    if delta.df:
        # Welch and Satterthwaite's, but never more than of one sample of all facts.
        share = measured / (measured + imagined)
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


# All 2^16 ways are counted in a millisecond; beyond that a t test agrees with them.
MOST_FLIPS = 16


def fewest_flips(alpha: float) -> int:
    """Return how many facts must at least have changed, all for the worse, to be significant at ``alpha``."""
    return max(1, math.floor(math.log2(0.5 / alpha)) + 1)


def sign_flip(contributions: Array) -> float:
    """Return the one-sided mid-p that a sum of ``contributions``, shape (facts,), is so low by chance.

    Each contribution is equally likely to have either sign (Fisher 1935). All ways are counted, so there must
    be no more than :data:`MOST_FLIPS`. Of contributions of equal size it is the mid-p McNemar test.
    """
    sums = np.zeros(1)
    for size in np.abs(contributions):
        sums = np.concatenate([sums - size, sums + size])
    total = float(contributions.sum())
    rounding = 1e-9 * float(np.abs(contributions).sum())
    below = np.count_nonzero(sums < total - rounding)
    equal = np.count_nonzero(np.abs(sums - total) <= rounding)
    return float((below + equal / 2) / len(sums))


def contrast(
    terms: Sequence[tuple[float, Estimate]], bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """Estimate the weighted sum of independent estimates (weight, estimate), as of two different samples.

    The 95 % interval recovers the variance of each from its own interval (MOVER; Zou and Donner 2008), which
    of two rates with Wilson's is Newcombe's hybrid score interval (1998, method 10). There is none where one
    of the estimates has none. ``n`` is that of the first, degrees of freedom after Welch and Satterthwaite.
    """
    first = terms[0][1]
    if any(estimate.value is None for _, estimate in terms):
        return Estimate(n=first.n, note=UNDEFINED)
    value = math.fsum(weight * (estimate.value or 0.0) for weight, estimate in terms)
    below, above, variance, spread = 0.0, 0.0, 0.0, 0.0
    for weight, estimate in terms:
        if estimate.value is None or estimate.low is None or estimate.high is None:
            return Estimate(value=value, n=first.n, note=estimate.note)
        ends = weight * (estimate.low - estimate.value), weight * (estimate.high - estimate.value)
        below, above = below + min(ends) ** 2, above + max(ends) ** 2
        se = estimate.se
        if se is None:
            se = (estimate.high - estimate.low) / 2 / Z
        variance += (weight * se) ** 2
        spread += (weight * se) ** 4 / estimate.df if estimate.df else 0.0
    return Estimate(
        value=value,
        se=math.sqrt(variance),
        df=variance**2 / spread if spread else math.inf,
        low=max(value - math.sqrt(below), bounds[0]),
        high=min(value + math.sqrt(above), bounds[1]),
        n=first.n,
    )


def unpaired_difference(
    candidate: Estimate,
    baseline: Estimate,
    *,
    better: Better,
    alpha: float = FAMILY_LEVEL,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Difference:
    """Compare two independent estimates, as :func:`paired_difference` does two samples of the same facts."""
    reach = bounds[1] - bounds[0]
    candidate = _flat_within(candidate, bounds)
    delta = contrast([(1.0, candidate), (-1.0, baseline)], (-reach, reach))
    if delta.value is None or not delta.se:
        return Difference(estimate=delta)
    drop = -delta.value if better == "higher" else delta.value
    p = float(stdtr(delta.df, -drop / delta.se))
    return Difference(estimate=delta, p=p, mde=mde(delta.se, delta.df, alpha))


def _flat_within(estimate: Estimate, bounds: tuple[float, float]) -> Estimate:
    """Return an estimate without spread with the widest interval that facts all alike allow.

    Were a share q of the facts different, n of them would all be alike with probability (1 - q)^n; at 5 %
    that is the "rule of three", q about 3 / n (Hanley and Lippman-Hand 1983). A fact moves the figure by no
    more than its reach.
    """
    reach = bounds[1] - bounds[0]
    if estimate.note != FLAT or estimate.value is None or not math.isfinite(reach):
        return estimate
    margin = reach * (1 - (1 - LEVEL) ** (1 / estimate.n))
    return dataclasses.replace(
        estimate,
        se=margin / Z,
        df=estimate.n - 1,
        low=max(estimate.value - margin, bounds[0]),
        high=min(estimate.value + margin, bounds[1]),
    )
