"""The figures of statistics.md and gates.md, computed; ``python -m tests.stats.page_tables`` prints them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import bisect

from pytest_kbrel import stats
from pytest_kbrel.facts.sampling import sample
from pytest_kbrel.records import Fact

ROOT = Path(__file__).resolve().parents[2]
# The gates of the tables, in a suite file of so many cases that compare with a baseline.
CASES = 23
LEVEL = stats.sidak(CASES)
WITHIN, BEYOND, NEVER = 0.08, 0.02, 0.15
SLICES = 20
ZIPF = 1 / np.arange(1, 41)
Verdicts = Callable[[int, float, float], stats.RateVerdicts]


def world(n: int, flips: float, drop: float) -> stats.RateVerdicts:
    """Return the chances of verdicts with ``{within: 0.08, beyond: 0.02, never: 0.15}``."""
    return stats.rate_verdicts(
        n, flips, drop, within=WITHIN, beyond=BEYOND, never=NEVER, alpha=LEVEL
    )


def single(n: int, flips: float, drop: float) -> stats.RateVerdicts:
    """Return the chances of verdicts with ``max_drop: 0.05``."""
    return stats.rate_verdicts(n, flips, drop, within=0.05, beyond=0.025, alpha=LEVEL)


def judged(
    n: int, lost: int, gained: int, by_clusters: stats.ClusteredMean | None = None
) -> str:
    """Return the verdict on a slice of so many facts."""
    end, p = stats.tango(n, gained, lost)[1], stats.drop_p(n, lost, gained, BEYOND)
    if by_clusters is not None:
        end, p = (
            max(end, by_clusters.interval()[1]),
            max(p, by_clusters.p(BEYOND) or 0.0),
        )
    if not lost or end <= WITHIN:
        return "pass"
    if p < LEVEL:
        return "fail"
    return "fail, by `never`" if end > NEVER else "inconclusive"


def percent(share: float) -> str:
    return (
        f"{100 * share:.1f}" if 0.0005 <= share < 0.0995 else f"{abs(100 * share):.0f}"
    )


def row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def examples() -> Iterator[str]:
    for n, lost, gained in [
        (120, 0, 0),
        (120, 0, 1),
        (120, 6, 1),
        (120, 9, 0),
        (120, 14, 1),
        (400, 30, 4),
        (1000, 50, 5),
    ]:
        low, high = stats.tango(n, gained, lost)
        ps = [stats.drop_p(n, lost, gained, allowed) for allowed in (0.0, BEYOND)]
        shown = ["< 0.0001" if p < 0.0001 else f"{p:.4f}" for p in ps]
        yield row(
            n, lost, gained, f"{low:.3f} to {high:.3f}", *shown, judged(n, lost, gained)
        )


def facts_needed() -> Iterator[str]:
    for within in (0.02, 0.03, 0.05, 0.08, 0.10):
        needed = (
            [
                f"{stats.rate_facts_to_pass(flips, within, chance):,}"
                for chance in (0.8, 0.98)
            ]
            for flips in (0.01, 0.02, 0.05, 0.10)
        )
        yield row(within, *map(" / ".join, needed))


def found() -> Iterator[str]:
    for n, flips in [
        (51, 0.02),
        (100, 0.02),
        (100, 0.05),
        (100, 0.10),
        (120, 0.05),
        (200, 0.05),
        (400, 0.05),
        (1000, 0.05),
    ]:
        yield row(
            f"{n:,}",
            f"{flips:.0%}".replace("%", " %"),
            percent(world(n, flips, 0).passed),
            *(
                percent(1 - (1 - world(n, flips, drop).red) ** SLICES)
                for drop in (0, BEYOND)
            ),
            *(percent(world(n, flips, drop).red) for drop in (0.05, 0.10, 0.15)),
            f"{worst_end(n, flips):.3f}",
        )


def worst_end(n: int, flips: float) -> float:
    """Return the median of the largest worse end that 20 unchanged slices show."""
    return bisect(
        lambda end: stats.rate_within(n, flips, end) ** SLICES - 0.5,
        0.001,
        0.5,
        xtol=1e-5,
    )


def single_number() -> Iterator[str]:
    for n in (100, 200, 400, 1000):
        chances = [single(n, 0.05, drop) for drop in (0, 0.025, 0.05, 0.10, 0.15)]
        yield row(
            f"{n:,}", *(f"{percent(of.red)} / {percent(of.passed)}" for of in chances)
        )


def drawn_spread() -> Iterator[str]:
    facts: dict[str, list[Fact]] = {}
    for line in (
        (ROOT / "suites/world/facts.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        of = json.loads(line)
        names = {key: of[key] for key in ("relation", "subject", "object")}
        facts.setdefault(of["relation"], []).append(
            Fact(id=of.get("id") or f"{of['relation']}:{of['subject']}", **names)
        )
    for relation in ("P17", "P131", "P37", "P38", "P30", "P282"):
        draws = (
            sample(facts[relation], 100, 0, cluster) for cluster in ("fact", "object")
        )
        yield row(
            relation,
            len(facts[relation]),
            *(f"{effective(draw):.0f}" for draw in draws),
        )


def effective(facts: Sequence[Fact]) -> float:
    """Return how many answers with equally many facts each these facts are worth."""
    sizes = np.unique([fact.cluster("object") for fact in facts], return_counts=True)[1]
    return float(len(facts) ** 2 / np.square(sizes).sum())


def clusters_of_sizes(n: int, sizes: np.ndarray) -> np.ndarray:
    """Return the number of each fact's cluster, whose sizes are about proportional to ``sizes``."""
    counts = np.maximum(1, np.floor(sizes / sizes.sum() * n)).astype(int)
    counts[0] += n - counts.sum()
    return np.repeat(np.arange(len(sizes)), counts)


def tossed(
    objects: np.ndarray, flips: float, together: float, rng: np.random.Generator
) -> np.ndarray:
    """Return what each fact lost, where nothing is lost on average; ``together`` is the share of objects
    whose facts change in one direction."""
    count = objects.max() + 1
    shared, own = (
        np.sign(rng.random(count) - 0.5)[objects],
        np.sign(rng.random(len(objects)) - 0.5),
    )
    signs = np.where((rng.random(count) < together)[objects], shared, own)
    return np.where(rng.random(len(objects)) < flips, signs, 0.0)


def simulated_alarms(runs: int = 3000) -> Iterator[str]:
    objects = clusters_of_sizes(200, ZIPF)
    bets = np.linspace(0, 1, 21)[1:-1]
    for together in (0.0, 0.1, 0.5):
        rng = np.random.default_rng(0)
        alarms, changes = np.zeros(3), []
        for _ in range(runs):
            lost = tossed(objects, 0.2, together, rng)
            by_fact = stats.mcnemar(int((lost > 0).sum()), int((lost < 0).sum()))
            by_object = stats.clustered_mean(lost, objects).p(0.0) or 0.0
            alarms += np.array([by_fact, by_object, max(by_fact, by_object)]) < 0.025
            changes.append(lost[np.argsort(rng.random(200))])
        sequential = (
            mixed_bets(np.array(changes), bets) >= -np.log(stats.sidak(20))
        ).mean()
        yield row(
            f"{together:.0%}".replace("%", " %"),
            *map(percent, [*(alarms / runs), sequential]),
        )


def simulated_steps(runs: int = 10_000) -> tuple[int, int, int]:
    """Return in how many of ``runs`` one more lost fact makes the verdict better, lowers the worse end of the
    interval, and raises p, of random tables of facts in clusters."""
    rng = np.random.default_rng(0)
    order = ["pass", "inconclusive", "fail, by `never`", "fail"]
    counts = np.zeros(3, dtype=int)
    for _ in range(runs):
        n = 50 + int(250 * rng.random())
        groups = 8 + int((n / 2 - 8) * rng.random())
        objects = clusters_of_sizes(
            n, 1 / np.arange(1, groups + 1) ** (rng.random() < 0.5)
        )
        lost = tossed(
            objects,
            0.02 + 0.18 * rng.random(),
            (0.0, 0.1, 0.3)[int(3 * rng.random())],
            rng,
        )
        lost[(lost == 0) & (rng.random(n) < 0.15 * rng.random())] = 1
        more = lost.copy()
        more[np.flatnonzero(lost == 0)[int((lost == 0).sum() * rng.random())]] = 1
        before, after = (figures(of, objects) for of in (lost, more))
        verdicts = [min(order.index(of[0]), 2) for of in (before, after)]
        counts += [
            verdicts[1] < verdicts[0],
            after[1] < before[1] - 1e-9,
            after[2] > before[2] + 1e-9,
        ]
    return int(counts[0]), int(counts[1]), int(counts[2])


def figures(lost: np.ndarray, objects: np.ndarray) -> tuple[str, float, float]:
    """Return verdict, worse end and p of a slice, by facts and by clusters."""
    n, down, up = len(lost), int((lost > 0).sum()), int((lost < 0).sum())
    clustered = stats.clustered_mean(lost, objects)
    end = max(stats.tango(n, up, down)[1], clustered.interval()[1])
    p = max(stats.drop_p(n, down, up, BEYOND), clustered.p(BEYOND) or 0.0)
    return judged(n, down, up, clustered), end, p


def simulated_steps_told() -> Iterator[str]:
    runs = 10_000
    better, end, p = simulated_steps(runs)
    yield (
        f"of {runs:,} random slices with clusters one more lost fact lowered the worse end in "
        f"{end / runs:.1%}, "
        f"raised p in {p / runs:.1%}, and made the verdict better in {better / runs:.2%}"
    ).replace("%", " %")


def shrunk(runs: int = 4000) -> Iterator[str]:
    for n in (120, 200, 400):
        rng = np.random.default_rng(0)
        drop = np.zeros(SLICES)
        drop[0] = 0.05
        gain = (0.05 - drop) / 2
        lost = rng.binomial(n, (gain + drop)[:, None], (SLICES, runs))
        gained = rng.binomial(n - lost, (gain / (1 - gain - drop))[:, None])
        drops = (lost - gained) / n
        variance = np.maximum((lost + gained) / n - drops**2, 1 / n) / n
        between = np.maximum(drops.var(axis=0, ddof=1) - variance.mean(axis=0), 1e-9)
        weight = between / (between + variance)
        precision = 1 / (between + variance)
        mean = (drops * precision).sum(axis=0) / precision.sum(axis=0)
        ends = weight * drops + (1 - weight) * mean + 1.96 * np.sqrt(weight * variance)
        alone = single(n, 0.05, 0.05).passed
        yield row(n, percent(alone), percent(float((ends[0] <= 0.05).mean())))


def betting(runs: int = 2000) -> Iterator[str]:
    for n, within in ((120, 0.08), (200, 0.05), (400, 0.05)):
        rng = np.random.default_rng(0)
        draws = rng.random((runs, n))
        lost = np.where(draws < 0.025, 1.0, np.where(draws < 0.05, -1.0, 0.0))
        bets = np.linspace(0, 1 / (1 - within), 41)[1:-1]
        passed = (mixed_bets(within - lost, bets) >= -np.log(0.025)).mean()
        yield row(
            n,
            within,
            percent(stats.rate_within(n, 0.05, within)),
            percent(float(passed)),
        )


def mixed_bets(gains: np.ndarray, bets: np.ndarray) -> np.ndarray:
    """Return the logarithm of the most that each run's bets are ever worth, in equal parts on ``bets``."""
    wealth = np.full(gains.shape, -np.inf)
    for bet in bets:
        wealth = np.logaddexp(wealth, np.cumsum(np.log1p(bet * gains), axis=1))
    return np.asarray(wealth.max(axis=1) - np.log(len(bets)))


# The names of those that take seconds begin with "simulated".
TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    of.__name__: of
    for of in (
        examples,
        facts_needed,
        found,
        single_number,
        drawn_spread,
        simulated_alarms,
        simulated_steps_told,
        shrunk,
        betting,
    )
}

if __name__ == "__main__":
    for name, table in TABLES.items():
        print(f"\n{name}", *table(), sep="\n", flush=True)
