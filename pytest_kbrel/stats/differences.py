"""Differences of two figures over the same facts, paired fact by fact.

Rates have methods of their own (:mod:`pytest_kbrel.stats.paired_rates`). Everything else is judged by what
each fact contributes to the difference: the sign-flip test where few facts changed, t tests where many did,
and an interval that two imagined facts keep from being too short. Where facts share clusters, the test and
the interval by clusters stand beside those by facts: the larger p and the wider side of the interval decide.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.special import stdtrit

from pytest_kbrel.stats.clusters import Clusters, with_clusters
from pytest_kbrel.stats.drop_tests import (
    MOST_FLIPS,
    AlikeTest,
    RateTest,
    SignFlipTest,
    TTest,
)
from pytest_kbrel.stats.estimates import (
    FLAT,
    LEVEL,
    ROUNDING,
    SIGN_TEST,
    TOO_FEW,
    UNCHANGED,
    Array,
    Better,
    Difference,
    DropTest,
    Estimate,
    Flips,
    Sample,
    Statistic,
    Z,
    alone,
)
from pytest_kbrel.stats.intervals import jackknife
from pytest_kbrel.stats.paired_rates import rate_difference, rate_recovery


def paired_difference(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    *,
    better: Better,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    rate: bool = False,
    facts: int | None = None,
    clusters: Clusters | None = None,
    level: float = LEVEL,
) -> Difference:
    """Compare two samples of the same facts in the same order.

    ``bounds`` are the statistic's own. ``rate`` says that it is a mean of zeros and ones; where each fact has
    one of them before and after, the counts decide (:func:`flips_of`). ``facts`` is how many facts the
    statistic is over, where not over all. Without ``clusters`` every fact is its own. ``level`` is that of
    the interval.

    p of "no drop" is 0.5 where nothing changed. The interval then has the width that no change among so many
    facts allows, and no ends where a single fact may move the figure without bound.
    """
    return _compare(
        candidate,
        baseline,
        statistic,
        1.0,
        better,
        bounds,
        rate,
        facts,
        clusters,
        level,
    )


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
    clusters: Clusters | None = None,
    level: float = LEVEL,
) -> Difference:
    """Compare the candidate with ``share`` of the baseline, as :func:`paired_difference` does with all of it.

    The estimate is candidate - share * baseline where higher is better, baseline - share * candidate where
    lower is: at least 0 when the candidate recovers that share. A drop of at most 0 is that too.
    """
    return _compare(
        candidate,
        baseline,
        statistic,
        share,
        better,
        bounds,
        rate,
        facts,
        clusters,
        level,
    )


def _compare(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    share: float,
    better: Better,
    bounds: tuple[float, float],
    rate: bool,
    facts: int | None,
    clusters: Clusters | None,
    level: float,
) -> Difference:
    difference = _by_facts(
        candidate, baseline, statistic, share, better, bounds, rate, facts, level
    )
    reach = bounds[1] - bounds[0]
    return with_clusters(
        difference,
        candidate,
        baseline,
        statistic,
        share,
        better,
        reach,
        clusters,
        level,
    )


def _by_facts(
    candidate: Sample,
    baseline: Sample,
    statistic: Statistic,
    share: float,
    better: Better,
    bounds: tuple[float, float],
    rate: bool,
    facts: int | None,
    level: float,
) -> Difference:
    """Compare fact by fact, every fact by itself."""
    flips = flips_of(candidate, baseline, statistic) if rate else None
    if flips is not None:
        worse = flips if better == "higher" else flips.mirrored
        if share == 1:
            return _of_rates(flips, candidate.n, better, level)
        return _of_recovered_rates(worse, share, level)
    delta = jackknife(_terms(candidate, baseline, share, better), statistic)
    if delta.value is None or delta.note == TOO_FEW:
        return Difference(estimate=delta)
    moved = _contributions(candidate, baseline, statistic)
    if not len(moved) and share == 1:
        delta = dataclasses.replace(delta, value=0.0, se=0.0, note=UNCHANGED)
    if delta.se is None:
        return Difference(estimate=delta)
    assert delta.value is not None
    size = max(share, 1.0)
    estimate = _widened(
        delta, moved * size, bounds[1] - bounds[0], facts or delta.n, level
    )
    # The difference itself is positive where a figure rose, a contrast with a share where it is recovered.
    sign = 1.0 if share == 1 and better == "lower" else -1.0
    drops = moved if better == "lower" else -moved
    tests: list[DropTest] = []
    if share == 1 and len(drops) <= MOST_FLIPS:
        tests.append(SignFlipTest(drops=tuple(drops.tolist())))
    elif delta.se:
        tests.append(TTest(drop=sign * delta.value, se=delta.se, df=delta.df))
    elif share == 1:
        tests.append(AlikeTest(drops=tuple(drops.tolist())))
    if estimate.se:
        tests.append(TTest(drop=sign * _centre(delta), se=estimate.se, df=estimate.df))
    spread = estimate if len(moved) <= MOST_FLIPS else delta
    return Difference(
        estimate=estimate,
        tests=tuple(tests),
        worse=int((drops > 0).sum()),
        spread=(spread.se, spread.df) if spread.se else None,
    )


def _terms(
    candidate: Sample, baseline: Sample, share: float, better: Better
) -> list[tuple[float, Sample]]:
    if share == 1:
        return [(1.0, candidate), (-1.0, baseline)]
    after, before = (1.0, -share) if better == "higher" else (-share, 1.0)
    return [(after, candidate), (before, baseline)]


def flips_of(candidate: Sample, baseline: Sample, statistic: Statistic) -> Flips | None:
    """Count how facts flipped; ``None`` unless each has one 0 or 1, or is in neither rate."""
    after, before = (alone(sample, statistic) for sample in (candidate, baseline))
    counted = ~np.isnan(before)
    ids = np.array([fact for facts in candidate.facts for fact in facts])[counted]
    if len(set(ids.tolist())) != len(ids) or not np.array_equal(
        counted, ~np.isnan(after)
    ):
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


def _of_rates(flips: Flips, facts: int, better: Better, level: float) -> Difference:
    estimate = dataclasses.replace(rate_difference(flips, level), n=facts)
    if estimate.low is None:
        return Difference(estimate=estimate)
    changed = flips.down + flips.up
    worse = flips if better == "higher" else flips.mirrored
    return Difference(
        estimate=estimate if changed else dataclasses.replace(estimate, note=UNCHANGED),
        tests=(RateTest(n=flips.n, lost=worse.down, gained=worse.up),),
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
    allowed = (1 - share) * (worse.both + worse.down) / worse.n
    tests: list[DropTest] = [
        _Allowed(RateTest(n=worse.n, lost=worse.down, gained=worse.up), allowed)
    ]
    if estimate.se:
        tests.append(TTest(drop=-(estimate.value or 0.0), se=estimate.se, df=math.inf))
    return Difference(
        estimate=estimate, tests=tuple(tests), worse=worse.down, flips=worse
    )


@dataclasses.dataclass(frozen=True, slots=True)
class _Allowed:
    """A test of a drop, of which a part is allowed before any."""

    test: RateTest
    before: float

    def p(self, allowed: float) -> float:
        return self.test.p(self.before + allowed)


def _contributions(candidate: Sample, baseline: Sample, statistic: Statistic) -> Array:
    """Return by how much the figure would differ, had a fact not changed: one value for each that did."""
    changed: set[int] = set()
    without = []
    for (totals, n), after, before, facts in zip(
        candidate.totals,
        candidate.values,
        baseline.values,
        candidate.clusters,
        strict=True,
    ):
        moves = np.zeros((candidate.n, after.shape[1]))
        np.add.at(moves, facts, after - before)
        changed.update(facts[(after != before).any(axis=1)].tolist())
        without.append((totals, n, moves))
    rows = np.array(sorted(changed), dtype=int)
    value = float(statistic(candidate.totals))
    others = statistic(
        [
            (totals - moves[rows], np.broadcast_to(n, rows.shape))
            for totals, n, moves in without
        ]
    )
    contributions: Array = value - np.broadcast_to(others, rows.shape)
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
        note=SIGN_TEST if delta.note == FLAT else delta.note,
    )
