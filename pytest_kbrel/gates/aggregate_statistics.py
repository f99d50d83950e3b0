"""The figures over several cases of one probe: which they are and how the papers combine them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pytest_kbrel import stats
from pytest_kbrel.catalogue.probes import RELIABILITY, TOP10, Probe, probe_named
from pytest_kbrel.gates.statistics import Figure
from pytest_kbrel.metrics import MetricFormula, metrics_for
from pytest_kbrel.metrics.reliability import average, c_wrong
from pytest_kbrel.records import BUCKETS, CaseResult, ProbeName

if TYPE_CHECKING:
    Combine = Callable[[Sequence[stats.Array]], stats.Array]

# A metric over the pooled facts of some members, by their numbers.
Term = tuple[MetricFormula, tuple[int, ...]]


def figures_over(cases: Sequence[CaseResult]) -> tuple[Figure, ...]:
    """Return the figures over ``cases``, all of one probe."""
    metrics = [
        {metric.name: metric for metric in metrics_for(case.probe, case.slice, case.table.columns)}
        for case in cases
    ]
    known = probe_named(cases[0].probe)
    assert known is not None
    over = _OVER.get(known.name)
    return over(metrics, [case.slice for case in cases]) if over else _means(metrics, known)


def _means(metrics: Sequence[dict[str, MetricFormula]], probe: Probe) -> tuple[Figure, ...]:
    """Plain means over the slices (MONITOR's Table 4 has their sum / 21, which looks like a slip)."""
    return tuple(
        _figure(name, [(of[name], (member,)) for member, of in enumerate(metrics)], _mean)
        for name in probe.overall_metrics
        if all(name in of for of in metrics)
    )


def _head_to_tail(metrics: Sequence[dict[str, MetricFormula]], slices: Sequence[str]) -> tuple[Figure, ...]:
    """Accuracy by bucket over the facts of all domains, the gap, and means over the buckets present.

    In the paper a domain's buckets are of equal size, so that its figures over all domains, which are over
    all facts ("micro"), are plain means of the buckets'. ``_macro`` is the plain mean over the domains, each
    the mean of its buckets. The top tenth belongs to the head: it has its own figure and counts in no other.
    """
    groups: dict[str, tuple[int, ...]] = {}
    domains: dict[str, list[int]] = {}
    for member, name in enumerate(slices):
        domain, _, bucket = name.rpartition("-")
        groups[bucket] = (*groups.get(bucket, ()), member)
        if bucket != TOP10:
            domains.setdefault(domain, []).append(member)
    top = groups.pop(TOP10, ())

    def terms(metric: str, *buckets: str) -> list[Term]:
        return [(metrics[groups[bucket][0]][metric], groups[bucket]) for bucket in buckets]

    figures = [
        _figure(f"accuracy_{bucket}", terms("accuracy", bucket), _mean)
        for bucket in BUCKETS
        if bucket in groups
    ]
    if top:
        figures.append(_figure(f"accuracy_{TOP10}", [(metrics[top[0]]["accuracy"], top)], _mean))
    if "head" in groups and "tail" in groups:
        figures.append(
            _figure(
                "gap",
                terms("accuracy", "head", "tail"),
                lambda values: values[0] - values[1],
                better="lower",
                bounds=(-1.0, 1.0),
            )
        )
    if not groups:
        return tuple(figures)
    names = ("accuracy", "hallucination", "missing")
    figures += [_figure(name, terms(name, *groups), _mean) for name in names]
    members = [member for group in domains.values() for member in group]
    weights = [1 / len(domains) / len(group) for group in domains.values() for _ in group]
    for name in names:
        single: list[Term] = [(metrics[member][name], (member,)) for member in members]
        figures.append(_figure(f"{name}_macro", single, lambda values: _weighted(values, weights)))
    return tuple(figures)


def _reliability(metrics: Sequence[dict[str, MetricFormula]], slices: Sequence[str]) -> tuple[Figure, ...]:
    """Seen and unseen figures over the pooled slices of their kind, and the two that need both."""
    kinds = [RELIABILITY.kind(name) for name in slices]
    seen = tuple(member for member, kind in enumerate(kinds) if kind == "seen")
    unseen = tuple(member for member, kind in enumerate(kinds) if kind == "unseen")

    def term(metric: str, group: tuple[int, ...]) -> Term:
        return metrics[group[0]][metric], group

    figures = []
    if seen:
        figures += [_figure(name, [term(name, seen)], _mean) for name in ("nccr", "ncr")]
    if unseen:
        figures += [_figure(name, [term(name, unseen)], _mean) for name in ("iur", "ur")]
    if seen and unseen:
        figures += [
            _figure(
                "c_wrong",
                [term("c_wrong", seen), term("c_wrong", unseen)],
                lambda values: c_wrong(values[0], values[1]),
            ),
            _figure(
                "avg",
                [term("nccr", seen), term("iur", unseen)],
                lambda values: average(values[0], values[1]),
            ),
        ]
    return tuple(figures)


# How papers combine slices, where it is not by plain means.
_OVER: dict[ProbeName, Callable[[Sequence[dict[str, MetricFormula]], Sequence[str]], tuple[Figure, ...]]] = {
    "head_to_tail": _head_to_tail,
    "reliability": _reliability,
}


def _mean(values: Sequence[stats.Array]) -> stats.Array:
    return _weighted(values, [1.0] * len(values)) / len(values)


def _weighted(values: Sequence[stats.Array], weights: Sequence[float]) -> stats.Array:
    # Not numpy's mean: the values have different shapes while one member's facts are left out in turn.
    total = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total = total + value * weight
    return total


def _figure(
    name: str,
    terms: Sequence[Term],
    combine: Combine,
    *,
    better: Literal["higher", "lower"] | None = None,
    bounds: tuple[float, float] | None = None,
) -> Figure:
    first = terms[0][0]

    def statistic(parts: stats.Parts) -> stats.Array:
        left = iter(parts)
        values = []
        for metric, group in terms:
            totals, n = next(left)
            for _ in group[1:]:
                more, facts = next(left)
                totals, n = totals + more, n + facts
            values.append(metric.formula(totals, n))
        return combine(values)

    return Figure(
        name=name,
        better=better or first.better,
        columns=tuple((member, metric.columns) for metric, group in terms for member in group),
        statistic=statistic,
        bounds=bounds or first.bounds,
        # Over the pooled facts of some members, and not a mean of their means.
        rate=first.rate and len(terms) == 1,
        over=first.over,
        undefined=f"{first.undefined} in one of the cases" if len(terms) > 1 else first.undefined,
        vacuous=first.vacuous,
    )
