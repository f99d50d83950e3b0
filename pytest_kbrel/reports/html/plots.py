"""Plots of the figures of cases: differences, buckets, relations, and models of a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pytest_kbrel.catalogue.probes import probe_named, reliability_slice
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import BUCKETS, CaseResult, GateResult, MetricValue, Run
from pytest_kbrel.reports import reasons, view
from pytest_kbrel.reports.formatting import (
    count,
    metric_title,
    number,
)
from pytest_kbrel.reports.html.svg import (
    Plot,
    Point,
    Scale,
    Shares,
    scale_over,
)

# Figures over all slices of models of a paper, by name of the model and setting it was asked in.
Published = Mapping[tuple[str, str], Mapping[str, float]]
_SHARES = {"accuracy": "right", "hallucination": "wrong", "missing": "missing"}
# So many relations have a label: more hardly find a place.
_MOST_LABELS = 8


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the forest plot. Numbers are towards what is better: below zero is worse.

    ``allowed`` is where the tolerance ends, ``None`` without a gate on this difference.
    """

    case: CaseResult
    value: MetricValue
    gate: GateResult | None
    at: float
    low: float
    high: float
    allowed: float | None


def forest(run: Run) -> tuple[list[Difference], Scale]:
    """Return the differences to the baseline of all key metrics, failed ones first, and their scale."""
    ranked: list[tuple[int, object, Difference]] = []
    for case in view.ordered(run):
        for value in view.key_figures(case):
            gate = _gate_on(case, value.name)
            if row := _difference(case, value, gate):
                rank = SEVERITY.index(gate.verdict) if gate else len(SEVERITY)
                ranked.append((rank, reasons.natural(case.nodeid), row))
    rows = [row for *_, row in sorted(ranked, key=lambda one: one[:2])]
    ends = [end for row in rows for end in (row.low, row.high, row.allowed or 0.0)]
    return rows, scale_over([*ends, 0.0], 0, 100)


def _difference(
    case: CaseResult, value: MetricValue, gate: GateResult | None
) -> Difference | None:
    if value.delta is None or value.delta_low is None or value.delta_high is None:
        return None
    sign = 1 if value.better == "higher" else -1
    low, high = sorted((sign * value.delta_low, sign * value.delta_high))
    allowed = None if gate is None else -gate.bound
    if gate is not None and GATE_RULES[gate.rule].ratio:
        allowed = -(1 - gate.bound) * abs(value.baseline or 0.0)
    return Difference(
        case=case,
        value=value,
        gate=gate,
        at=sign * value.delta,
        low=low,
        high=high,
        allowed=allowed,
    )


def _gate_on(case: CaseResult, name: str) -> GateResult | None:
    """Return the worst of the gates on a metric's difference."""
    gates = [
        gate
        for gate in case.gates
        if gate.metric == name and GATE_RULES[gate.rule].relative
    ]
    return min(gates, key=lambda gate: SEVERITY.index(gate.verdict), default=None)


def figure_plots(run: Run, published: Published) -> Iterator[Plot]:
    """Yield the plots that there are figures for."""
    yield from _buckets(run)
    yield from _framing(run)
    for x, y in (("ncr", "ur"), ("nccr", "iur")):
        yield from _beside_published(run, published, x, y)


def _known(case: CaseResult, *names: str) -> list[MetricValue]:
    """Return the metrics of these names that have a value."""
    values = (view.metric(case, name) for name in names)
    return [value for value in values if value is not None and value.value is not None]


def _buckets(run: Run) -> Iterator[Plot]:
    """Yield right, wrong and missing answers by bucket, over all domains."""
    by_bucket: dict[str, list[CaseResult]] = {bucket: [] for bucket in BUCKETS}
    for case in view.slices(run):
        probe = probe_named(case.probe)
        if probe is not None and probe.slicing == "bucket":
            part = probe.part(case.slice)
            if part in by_bucket and len(_known(case, *_SHARES)) == len(_SHARES):
                by_bucket[part].append(case)
    by_bucket = {bucket: cases for bucket, cases in by_bucket.items() if cases}
    if not by_bucket:
        return
    stacks = [
        (
            bucket,
            sum(case.n for case in cases),
            _shares(cases, "value"),
            _shares(cases, "baseline"),
        )
        for bucket, cases in by_bucket.items()
    ]
    words = tuple(_SHARES.values())
    yield Plot(
        name="buckets",
        title="Right, wrong and missing by popularity",
        note="The broad bar is this run, the narrow one below it the baseline.",
        about="Right, wrong and missing answers by popularity, the run above its baseline",
        x="share of answers",
        stacks=stacks,
        heads=("bucket", "facts", *words, *(f"{word}, baseline" for word in words)),
        rows=[
            (bucket, str(facts), *(number(share) for _, share in (*now, *before)))
            for bucket, facts, now, before in stacks
        ],
    )


def _shares(cases: Sequence[CaseResult], of: Literal["value", "baseline"]) -> Shares:
    """Return the shares of right, wrong and missing answers of all cases; ``None`` where not known of all."""
    facts = sum(case.n for case in cases) or 1
    shares: list[tuple[str, float | None]] = []
    for name, word in _SHARES.items():
        parts = [(case.n, getattr(view.metric(case, name), of)) for case in cases]
        is_known = all(share is not None for _, share in parts)
        whole = sum(n * share for n, share in parts) / facts if is_known else None
        shares.append((word, whole))
    return shares


def _point(
    x: MetricValue, y: MetricValue, name: str, kind: str, label: str = ""
) -> Point:
    is_paired = x.baseline is not None and y.baseline is not None
    return Point(
        at=(x.value or 0.0, y.value or 0.0),
        name=name,
        kind=kind,
        label=label,
        before=(x.baseline or 0.0, y.baseline or 0.0) if is_paired else None,
    )


def _framing(run: Run) -> Iterator[Plot]:
    """Yield PFD against IRD, a point a relation."""
    points: list[Point] = []
    for case in sorted(view.slices(run), key=reasons.failed_first):
        known = _known(case, "pfd", "ird")
        if len(known) < 2:
            continue
        pfd, ird = known
        name = view.relation_title(case.slice, case.label)
        label = case.slice if len(points) < _MOST_LABELS else ""
        points.append(_point(pfd, ird, name, case.verdict, label))
    if not points:
        return
    yield Plot(
        name="framing",
        title="PFD against IRD",
        note=f"A point is one of {count(len(points), 'relation')} in this run, its ring the baseline's. "
        "Nearer to the lower left is steadier. Colour is the case's verdict.",
        points=points,
        about=f"PFD against IRD of {len(points)} relations; the baseline's are rings",
        x="PFD: how much the wording matters",
        y="IRD: how much a wrong context matters",
        heads=("relation", "PFD", "IRD"),
    )


def _prompt_of(case: CaseResult) -> str:
    """Return the prompt setting of the slices that a figure is over, that of the paper nearest to ``auto``."""
    slices = (
        reliability_slice(member.partition("[")[2].removesuffix("]"))
        for member in case.members
    )
    settings = (part.prompt for part in slices if part is not None)
    return next((setting for setting in settings if setting != "auto"), "zero-shot")


def _beside_published(run: Run, published: Published, x: str, y: str) -> Iterator[Plot]:
    """Yield two figures over all slices before those of the models of the paper in the same setting."""
    titles = metric_title(x), metric_title(y)
    for case in view.aggregates(run):
        known = _known(case, x, y)
        if len(known) < 2:
            continue
        setting = _prompt_of(case)
        models = [
            Point((figures[x], figures[y]), name, "paper")
            for (name, asked), figures in published.items()
            if asked == setting and {x, y} <= set(figures)
        ]
        across, up = known
        yield Plot(
            name=f"published-{x}-{setting}",
            title=f"{titles[0]} and {titles[1]} beside published models",
            note=f"Grey: {len(models)} models of Zheng et al. (arXiv 2407.13578), {setting}, on their own "
            "questions. The other point is this run, the ring its baseline. Upper right is better.",
            about=f"{titles[0]} against {titles[1]} beside {len(models)} published models",
            x=f"{titles[0]}, known facts",
            y=f"{titles[1]}, unseen knowledge",
            points=[_point(across, up, "this run", case.verdict), *models],
            heads=("model", *titles),
        )
