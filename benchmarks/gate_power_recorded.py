"""Shapes of change of recorded candidates, drawn anew without a true drop. Part of gate_power.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from gate_power_coverage import Array, Rng
from gate_power_draws import alarms

from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.cli.compare.recorded import baseline_of
from pytest_kbrel.gates.figures import figures_of
from pytest_kbrel.gates.measurement import pair
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Outcome, Run
from pytest_kbrel.session.outcomes import recorded_run
from pytest_kbrel.stats.intervals import left_out

ROOT = Path(__file__).parent.parent
# Changes of facts in the order of their clusters: how much worse each became, and the number of its cluster.
Changes = tuple[Array, Array]


def name_of(row: Outcome) -> str:
    """Return the cluster of a row, or the fact where it is alone."""
    return row.cluster or row.fact_id


def changes_of(run: Run, base: Run) -> Iterator[tuple[str, Changes]]:
    """The changes in each gated figure of each slice of MONITOR, none of which is a rate; their mean is 0.

    Of a figure that is no mean the change of a fact is its influence on the difference (jackknife).
    """
    blessed = baseline_of(base, ROOT)
    for case in run.cases:
        before = blessed.case(case)
        if case.probe != "monitor" or not isinstance(before, BaselineCase):
            continue
        pairing = pair(case.table, before.table)
        names = {gate.metric for gate in case.gates if GATE_RULES[gate.rule].relative}
        clusters = list(map(name_of, pairing.candidate.rows))
        numbers = np.unique(clusters, return_inverse=True)[1]
        for figure in figures_of(
            metrics_for(case.probe, case.slice, case.table.columns)
        ):
            if figure.name not in names:
                continue
            (new,), (old,) = (
                left_out(figure.sample([table]), figure.statistic)
                for table in (pairing.candidate, pairing.baseline)
            )
            worse = old - new if figure.better == "lower" else new - old
            order = np.argsort(numbers, kind="stable")
            yield (
                figure.name,
                ((worse - worse.mean())[order] * (len(worse) - 1), numbers[order]),
            )


def by_fact(rng: Rng, changes: Changes) -> Changes:
    """As many facts drawn anew, each a cluster of its own."""
    n = len(changes[0])
    return rng.choice(changes[0], n), np.arange(n)


def by_object(rng: Rng, changes: Changes) -> Changes:
    """As many clusters drawn anew, with all their facts."""
    worse, clusters = changes
    sizes = np.bincount(clusters)
    drawn = rng.integers(0, len(sizes), len(sizes))
    numbers = np.repeat(np.arange(len(drawn)), sizes[drawn])
    # Where the facts of a cluster begin, before and after.
    first, begin = (np.cumsum(of) - of for of in (sizes, sizes[drawn]))
    return worse[(first[drawn] - begin)[numbers] + np.arange(len(numbers))], numbers


def tossed(rng: Rng, changes: Changes) -> Changes:
    """The same facts, whose changes have another sign in half of the clusters."""
    worse, clusters = changes
    return worse * rng.choice([-1.0, 1.0], clusters.max() + 1)[clusters], clusters


WAYS = {
    "drawn by fact": by_fact,
    "drawn by object": by_object,
    "signs tossed by object": tossed,
}


def recorded(
    base: Path, candidates: Sequence[Path], draws: int
) -> Iterator[tuple[str, str, str, list[float]]]:
    """Candidate, figure, way, and the sessions that fail with no drop allowed: by t alone, and by the gates.

    A session is all slices of the candidate, each drawn anew, at the level of so many.
    """
    before = recorded_run(base)
    for path in candidates:
        slices: dict[str, list[Changes]] = {}
        for figure, changes in changes_of(recorded_run(path), before):
            slices.setdefault(figure, []).append(changes)
        for number, (figure, of_slices) in enumerate(slices.items()):
            level = stats.sidak(len(of_slices))
            for way, draw in WAYS.items():
                rng = np.random.default_rng([11, number])
                unharmed = np.ones(2)
                for changes in of_slices:
                    share = (
                        sum(alarms(*draw(rng, changes), level) for _ in range(draws))
                        / draws
                    )
                    unharmed *= 1 - share
                yield path.name, figure, way, (1 - unharmed).tolist()
