"""How often the gates raise a false alarm, miss a drop, and how often their intervals hold the truth.

    OMP_NUM_THREADS=1 python benchmarks/gate_power.py
    python benchmarks/gate_power.py --sessions 200 --draws 200 --out /tmp

Pairs of runs are simulated whose true difference is known, and judged by the functions that the gates use:
`fail` when p is below Šidák's level and the drop above the tolerance, `pass` when the worse end of the 95 %
interval is within it. Beside them stand a fixed tolerance of 0.02, and a z test of two independent runs at
5 %. Coverage of rates is computed from all outcomes there can be, everything else is drawn, seeded.
Writes gate_power.md and gate_power.svg.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gate_power_plot import plot
from scipy.special import ndtr, ndtri
from scipy.stats import beta, binom, multinomial

from pytest_kbrel import stats
from pytest_kbrel.stats import Difference, Estimate, Flips, Sample

SLICES, TOLERANCE = 20, 0.02
SIZES = (100, 1000)
ALPHA = stats.sidak(SLICES)
Z = "unpaired z at 5 %"
UNIT, POSITIVE = (0.0, 1.0), (0.0, math.inf)
Array = Any
Rng = np.random.Generator


def ratio(parts: Any) -> Array:
    """The first column's sum over the second's, all cases pooled."""
    totals = sum(t for t, _ in parts)
    return totals[..., 0] / totals[..., 1]


def average(parts: Any) -> Array:
    """The plain mean of the cases' ratios."""
    return sum(t[..., 0] / t[..., 1] for t, _ in parts) / len(parts)


def of(*cases: Array) -> Sample:
    """Rows (above, below) of one case or more, all of different facts."""
    return Sample(
        values=cases, facts=tuple(tuple(f"{j}/{i}" for i in range(len(c))) for j, c in enumerate(cases))
    )


# What is simulated: a pair of runs with a true drop, as rows (above, below) of each.


def rates(rng: Rng, n: int, drop: float, flips: float | None = None, p: float | None = None) -> Flips:
    """Each fact right or wrong; ``flips`` of them change for no reason, as many each way."""
    p = rng.uniform(0.3, 0.9) if p is None else p
    noise = (rng.uniform(0, 0.2) if flips is None else flips) / 2
    noise = min(noise, (1 - p) * 0.9, (p - drop) * 0.9)
    down, up, both, _ = rng.multinomial(n, [noise + drop, noise, p - noise - drop, 1 - p - noise])
    return Flips(n=n, down=int(down), up=int(up), both=int(both))


def clusters(rng: Rng, n: int, drop: float, touched: float | None = None) -> tuple[Array, Array]:
    """One to seven questions a fact; a touched fact is answered anew, and a lost one wrongly throughout."""
    questions = rng.integers(1, 8, n)
    knows = rng.beta(2, 1, (2, n))
    anew = rng.random(n) < (rng.uniform(0, 0.45) if touched is None else touched)
    before = rng.binomial(questions, knows[0])
    after = np.where(anew, rng.binomial(questions, knows[1]), before)
    after = np.where(rng.random(n) < drop / (2 / 3), 0, after)
    return np.stack([after, questions], 1).astype(float), np.stack([before, questions], 1).astype(float)


def monitors(rng: Rng, n: int, rise: float) -> tuple[Array, Array]:
    """MONITOR's sums: every fact's degree and anchor move a little; lower is better, the truth is 0.4."""

    def again(z: Array) -> Array:
        return 0.95 * z + math.sqrt(1 - 0.95**2) * rng.normal(size=n)

    z, w = rng.normal(size=(2, n))
    anchors = [beta.ppf(ndtr(v), 2, 1) for v in (again(z), z)]
    degrees = [beta.ppf(ndtr(again(w)), 2, 3) + rise, beta.ppf(ndtr(w), 2, 3)]
    after, before = (np.stack([a * d, a], 1) for a, d in zip(anchors, degrees, strict=True))
    return after, before


def compared(pair: tuple[Array, Array], better: Any, bounds: tuple[float, float]) -> Difference:
    """The difference of two ratios, as the gates have it."""
    after, before = pair
    return stats.paired_difference(of(after), of(before), ratio, better=better, alpha=ALPHA, bounds=bounds)


# The ways to gate. Each takes the drop and what it needs of the rest.


def by_difference(
    difference: Difference, better: str, alpha: float = ALPHA, tolerance: float = TOLERANCE
) -> str:
    """The product's: fail, pass or inconclusive."""
    delta = difference.estimate
    sign = -1 if better == "higher" else 1
    drop = sign * delta.value
    if drop > tolerance and difference.p < alpha:
        return "fail"
    worst = -delta.low if better == "higher" else delta.high
    return "pass" if worst <= tolerance else "inconclusive"


def by_counts(flips: Flips, alpha: float = ALPHA, tolerance: float = TOLERANCE) -> str:
    """The same of a rate, of which only the counts matter."""
    low, high = stats.tango(flips.n, flips.down, flips.up)
    value = (flips.up - flips.down) / flips.n
    difference = Difference(
        estimate=Estimate(value=value, low=low, high=high), p=stats.mcnemar(flips.down, flips.up)
    )
    return by_difference(difference, "higher", alpha, tolerance)


def z_of_counts(flips: Flips) -> float:
    """The z test of two independent rates, as if the facts were not the same."""
    after, before = (flips.both + flips.up) / flips.n, (flips.both + flips.down) / flips.n
    pooled = (after + before) / 2
    return (before - after) / math.sqrt(max(2 * pooled * (1 - pooled) / flips.n, 1e-12))


def z_of_rows(pair: tuple[Array, Array], better: str) -> float:
    """The z test of two independent ratios."""
    after, before = (stats.jackknife([(1.0, of(run))], ratio) for run in pair)
    drop = (before.value - after.value) * (1 if better == "higher" else -1)
    return drop / math.hypot(after.se, before.se)


def one_slice(kind: str, rng: Rng, n: int, drop: float) -> tuple[Callable[..., str], float, float]:
    """The product's verdict as a function of its settings, the drop seen, and the unpaired z."""
    if kind == "rate":
        flips = rates(rng, n, drop)
        return (lambda **how: by_counts(flips, **how)), (flips.down - flips.up) / n, z_of_counts(flips)
    better, bounds = ("higher", UNIT) if kind == "clusters" else ("lower", POSITIVE)
    pair = clusters(rng, n, drop) if kind == "clusters" else monitors(rng, n, drop)
    comparison = compared(pair, better, bounds)
    drop_seen = comparison.estimate.value * (-1 if better == "higher" else 1)
    return (lambda **how: by_difference(comparison, better, **how)), drop_seen, z_of_rows(pair, better)


def sizes(rng: Rng) -> list[int]:
    """The facts of the slices of a session, 100 to 1,000, as many small ones as large."""
    return np.exp(rng.uniform(*np.log(SIZES), SLICES)).astype(int).tolist()


KINDS = {"rate": "rates", "clusters": "1 to 7 questions a fact", "monitor": "MONITOR-like ratio"}


def sessions(count: int) -> Iterator[tuple[str, list[float]]]:
    """Of sessions in which nothing truly changed, the share with at least one alarm."""
    for number, (kind, name) in enumerate(KINDS.items()):
        rng = np.random.default_rng([1, number])
        alarms = np.zeros(4)
        for _ in range(count):
            slices = [one_slice(kind, rng, n, 0.0) for n in sizes(rng)]
            alarms += [
                any(verdict(tolerance=0.0) == "fail" for verdict, _, _ in slices),
                any(verdict() == "fail" for verdict, _, _ in slices),
                any(drop > TOLERANCE for _, drop, _ in slices),
                any(z > ndtri(0.95) for _, _, z in slices),
            ]
        yield name, (alarms / count).tolist()


def power(draws: int, drops: Sequence[float]) -> Iterator[tuple[int, bool, float, list[float]]]:
    """Shares of fail, pass, and the other ways' alarms, by facts a slice, pooling and true drop."""
    for n in (100, 300, 1000):
        for pooled in (False, True):
            rng = np.random.default_rng([2, n, pooled])
            facts = n * SLICES if pooled else n
            for drop in drops:
                counts = np.zeros(4)
                for _ in range(draws):
                    flips = rates(rng, facts, drop, flips=0.05, p=0.7)
                    verdict = by_counts(flips)
                    counts += [
                        verdict == "fail",
                        verdict == "pass",
                        (flips.down - flips.up) / facts > TOLERANCE,
                        z_of_counts(flips) > ndtri(0.95),
                    ]
                yield n, pooled, drop, (counts / draws).tolist()


def exact_coverage(n: int, down: float, up: float) -> list[float]:
    """Coverage of Tango's interval, and how often its lower and its upper end miss, over all outcomes."""
    most = [int(binom.ppf(1 - 1e-9, n, share)) + 1 for share in (down, up)]
    counts = [(d, u) for d in range(most[0] + 1) for u in range(most[1] + 1) if d + u <= n]
    weights = multinomial.pmf([(d, u, n - d - u) for d, u in counts], n, [down, up, 1 - down - up])
    missed = np.zeros(2)
    for (d, u), weight in zip(counts, weights, strict=True):
        if weight > 1e-9:
            low, high = stats.tango(n, d, u)
            missed += weight * np.array([low > up - down + 1e-12, high < up - down - 1e-12])
    return [1 - missed.sum(), *missed]


def exact_wilson(n: int, rate: float) -> list[float]:
    """The same of Wilson's interval."""
    hits = np.arange(n + 1)
    ends = np.array([stats.wilson(int(hit), n) for hit in hits])
    weights = binom.pmf(hits, n, rate)
    missed = [weights[ends[:, 0] > rate].sum(), weights[ends[:, 1] < rate].sum()]
    return [1 - sum(missed), *missed]


def drawn_coverage(
    draws: int, seed: Sequence[int], truth: float, draw: Callable[[Rng], Estimate]
) -> list[float]:
    """The same of any interval, over seeded draws."""
    rng = np.random.default_rng(list(seed))
    missed = np.zeros(2)
    for _ in range(draws):
        interval = draw(rng)
        missed += [interval.low > truth, interval.high < truth]
    return [1 - missed.sum() / draws, *(missed / draws)]


def singles() -> Iterator[tuple[str, float, Callable[[Rng, int], Estimate]]]:
    """Figures of one run: name, truth, and an estimate from n facts."""

    def right(rng: Rng, n: int, share: float) -> Array:
        return (rng.random(n) < share).astype(float)

    def consistency(rng: Rng, n: int) -> Estimate:
        values = right(rng, n, 0.6) * rng.binomial(7, 0.7, n) / 7
        return stats.estimate(of(np.stack([values, np.ones(n)], 1)), ratio, bounds=UNIT)

    def rare(rng: Rng, n: int) -> Estimate:
        values = right(rng, n, 0.05) * rng.binomial(7, 0.4, n) / 7
        return stats.estimate(of(np.stack([values, np.ones(n)], 1)), ratio, bounds=UNIT)

    def of_wrong(rng: Rng, n: int) -> Estimate:
        wrong = right(rng, n, 0.3)
        values = wrong * rng.binomial(7, 0.4, n) / 7
        return stats.estimate(of(np.stack([values, wrong], 1)), ratio, bounds=UNIT, facts=int(wrong.sum()))

    def questions(rng: Rng, n: int) -> Estimate:
        return stats.estimate(of(clusters(rng, n, 0.0)[1]), ratio, bounds=UNIT)

    def f1(rng: Rng, n: int) -> Estimate:
        which = rng.random(n)
        values = np.where(which < 0.6, 1.0, np.where(which < 0.75, rng.random(n), 0.0))
        return stats.estimate(of(np.stack([values, np.ones(n)], 1)), ratio, bounds=UNIT)

    yield "CCR: right x consistency, mean 0.42", 0.42, consistency
    yield "CWR: the same, mean 0.02", 0.02, rare
    yield "C_wrong: ratio over the 30 % wrong", 0.4, of_wrong
    yield "F1: 0, 1 or between, mean 0.675", 0.675, f1
    yield "accuracy over 1 to 7 questions a fact", 2 / 3, questions
    yield (
        "MONITOR-like ratio",
        0.4,
        lambda rng, n: stats.estimate(of(monitors(rng, n, 0)[1]), ratio, bounds=POSITIVE),
    )


def differences() -> Iterator[tuple[str, float, Callable[[Rng, int], Estimate]]]:
    """Figures against a baseline: name, true difference, and its estimate from n facts."""
    for touched, drop in ((0.05, 0.0), (0.05, 0.02), (0.4, 0.0), (0.2, 0.05)):
        # A touched fact that is also lost was right as often as any other.
        truth = -drop
        yield (
            f"1 to 7 questions a fact, {touched:.0%} touched, drop {drop:.2f}",
            truth,
            lambda rng, n, touched=touched, drop=drop: (
                compared(clusters(rng, n, drop, touched), "higher", UNIT).estimate
            ),
        )
    for rise in (0.0, 0.02):
        yield (
            f"MONITOR-like ratio, rise {rise:.2f}",
            rise,
            lambda rng, n, rise=rise: compared(monitors(rng, n, rise), "lower", POSITIVE).estimate,
        )

    def macro(rng: Rng, n: int) -> Estimate:
        pairs = [clusters(rng, n, 0.02, 0.05) for _ in range(SLICES)]
        after, before = (of(*(pair[run] for pair in pairs)) for run in (0, 1))
        return stats.paired_difference(
            after, before, average, better="higher", bounds=UNIT, facts=n * SLICES
        ).estimate

    yield f"the same questions, mean of {SLICES} slices, 5% touched, drop 0.02", -0.02, macro


def against_bootstrap(draws: int) -> Iterator[tuple[str, int, float]]:
    """How far the ends of an interval are from the bootstrap's, in widths of it, on average."""
    makers: tuple[tuple[str, Callable[[Rng, int], Array], tuple[float, float]], ...] = (
        ("accuracy over 1 to 7 questions a fact", lambda rng, n: clusters(rng, n, 0.0)[1], UNIT),
        ("MONITOR-like ratio", lambda rng, n: monitors(rng, n, 0)[1], POSITIVE),
    )
    for name, make, bounds in makers:
        for n in (100, 300):
            rng = np.random.default_rng([5, n])
            apart = []
            for number in range(max(draws // 20, 5)):
                rows = of(make(rng, n))
                ours = stats.estimate(rows, ratio, bounds=bounds)
                low, high = stats.bootstrap([(1.0, rows)], ratio, seed=number)
                apart.append((abs(ours.low - low) + abs(ours.high - high)) / 2 / (high - low))
            yield name, n, float(np.mean(apart))


def percent(value: float) -> str:
    """Return a share as the tables print it."""
    return f"{100 * value:.1f}"


def table(head: Sequence[str], rows: Sequence[Sequence[object]], words: int = 1) -> list[str]:
    """Return a table in Markdown; the first ``words`` columns are words."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * words + "--:|" * (len(head) - words)]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def flagged(coverage: Sequence[float]) -> list[str]:
    """Coverage and misses; in bold where it is not within 93 to 97 %."""
    first = percent(coverage[0])
    return [first if 0.93 <= coverage[0] <= 0.97 else f"**{first}**", *map(percent, coverage[1:])]


def coverage(draws: int) -> Iterator[str]:
    """All coverage tables."""
    misses = ("coverage", "low end above", "high end below")
    yield "### Rates of one run (Wilson), computed\n"
    rows = [
        [n, rate, *flagged(exact_wilson(n, rate))]
        for n in (30, 100, 300, 1000)
        for rate in (0.05, 0.2, 0.5, 0.9)
    ]
    yield from table(["facts", "true rate", *misses], rows, 0)
    yield "### Paired differences of rates (Tango), computed\n"
    shares = ((0.005, 0.005), (0.02, 0.0), (0.02, 0.02), (0.05, 0.0), (0.05, 0.03), (0.1, 0.1), (0.12, 0.02))
    rows = [
        [n, percent(down), percent(up), *flagged(exact_coverage(n, down, up))]
        for n in (30, 100, 300, 1000)
        for down, up in shares
    ]
    yield from table(["facts", "lost, %", "gained, %", *misses], rows, 0)
    for title, figures in (
        ("Other figures of one run", singles()),
        ("Other paired differences", differences()),
    ):
        yield f"### {title}, {draws:,} draws\n"
        rows = [
            [
                name,
                n,
                *flagged(
                    drawn_coverage(draws, [3, index, n], truth, lambda rng, n=n, draw=draw: draw(rng, n))
                ),
            ]
            for index, (name, truth, draw) in enumerate(figures)
            for n in ((50, 100, 300, 1000) if "slices" not in name else (50, 100))
        ]
        yield from table(["figure", "facts", *misses], rows)
    yield "### Beside a seeded bootstrap\n"
    yield "Mean distance of an end from that of the percentile bootstrap (2,000 draws), in widths of it.\n"
    rows = [[name, n, f"{apart:.3f}"] for name, n, apart in against_bootstrap(draws)]
    yield from table(["figure", "facts", "distance"], rows)


def main() -> None:
    """Simulate, and write the table and the plot."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=3000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    begun = time.monotonic()

    alarms = list(sessions(given.sessions))
    noise = 1.96 * math.sqrt(0.05 * 0.95 / given.sessions)
    rates = list(power(given.draws, [point / 100 for point in range(11)]))
    lines = [
        "# What a gate finds, and what it makes up\n",
        "    OMP_NUM_THREADS=1 python benchmarks/gate_power.py\n",
        "Simulated pairs of runs whose true difference is known; the script says how they are made.\n",
        "![Alarms by true drop, and false alarms of a session](gate_power.svg)\n",
        "## False alarms of a session\n",
        f"{given.sessions:,} sessions of {SLICES} slices of 100 to 1,000 facts; nothing truly changed,",
        "though up to 20 % of the outcomes flip: in how many at least one slice fails, in %.",
        f"Where the truth is 5 %, simulation gives {percent(0.05 - noise)} to {percent(0.05 + noise)}.\n",
        *table(
            ["outcomes", "ours, tolerance 0", "ours, tolerance 0.02", "fixed tolerance 0.02", Z],
            [[name, *map(percent, shares)] for name, shares in alarms],
        ),
        "The z test takes the runs for independent, so its standard error is too large: uncorrected,",
        "it alarms seldom by luck, and misses the drops below. The fixed tolerance has no standard error.\n",
        "## Power\n",
        f"Of one slice, and of {SLICES} such slices pooled; 70 % right before, 5 % of the facts flip for no",
        f"reason. `max_drop: 0.02`, the level for {SLICES} comparisons; {given.draws:,} draws, shares in %.",
        "From a true drop of 0.02 on, `pass` is an error that should happen in no more than 2.5 %.\n",
        *table(
            ["facts", "true drop", "ours: fail", "ours: pass", "inconclusive", "fixed tolerance 0.02", Z],
            [
                [
                    f"{n * SLICES:,} pooled" if pooled else f"{n:,}",
                    f"{drop:.2f}",
                    *map(percent, (shares[0], shares[1], 1 - shares[0] - shares[1], *shares[2:])),
                ]
                for n, pooled, drop, shares in rates
                if drop in (0.0, 0.02, 0.05, 0.1)
            ],
        ),
        "## Coverage of the 95 % intervals\n",
        "In %, in bold outside of 93 to 97. The last two columns are the misses, ideally 2.5 % each.\n",
        *coverage(given.draws),
    ]
    (given.out / "gate_power.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    (given.out / "gate_power.svg").write_text(plot(rates, alarms), encoding="utf-8")
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
