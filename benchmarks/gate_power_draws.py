"""Drawn runs: facts in clusters, skewed figures, sessions of the world suite. Part of gate_power.py."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from gate_power_coverage import UNIT, Array, Rng, of, ratio
from scipy.special import stdtr
from scipy.stats import t as student

from benchmarks.fewest_lost import fewest_lost
from benchmarks.rate_verdicts import most_within
from pytest_kbrel import stats
from pytest_kbrel.baselines import BaselineCase, read_baseline
from pytest_kbrel.catalogue.rules import family_size
from pytest_kbrel.gates.cases import verdict_of
from pytest_kbrel.gates.figures import (
    Figure,
    as_expected,
    figures_of,
    figures_over,
    pooled_figures,
)
from pytest_kbrel.gates.measurement import Measurement, Pairing, measure_figures, pair
from pytest_kbrel.gates.rules import FEW_CLUSTERS, decide
from pytest_kbrel.metrics import metrics_for
from pytest_kbrel.records import Case, CaseResult, Gate, Judgement, Outcome, Table
from pytest_kbrel.suites import load_suite
from tests.stats.samples import paired_difference

ROOT = Path(__file__).parent.parent
# The product's own tests judge so many draws of each shape as well, and must agree.
CHECKED = 20
# Facts' probabilities and degrees moved by so much (standard deviation) when the demo's model was rounded.
JITTER = 0.025
MOVING = ("pfd", "ird", "term", "anchor")


# Facts in clusters.

# What is alike: the direction of the facts that change, of all of them in some objects or of some of them in
# all, or the changes themselves.
SOME, ALL, WHOLE = ALIKE = (
    "direction, in some objects",
    "direction, in all objects",
    "change",
)


def shapes() -> dict[str, list[int]]:
    """Facts by object: equal sizes, Zipf's, and those of three relations of the world suite."""
    facts = [
        json.loads(line)
        for line in (ROOT / "suites/world/facts.jsonl").read_text().splitlines()
    ]
    relations = {
        name: list(
            Counter(
                fact["object"] for fact in facts if fact.get("relation") == name
            ).values()
        )
        for name in ("P30", "P101", "P282")
    }
    zipf = [math.ceil(40 / rank) for rank in range(1, 31)]
    return {"10 of 12": [12] * 10, "50 of 4": [4] * 50, "Zipf": zipf, **relations}


def changes(
    rng: Rng,
    draws: int,
    sizes: Sequence[int],
    flips: float,
    drop: float,
    icc: float,
    alike: str,
) -> Array:
    """How much worse each fact became (1, 0 or -1), shape (draws, facts).

    ``icc`` is the correlation inside an object of what :data:`ALIKE` says.
    """
    objects = np.repeat(np.arange(len(sizes)), sizes)
    shape = (draws, len(objects))

    def shared() -> Array:
        own = rng.random(shape, dtype=np.float32)
        of_object = rng.random((draws, len(sizes)), dtype=np.float32)[:, objects]
        if alike == SOME:
            return np.where(
                (rng.random((draws, len(sizes))) < icc)[:, objects], of_object, own
            )
        return np.where(
            rng.random(shape, dtype=np.float32) < math.sqrt(icc), of_object, own
        )

    lost = (1 + drop / flips) / 2
    if alike == WHOLE:
        u = shared()
        return (u < flips * lost).astype(np.float32) - (
            (u >= flips * lost) & (u < flips)
        )
    changed = rng.random(shape, dtype=np.float32) < flips
    return changed * np.where(shared() < lost, np.float32(1), np.float32(-1))


def judged(
    x: Array, sizes: Sequence[int], allowed: float, level: float
) -> tuple[Array, Array]:
    """Whether the test by facts rejects a drop of at most ``allowed`` at ``level``, and the larger p."""
    lost, gained = (x > 0).sum(1), (x < 0).sum(1)
    fewest = fewest_lost(x.shape[1], int(gained.max()), level, allowed)
    by_facts = lost >= fewest[gained]
    mean, error, df = clustered(x, sizes)
    return by_facts, by_facts & (mean - allowed > student.ppf(1 - level, df) * error)


def passed(x: Array, sizes: Sequence[int], within: float) -> Array:
    """Whether the worse end of the wider interval is within ``within``."""
    lost, gained = (x > 0).sum(1), (x < 0).sum(1)
    mean, error, df = clustered(x, sizes)
    by_facts = lost <= most_within(x.shape[1], within)[gained]
    return by_facts & (mean + student.ppf(0.975, df) * error <= within)


def clustered(x: Array, sizes: Sequence[int]) -> tuple[Array, Array, float]:
    """Mean, CR2 standard error and degrees of freedom, for all draws at once."""
    s, n = np.array(sizes, dtype=float), x.shape[1]
    mean = x.mean(1, dtype=float)
    sums = np.add.reduceat(x, np.cumsum([0, *sizes[:-1]]), axis=1) - mean[:, None] * s
    error = np.sqrt((sums**2 / (1 - s / n)).sum(1)) / n
    df = stats.cluster_df(np.repeat(np.arange(len(sizes)), sizes).tolist())
    assert df is not None
    return mean, error, df


def check(
    x: Array, sizes: Sequence[int], allowed: float, level: float, rejected: Array
) -> None:
    """Raise where the gates' own comparison of a few draws says something else."""
    objects = np.repeat(np.arange(len(sizes)), sizes)
    clusters = {f"0/{i}": f"object {g}" for i, g in enumerate(objects)}
    for row, ours in zip(x[:CHECKED], rejected[:CHECKED], strict=True):
        before, ones = (row >= 0).astype(float), np.ones(len(row))
        after = before - row
        difference = paired_difference(
            of(np.stack([after, ones], 1)),
            of(np.stack([before, ones], 1)),
            ratio,
            better="higher",
            bounds=UNIT,
            rate=True,
            clusters=clusters,
        )
        p = difference.p_of(allowed)
        assert (p is not None and p < level) == ours, (sizes, allowed, p)


def in_clusters(
    draws: int, level: float
) -> Iterator[tuple[str, float, bool, list[float]]]:
    """The largest shares, over shapes and flips, of rejections of a true drop, and of its passes.

    What is alike, its correlation, and whether the objects are few; then by facts alone at ``level``, the
    larger p at ``level``, the larger p at 2.5 %, a pass.
    """
    for kind, alike in enumerate(ALIKE):
        for icc in (0.0, 0.1, 0.5):
            worst = {False: np.zeros(4), True: np.zeros(4)}
            for number, sizes in enumerate(shapes().values()):
                few = sum(sizes) ** 2 / sum(size**2 for size in sizes) < FEW_CLUSTERS
                for flips in (0.05, 0.2):
                    for drop in (0.0, 0.03):
                        seed = [
                            7,
                            number,
                            int(100 * icc),
                            int(100 * flips),
                            int(100 * drop),
                            kind,
                        ]
                        x = changes(
                            np.random.default_rng(seed),
                            draws,
                            sizes,
                            flips,
                            drop,
                            icc,
                            alike,
                        )
                        facts, larger = judged(x, sizes, drop, level)
                        check(x, sizes, drop, level, larger)
                        wide = judged(x, sizes, drop, 0.025)[1]
                        passes = passed(x, sizes, drop).mean() if drop else 0.0
                        shares = [facts.mean(), larger.mean(), wide.mean(), passes]
                        worst[few] = np.maximum(worst[few], shares)
            for few, shares in worst.items():
                yield alike, icc, few, shares.tolist()


# Skewed figures.

# So many facts become much better, by so much; all others become a little worse, so that the mean stays.
SKEWED = ((0.2, 0.1), (0.1, 0.2), (0.05, 0.3), (0.02, 0.4))


def skewed(draws: int, level: float) -> Iterator[tuple[str, int, list[float]]]:
    """False alarms of probabilities without a true drop: by the t test alone, and by the gates' p."""
    for number, (share, better) in enumerate(SKEWED):
        for n in (50, 100, 300):
            rng = np.random.default_rng([8, number, n])
            total = np.zeros(2)
            for _ in range(draws):
                little = rng.exponential(share * better / (1 - share), n)
                moves = np.where(
                    rng.random(n) < share, better * rng.uniform(0.5, 1.5, n), -little
                )
                total += alarms(-moves, np.arange(n), level)
            name = f"{share:.0%} better by {better}, the others worse by {share * better / (1 - share):.3f}"
            yield name, n, (total / draws).tolist()


def alarms(worse: Array, clusters: Array, level: float) -> Array:
    """Whether a t test over facts finds that they became worse, and whether the gates do.

    ``worse`` is by how much, ``clusters`` the numbers of their clusters; no drop is allowed.
    """
    n = len(worse)
    error = worse.std(ddof=1) / math.sqrt(n)
    # The gates take the largest of several p, of which none is smaller than that of the t test.
    if not error or stdtr(n - 1, -worse.mean() / error) >= level:
        return np.zeros(2)
    ones = np.ones(n)
    difference = paired_difference(
        of(np.stack([0.5 - worse, ones], 1)),
        of(np.stack([0.5 * ones, ones], 1)),
        ratio,
        better="higher",
        bounds=UNIT,
        clusters={f"0/{i}": str(cluster) for i, cluster in enumerate(clusters)},
    )
    p = difference.p
    return np.array([1, p is not None and p < level], dtype=float)


# Sessions of the world suite.


def measured_for(
    gates: Sequence[Gate],
    figures: Sequence[Figure],
    pairings: Sequence[Pairing],
    family: int,
) -> Measurement:
    """Measure of ``figures`` those that ``gates`` are about, with one pairing a member."""
    gated = [
        figure for figure in figures if figure.name in {gate.metric for gate in gates}
    ]
    tables = [pairing.candidate for pairing in pairings]
    return measure_figures(gated, tables, pairings, comparisons=family)


class World:
    """The world suite with its shipped baseline, whose outcomes are changed and judged anew."""

    def __init__(self) -> None:
        self.suite = load_suite(ROOT / "suites/world.kb.yaml")
        self.baseline = read_baseline("baselines/reference", ROOT)
        self.family = family_size(self.suite)
        self.tables = {case.id: self._table(case) for case in self.suite.cases}

    def _table(self, case: Case) -> Table:
        blessed = self.baseline.case(case)
        assert isinstance(blessed, BaselineCase)
        facts = {fact.id: fact for fact in case.facts}
        rows = tuple(
            dataclasses.replace(
                row,
                expected=facts[row.fact_id].object or "",
                cluster=facts[row.fact_id].cluster(case.cluster),
            )
            for row in blessed.table.rows
        )
        return Table(columns=blessed.table.columns, rows=rows)

    def case(
        self, case: Case, rng: Rng, flips: float, loss: float = 0.0
    ) -> tuple[Judgement, Table]:
        """Judge a case after ``flips`` of its verdicts changed, and ``loss`` of its facts were lost."""
        before = self.tables[case.id]
        table = changed(
            before, rng, flips, loss, unseen=case.slice.startswith("unseen")
        )
        figures = figures_of(metrics_for(case.probe, case.slice, table.columns))
        return self.verdict(case.gates, figures, [table], [before]), table

    def verdict(
        self,
        gates: Sequence[Gate],
        figures: Sequence[Figure],
        after: Sequence[Table],
        before: Sequence[Table],
    ) -> Judgement:
        """Judge gates as the product does; nothing is measured that no gate is about."""
        pairings = [pair(new, old) for new, old in zip(after, before, strict=True)]
        measurement = measured_for(gates, figures, pairings, self.family)
        gates = decide(gates, measurement)
        return verdict_of(gates, baseline_asked=True)

    def session(
        self, rng: Rng, flips: float
    ) -> tuple[list[Judgement], list[Judgement]]:
        """Judge all slices, and all cases over them, without a true change."""
        judged = {case.id: self.case(case, rng, flips) for case in self.suite.cases}
        over = []
        for aggregate in self.suite.aggregates:
            tables = [
                (judged[member][1], self.tables[member]) for member in aggregate.members
            ]
            if aggregate.probe == "pooled":
                figures = pooled_figures(len(tables))
                tables = [
                    (as_expected(new, new), as_expected(old, old))
                    for new, old in tables
                ]
            else:
                figures = figures_over(
                    [self._result(member) for member in aggregate.members]
                )
            after, before = zip(*tables, strict=True)
            over.append(self.verdict(aggregate.gates, figures, after, before))
        return [verdict for verdict, _ in judged.values()], over

    def _result(self, member: str) -> CaseResult:
        case = next(case for case in self.suite.cases if case.id == member)
        return CaseResult(
            id=case.id,
            suite=case.suite,
            probe=case.probe,
            slice=case.slice,
            verdict="pass",
            n=len(case.facts),
            duration=0.0,
            metrics=(),
            gates=(),
            table=self.tables[case.id],
        )


def changed(
    table: Table, rng: Rng, flips: float, loss: float, *, unseen: bool
) -> Table:
    """The table with facts answered anew: each as a fact of the same slice, drawn at random, was.

    So nothing is lost on average, whatever the figure. So many are that a share of ``flips`` gets another
    verdict, as far as that is possible. A share of ``loss`` of all facts, right ones, is wrong then. The
    probabilities of all facts move a little.
    """
    rows, good = table.rows, "uninformative" if unseen else "correct"
    right = np.array([row.label == good for row in rows])
    differ = 2 * right.mean() * (1 - right.mean())
    anew = rng.random(len(rows)) < (min(flips / differ, 1.0) if differ else flips)
    donors = rng.integers(0, len(rows), len(rows))
    lost = right & (rng.random(len(rows)) < (loss / right.mean() if loss else 0.0))
    wrong = np.flatnonzero(~right)
    replaced = np.where(
        lost, rng.choice(wrong, len(rows)) if len(wrong) else donors, donors
    )
    moving = [table.columns.index(name) for name in MOVING if name in table.columns]

    def row(index: int) -> Outcome:
        source = rows[replaced[index]] if anew[index] or lost[index] else rows[index]
        values = np.array(source.values)
        values[moving] += rng.normal(0, JITTER, len(moving))
        return dataclasses.replace(
            rows[index], values=tuple(values.tolist()), label=source.label
        )

    return Table(columns=table.columns, rows=tuple(map(row, range(len(rows)))))


def null_sessions(world: World, count: int, flips: float) -> dict[str, float]:
    """Shares of inconclusive and of red slices, of red sessions, and of those red by a slice."""
    rng = np.random.default_rng([9, int(1000 * flips)])
    slices = over = 0
    seen: Counter[str] = Counter()
    for _ in range(count):
        results, aggregates = world.session(rng, flips)
        slices, over = slices + len(results), over + len(aggregates)
        seen.update(results)
        seen.update(f"over {verdict}" for verdict in aggregates)
        seen["session"] += "fail" in results or "fail" in aggregates
        seen["by a slice"] += "fail" in results
    strange = seen.keys() - {"pass", "fail", "inconclusive", "session", "by a slice"}
    assert all(
        name.removeprefix("over ") in ("pass", "fail", "inconclusive")
        for name in strange
    ), seen
    return {
        "inconclusive": seen["inconclusive"] / slices,
        "red": seen["fail"] / slices,
        "over inconclusive": seen["over inconclusive"] / over,
        "session": seen["session"] / count,
        "by a slice": seen["by a slice"] / count,
    }


def losses(world: World, draws: int, flips: float, loss: float) -> tuple[float, int]:
    """The share of red slices of 120 facts that lost so many, and how many slices there are."""
    rng = np.random.default_rng([10, int(1000 * flips), int(1000 * loss)])
    cases = [
        case
        for case in world.suite.cases
        if case.probe == "head_to_tail" and len(case.facts) == 120
    ]
    red = [
        world.case(case, rng, flips, loss)[0] == "fail"
        for case in cases
        for _ in range(draws)
    ]
    return sum(red) / len(red), len(cases)
