"""Coverage of the gates' 95 % intervals: computed for rates, drawn for all else. Part of gate_power.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import beta, binom, multinomial

from pytest_kbrel import stats
from pytest_kbrel.stats import Difference, Estimate, Sample
from pytest_kbrel.stats.paired_rates import tango
from tests.stats.samples import paired_difference

SLICES = 20
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
        values=cases,
        facts=tuple(
            tuple(f"{j}/{i}" for i in range(len(c))) for j, c in enumerate(cases)
        ),
    )


def several_questions(
    rng: Rng, n: int, drop: float, touched: float | None = None
) -> tuple[Array, Array]:
    """One to seven questions a fact; a touched fact is answered anew, and a lost one wrongly throughout."""
    questions = rng.integers(1, 8, n)
    knows = rng.beta(2, 1, (2, n))
    anew = rng.random(n) < (rng.uniform(0, 0.45) if touched is None else touched)
    before = rng.binomial(questions, knows[0])
    after = np.where(anew, rng.binomial(questions, knows[1]), before)
    after = np.where(rng.random(n) < drop / (2 / 3), 0, after)
    return np.stack([after, questions], 1).astype(float), np.stack(
        [before, questions], 1
    ).astype(float)


def monitors(rng: Rng, n: int, rise: float) -> tuple[Array, Array]:
    """MONITOR's sums: every fact's degree and anchor move a little; lower is better, the truth is 0.4."""

    def again(z: Array) -> Array:
        return 0.95 * z + math.sqrt(1 - 0.95**2) * rng.normal(size=n)

    z, w = rng.normal(size=(2, n))
    anchors = [beta.ppf(ndtr(v), 2, 1) for v in (again(z), z)]
    degrees = [beta.ppf(ndtr(again(w)), 2, 3) + rise, beta.ppf(ndtr(w), 2, 3)]
    after, before = (
        np.stack([a * d, a], 1) for a, d in zip(anchors, degrees, strict=True)
    )
    return after, before


def compared(
    pair: tuple[Array, Array], better: Any, bounds: tuple[float, float]
) -> Difference:
    """The difference of two ratios, as the gates have it."""
    after, before = pair
    return paired_difference(of(after), of(before), ratio, better=better, bounds=bounds)


def exact_coverage(n: int, down: float, up: float) -> list[float]:
    """Coverage of Tango's interval, and how often its lower and its upper end miss, over all outcomes."""
    most = [int(binom.ppf(1 - 1e-9, n, share)) + 1 for share in (down, up)]
    counts = [
        (d, u) for d in range(most[0] + 1) for u in range(most[1] + 1) if d + u <= n
    ]
    weights = multinomial.pmf(
        [(d, u, n - d - u) for d, u in counts], n, [down, up, 1 - down - up]
    )
    missed = np.zeros(2)
    for (d, u), weight in zip(counts, weights, strict=True):
        if weight > 1e-9:
            low, high = tango(n, d, u)
            missed += weight * np.array(
                [low > up - down + 1e-12, high < up - down - 1e-12]
            )
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
        return stats.estimate(
            of(np.stack([values, wrong], 1)), ratio, bounds=UNIT, facts=int(wrong.sum())
        )

    def several(rng: Rng, n: int) -> Estimate:
        return stats.estimate(of(several_questions(rng, n, 0.0)[1]), ratio, bounds=UNIT)

    def f1(rng: Rng, n: int) -> Estimate:
        which = rng.random(n)
        values = np.where(which < 0.6, 1.0, np.where(which < 0.75, rng.random(n), 0.0))
        return stats.estimate(of(np.stack([values, np.ones(n)], 1)), ratio, bounds=UNIT)

    yield "CCR: right x consistency, mean 0.42", 0.42, consistency
    yield "CWR: the same, mean 0.02", 0.02, rare
    yield "C_wrong: ratio over the 30 % wrong", 0.4, of_wrong
    yield "F1: 0, 1 or between, mean 0.675", 0.675, f1
    yield "accuracy over 1 to 7 questions a fact", 2 / 3, several
    yield (
        "MONITOR-like ratio",
        0.4,
        lambda rng, n: stats.estimate(
            of(monitors(rng, n, 0)[1]), ratio, bounds=POSITIVE
        ),
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
                compared(
                    several_questions(rng, n, drop, touched), "higher", UNIT
                ).estimate
            ),
        )
    for rise in (0.0, 0.02):
        yield (
            f"MONITOR-like ratio, rise {rise:.2f}",
            rise,
            lambda rng, n, rise=rise: (
                compared(monitors(rng, n, rise), "lower", POSITIVE).estimate
            ),
        )

    def macro(rng: Rng, n: int) -> Estimate:
        pairs = [several_questions(rng, n, 0.02, 0.05) for _ in range(SLICES)]
        after, before = (of(*(pair[run] for pair in pairs)) for run in (0, 1))
        return paired_difference(
            after, before, average, better="higher", bounds=UNIT, facts=n * SLICES
        ).estimate

    yield (
        f"the same questions, mean of {SLICES} slices, 5% touched, drop 0.02",
        -0.02,
        macro,
    )


def bootstrap(
    terms: Sequence[tuple[float, Sample]],
    statistic: stats.Statistic,
    *,
    seed: int,
    draws: int = 2000,
) -> list[float]:
    """Return the percentile interval of a weighted sum of ``statistic``, the same facts drawn in all terms."""
    rng = np.random.default_rng(seed)
    first = terms[0][1]
    times = rng.multinomial(first.n, np.full(first.n, 1 / first.n), size=draws)
    drawn = sum(
        weight
        * statistic(
            [
                (times[:, rows] @ values, times[:, rows].sum(axis=1))
                for rows, values in zip(one.clusters, one.values, strict=True)
            ]
        )
        for weight, one in terms
    )
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return [float(low), float(high)]


def against_bootstrap(draws: int) -> Iterator[tuple[str, int, float]]:
    """How far the ends of an interval are from the bootstrap's, in widths of it, on average."""
    makers: tuple[tuple[str, Callable[[Rng, int], Array], tuple[float, float]], ...] = (
        (
            "accuracy over 1 to 7 questions a fact",
            lambda rng, n: several_questions(rng, n, 0.0)[1],
            UNIT,
        ),
        ("MONITOR-like ratio", lambda rng, n: monitors(rng, n, 0)[1], POSITIVE),
    )
    for name, make, bounds in makers:
        for n in (100, 300):
            rng = np.random.default_rng([5, n])
            apart = []
            for number in range(max(draws // 20, 5)):
                rows = of(make(rng, n))
                ours = stats.estimate(rows, ratio, bounds=bounds)
                low, high = bootstrap([(1.0, rows)], ratio, seed=number)
                apart.append(
                    (abs(ours.low - low) + abs(ours.high - high)) / 2 / (high - low)
                )
            yield name, n, float(np.mean(apart))


def percent(value: float) -> str:
    """Return a share as the tables print it."""
    return f"{100 * value:.1f}"


def table(
    head: Sequence[str], rows: Sequence[Sequence[object]], words: int = 1
) -> list[str]:
    """Return a table in Markdown; the first ``words`` columns are words."""
    lines = [
        "| " + " | ".join(head) + " |",
        "|" + "---|" * words + "--:|" * (len(head) - words),
    ]
    return [*lines, *("| " + " | ".join(map(str, row)) + " |" for row in rows), ""]


def flagged(coverage: Sequence[float]) -> list[str]:
    """Coverage and misses; in bold where it is not within 93 to 97 %."""
    first = percent(coverage[0])
    return [
        first if 0.93 <= coverage[0] <= 0.97 else f"**{first}**",
        *map(percent, coverage[1:]),
    ]


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
    shares = (
        (0.005, 0.005),
        (0.02, 0.0),
        (0.02, 0.02),
        (0.05, 0.0),
        (0.05, 0.03),
        (0.1, 0.1),
        (0.12, 0.02),
    )
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
                    drawn_coverage(
                        draws,
                        [3, index, n],
                        truth,
                        lambda rng, n=n, draw=draw: draw(rng, n),
                    )
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
