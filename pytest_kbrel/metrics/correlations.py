"""Correlations of two figures over slices or models: the pairs that the papers ask about.

MONITOR (arXiv 2310.09820, Tables 4, 6, 12 and section 6.2), Head-to-Tail (arXiv 2308.10168, Table 8) and
Reliable KB (arXiv 2407.13578, Table 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pytest_kbrel.catalogue.probes import PROBES, probe_named
from pytest_kbrel.records import CaseResult, Correlation, ProbeName

Point = tuple[float | None, float | None]
Figures = Mapping[str, float | None]

FEWEST = 3
# Up to so many points Spearman's p counts all orders; beyond, it is that of Student's t.
MOST_ORDERS = 9


def correlate(
    x: str, y: str, points: Sequence[Point], *, over: str
) -> tuple[Correlation, Correlation]:
    """Return Pearson's and Spearman's correlation of two figures called ``x`` and ``y`` over ``points``.

    ``over`` says what the points are, in the plural. A point that lacks a figure (``None`` or NaN) is left
    out and counted in the note. ``p`` is two-sided, Spearman's exact up to nine
    points; ``r`` is ``None`` with fewer than three points, or where one figure is the same in all of them.
    """
    pairs = [(a, b) for a, b in points if a is not None and b is not None]
    pairs = [pair for pair in pairs if all(map(math.isfinite, pair))]
    omitted = len(points) - len(pairs)
    notes = (
        [f"{omitted} of {len(points)} {over} left out: they lack one of the figures"]
        if omitted
        else []
    )
    xs, ys = [a for a, _ in pairs], [b for _, b in pairs]
    # Figures that differ by rounding only have no order to correlate.
    constant = [
        name
        for name, values in ((x, xs), (y, ys))
        if pairs and max(values) - min(values) <= 1e-12 * max(map(abs, values))
    ]
    if len(pairs) < FEWEST:
        notes.insert(0, f"not enough {over}: {len(pairs)}, and {FEWEST} are needed")
    elif constant:
        notes.insert(
            0,
            f"{' and '.join(constant)} {'is' if len(constant) == 1 else 'are'} the same in all",
        )
    computed = not constant and len(pairs) >= FEWEST

    def one(method: Literal["pearson", "spearman"]) -> Correlation:
        r, p = _coefficient(method, xs, ys) if computed else (None, None)
        return Correlation(
            x=x,
            y=y,
            method=method,
            over=over,
            r=r,
            p=p,
            n=len(pairs),
            note="; ".join(notes),
        )

    return one("pearson"), one("spearman")


def correlations(
    probe: ProbeName, points: Sequence[Figures], *, over: str
) -> Iterator[tuple[Correlation, Correlation]]:
    """Yield both correlations of each of the probe's pairs over ``points``, which have figures by name.

    A pair brings none where no point has both figures, or where both are one (``accuracy_rules`` while the
    rules are the judge).
    """
    for x, y in PROBES[probe].pairs:
        pairs = [(point.get(x), point.get(y)) for point in points]
        if any(a is not None and b is not None and a != b for a, b in pairs):
            yield correlate(x, y, pairs, over=over)


def over_slices(cases: Iterable[CaseResult]) -> tuple[Correlation, ...]:
    """Return the correlations over the slices of one run, without aggregates and the top tenths of heads."""
    wanted = [case for case in cases if not case.aggregate and case.metrics]
    all_pairs: list[Correlation] = []
    for probe, table in PROBES.items():
        points = joined(
            case
            for case in wanted
            if case.probe == probe and table.part(case.slice) not in table.subsets
        )
        for pair in correlations(probe, list(points.values()), over="slices"):
            all_pairs += pair
    return tuple(all_pairs)


def joined(
    cases: Iterable[CaseResult],
) -> dict[tuple[str, ProbeName, str], dict[str, float | None]]:
    """Return the points that cases of probes make, by suite, probe and name.

    A slice of unseen knowledge makes one point with the known slice of the same group and setting, called by
    these: C_wrong is then that of both (:func:`pytest_kbrel.metrics.reliability.c_wrong`).
    """
    points: dict[tuple[str, ProbeName, str], dict[str, float | None]] = {}
    for case in cases:
        values, point, probe = case.figures, case.slice, probe_named(case.probe)
        assert probe is not None
        if len(probe.kinds) > 1:
            kind = probe.kind(point)
            point = point.removeprefix(kind).removeprefix("-") or "auto"
            values[f"c_wrong_{kind}"] = values.pop("c_wrong", None)
        points.setdefault((case.suite, probe.name, point), {}).update(values)
    for (_, name, _), point_figures in points.items():
        if len(kinds := PROBES[name].kinds) > 1:
            parts = [point_figures.pop(f"c_wrong_{kind}", None) for kind in kinds]
            known = [part for part in parts if part is not None]
            point_figures["c_wrong"] = sum(known) / len(known) if known else None
    return points


def _coefficient(
    method: Literal["pearson", "spearman"], xs: Sequence[float], ys: Sequence[float]
) -> tuple[float, float]:
    from scipy import stats

    test = stats.pearsonr(xs, ys) if method == "pearson" else stats.spearmanr(xs, ys)
    if method == "spearman" and len(xs) <= MOST_ORDERS:
        # The share of orders that are as close. Halves of ranks, doubled, are whole numbers: no rounding can
        # part two orders that are as close.
        first, second = (2 * stats.rankdata(of) - (len(of) + 1) for of in (xs, ys))
        others = np.abs(second[_orders(len(second))] @ first)
        return float(test.statistic), float(np.mean(others >= abs(second @ first)))
    return float(test.statistic), float(test.pvalue)


@lru_cache(maxsize=2)
def _orders(n: int) -> NDArray[np.int8]:
    return np.array(list(permutations(range(n))), dtype=np.int8)
