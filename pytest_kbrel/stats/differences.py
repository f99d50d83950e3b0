"""Differences of two figures over the same facts, paired fact by fact, and the least that would be found.

Rates have methods of their own (:mod:`pytest_kbrel.stats.paired_rates`). Everything else is judged by what
each fact contributes to the difference: the sign-flip test where few facts changed, t tests where many did,
and an interval that two imagined facts keep from being too short. Where facts share clusters, the test and
the interval by clusters stand beside those by facts: the larger p and the wider side of the interval decide.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
from scipy.special import ndtri, stdtrit

from pytest_kbrel.stats.clusters import with_clusters
from pytest_kbrel.stats.estimates import (
    LEVEL,
    MOST_FLIPS,
    POWER,
    ROUNDING,
    TOO_FEW,
    UNCHANGED,
    Array,
    Comparison,
    Difference,
    Estimate,
    Flips,
    TTest,
    Z,
    sign_flip,
    zeros_and_ones,
)
from pytest_kbrel.stats.intervals import jackknife
from pytest_kbrel.stats.paired_rates import (
    drop_p,
    rate_difference,
    rate_facts_to_clear,
    rate_mde,
    rate_recovery,
    tango,
)


def paired_difference(of: Comparison) -> Difference:
    """Compare two samples fact by fact.

    p of "no drop" is 0.5 where nothing changed. The interval then has the width that no change among so many
    facts allows, and no ends where a single fact may move the figure without bound. A drop of at most 0 is a
    share that is recovered.
    """
    return with_clusters(_by_facts(of), of)


def _by_facts(of: Comparison) -> Difference:
    """Compare fact by fact, every fact by itself."""
    flips = flips_of(of) if of.rate else None
    if flips is not None:
        worse = flips if of.better == "higher" else flips.mirrored
        if of.share == 1:
            return _of_rates(flips, worse, of)
        return _of_recovered_rates(worse, of.share, of.level)
    delta = jackknife(of.terms, of.statistic)
    if delta.value is None or delta.note == TOO_FEW:
        return Difference(estimate=delta)
    moved = _contributions(of)
    if not len(moved) and of.share == 1:
        delta = dataclasses.replace(delta, value=0.0, se=0.0, note=UNCHANGED)
    if delta.se is None:
        return Difference(estimate=delta)
    assert delta.value is not None
    estimate = _widened(
        delta, moved * max(of.share, 1.0), of.reach, of.facts or delta.n, of.level
    )
    drops = moved if of.better == "lower" else -moved
    tests = []
    few = len(drops) <= MOST_FLIPS
    if few and of.share == 1:
        p = sign_flip(-drops)
        tests.append(lambda allowed: None if allowed > 0 else p)
    elif delta.se:
        tests.append(TTest(drop=of.drop_sign * delta.value, se=delta.se, df=delta.df))
    if estimate.se:
        drop = of.drop_sign * _centre(delta)
        tests.append(TTest(drop=drop, se=estimate.se, df=estimate.df))
    spread = estimate if few else delta
    return Difference(
        estimate=estimate,
        tests=tuple(tests),
        worse=int((drops > 0).sum()),
        spread=(spread.se, spread.df) if spread.se else None,
    )


def flips_of(of: Comparison) -> Flips | None:
    """Count how facts flipped; ``None`` unless each has one 0 or 1, or is in neither rate."""
    new = zeros_and_ones(of.candidate, of.statistic)
    old = zeros_and_ones(of.baseline, of.statistic)
    if new is None or old is None or new[0] != old[0]:
        return None
    after, before = new[1], old[1]
    return Flips(
        n=len(after),
        down=int((before > after).sum()),
        up=int((after > before).sum()),
        both=int((after * before).sum()),
    )


def _of_rates(flips: Flips, worse: Flips, of: Comparison) -> Difference:
    estimate = dataclasses.replace(rate_difference(flips, of.level), n=of.candidate.n)
    if estimate.low is None:
        return Difference(estimate=estimate)
    changed = flips.down + flips.up
    return Difference(
        estimate=estimate if changed else dataclasses.replace(estimate, note=UNCHANGED),
        tests=(functools.partial(drop_p, flips.n, worse.down, worse.up),),
        worse=worse.down,
        flips=worse,
    )


def _of_recovered_rates(worse: Flips, share: float, level: float) -> Difference:
    """Compare a rate with a share of what it was; ``worse`` has the facts that got worse as ``down``."""
    estimate = rate_recovery(worse, share, level)
    if estimate.value is None or estimate.se is None:
        return Difference(estimate=estimate)
    # The score test gives one end; with before and after exchanged it gives the other.
    other = rate_recovery(worse.mirrored, 1 / share, level).low
    estimate = dataclasses.replace(
        estimate, high=None if other is None else -share * other
    )
    # What may be lost, given the baseline's facts: the score test alone has a normal tail.
    before = (1 - share) * (worse.both + worse.down) / worse.n
    tests = [lambda allowed: drop_p(worse.n, worse.down, worse.up, before + allowed)]
    if estimate.se:
        tests.append(TTest(drop=-(estimate.value or 0.0), se=estimate.se, df=math.inf))
    return Difference(
        estimate=estimate, tests=tuple(tests), worse=worse.down, flips=worse
    )


def _contributions(of: Comparison) -> Array:
    """Return by how much the figure would differ, had a fact not changed: one value for each that did."""
    changed = set()
    without = []
    for (totals, n), after, before, facts in zip(
        of.candidate.totals,
        of.candidate.values,
        of.baseline.values,
        of.candidate.clusters,
        strict=True,
    ):
        moves = np.zeros((of.candidate.n, after.shape[1]))
        np.add.at(moves, facts, after - before)
        changed.update(facts[(after != before).any(axis=1)].tolist())
        without.append((totals, n, moves))
    rows = np.array(sorted(changed), dtype=int)
    value = float(of.statistic(of.candidate.totals))
    others = of.statistic(
        [
            (totals - moves[rows], np.broadcast_to(n, rows.shape))
            for totals, n, moves in without
        ]
    )
    contributions = value - np.broadcast_to(others, rows.shape)
    # Where one fact defines the figure, nothing can be said of it without.
    contributions = contributions[~np.isnan(contributions)]
    return contributions[np.abs(contributions) > ROUNDING * max(1.0, abs(value))]


def _centre(delta: Estimate) -> float:
    """Return the difference with two imagined facts, one lost and one gained."""
    assert delta.value is not None
    return delta.n / (delta.n + 2) * delta.value


def _widened(
    delta: Estimate, moved: Array, reach: float, facts: int, level: float
) -> Estimate:
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
    half = float(stdtrit(df, (1 + level) / 2)) * se
    centre = _centre(delta)
    return dataclasses.replace(
        delta,
        se=se,
        df=df,
        low=max(centre - half, -reach),
        high=min(centre + half, reach),
    )


_MOST = 1e6


def facts_needed(distance: float, se: float, n: int, alpha: float) -> int | None:
    """Return how many facts put ``distance`` outside a one-sided interval of level ``alpha``.

    ``se`` is the standard error over ``n`` facts; ``None`` when no number of facts below a million would do.
    """
    # Also where the square would overflow.
    if distance <= 0 or se / distance > _MOST:
        return None
    needed = n * (float(ndtri(1 - alpha)) * se / distance) ** 2
    return max(math.ceil(needed), n + 1) if needed < _MOST else None


def detectable(difference: Difference, allowed: float, alpha: float) -> float | None:
    """Return the drop that would be found to exceed ``allowed`` at level ``alpha`` with 80 % power.

    As many facts change as have now, in clusters as they have; independently, where these tell no spread.
    ``None`` where nothing is known of any spread; infinite where not even the loss of all facts would be
    found.
    """
    flips, clustered = difference.flips, difference.clustered
    if flips is not None:
        drop = rate_mde(flips, alpha, allowed)
        if drop > 1:
            # Of few facts a z test asks too much: whether the loss of all is found, the gate's own test says.
            if drop_p(flips.n, flips.n, 0, allowed) >= alpha:
                return math.inf
            drop = 1.0
        se = math.sqrt(max((flips.down + flips.up) / flips.n, drop) / flips.n)
    elif difference.spread is not None:
        se = difference.spread[0]
        drop = allowed + mde(*difference.spread, alpha)
    else:
        return None
    if clustered is None or clustered.se is None:
        return drop
    return max(drop, allowed + mde(clustered.se or se, clustered.df, alpha))


def null_end(difference: Difference, comparisons: int) -> float | None:
    """Return the worse end of the interval that an unchanged model would show in the worst of its slices.

    It is the median of the largest of so many ``comparisons`` without a true drop, in slices of this size
    where as many facts change. ``None`` where nothing is known of the spread.
    """
    z = float(ndtri(0.5 ** (1 / max(comparisons, 1))))
    flips, clustered = difference.flips, difference.clustered
    ends = []
    if flips is not None:
        changed = flips.down + flips.up
        surplus = min(z * math.sqrt(changed), changed)
        ends.append(tango(flips.n, (changed - surplus) / 2, (changed + surplus) / 2)[1])
    elif difference.spread is not None:
        se, df = difference.spread
        ends.append((z + float(stdtrit(df, (1 + LEVEL) / 2))) * se)
    if clustered is not None and clustered.se:
        ends.append((z + float(stdtrit(clustered.df, (1 + LEVEL) / 2))) * clustered.se)
    return max(ends, default=None)


def facts_to_alarm(difference: Difference, allowed: float, alpha: float) -> int | None:
    """Return how many facts make ``difference`` significantly exceed ``allowed`` at level ``alpha``.

    The difference is taken to be the same over them. ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if estimate.value is None or estimate.se is None:
        return None
    se = estimate.se if flips is None else math.sqrt(flips.down + flips.up) / flips.n
    return facts_needed(
        abs(estimate.value) - allowed, _with_clusters(se, difference), estimate.n, alpha
    )


def _with_clusters(se: float, difference: Difference) -> float:
    """Return the larger of a standard error and that by clusters."""
    clustered = difference.clustered
    return se if clustered is None or clustered.se is None else max(se, clustered.se)


def facts_to_clear(difference: Difference, distance: float) -> int | None:
    """Return how many facts bring the worse end of the 95 % interval within the tolerance.

    ``distance`` is that of the drop from the tolerance. ``None`` as in :func:`facts_needed`.
    """
    estimate, flips = difference.estimate, difference.flips
    if distance <= 0 or estimate.se is None:
        return None
    if flips is None or _with_clusters(0.0, difference) > estimate.se:
        se = _with_clusters(estimate.se, difference)
        return facts_needed(distance, se, estimate.n, (1 - LEVEL) / 2)
    tolerance = distance + (flips.down - flips.up) / flips.n
    needed = rate_facts_to_clear(flips, tolerance)
    # Where not every fact counts in the rate, as many more are needed.
    return None if needed is None else math.ceil(needed * estimate.n / flips.n)


def mde(se: float, df: float, alpha: float) -> float:
    """Return the drop that a t test at level ``alpha`` finds with 80 % power."""
    return (float(stdtrit(df, 1 - alpha)) + float(stdtrit(df, POWER))) * se
