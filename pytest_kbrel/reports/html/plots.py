"""The plots of a run: differences, popularity, wording against context, probabilities, and a paper's models."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from pytest_kbrel.catalogue.probes import probe_named, reliability_slice
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import (
    BUCKETS,
    CaseResult,
    GateResult,
    MetricValue,
    Table,
    record,
)
from pytest_kbrel.reports.formatting import metric, relation_title
from pytest_kbrel.reports.reasons import failed_first, natural
from pytest_kbrel.reports.view import View, key_figures

# The edges of the plane between two axes, in a drawing as wide as a telephone: its letters can be read there.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 328, 24, 262
_MOST_MARKS = 8

Spot = tuple[float, float]
Marks = Sequence[tuple[float, str]]


class Point(NamedTuple):
    """A point of a plot. ``before`` is where the baseline has it, ``kind`` its style."""

    at: Spot
    name: str
    kind: str = ""
    label: str = ""
    before: Spot | None = None


@record
class Plot:
    """A drawing with what is written around it. ``rows`` are its numbers, or texts, below their ``heads``.

    Without rows they are those of the points, of which the heads then name what they are, x and y.

    Screen readers are told ``about``; ``x`` and ``y`` are the names of the axes. Drawn are ``bars``,
    heights that share the way from 0 to 1, a row each, then ``lines``, (style, spots) each, and ``points``, the first
    on top. ``marks`` are those of an x axis that is not linear.
    """

    name: str
    title: str
    note: str
    about: str
    x: str = ""
    y: str = ""
    heads: Sequence[str]
    rows: Sequence[Sequence[str | float | None]] = ()
    bars: Sequence[float | None] = ()
    lines: Sequence[tuple[str, Sequence[Spot]]] = ()
    points: Sequence[Point] = ()
    marks: Marks = ()

    @property
    def scales(self) -> tuple[Scale, Scale]:
        """Those of both axes: bars begin at 0, points have a margin."""
        spots = [spot for _, spots in self.lines for spot in spots]
        spots += [at for one in self.points for at in (one.at, one.before) if at]
        if self.bars:
            heights = [*(of or 0.0 for of in self.bars), *(y for _, y in spots)]
            up = Scale(0, max(heights) or 1, _BOTTOM, _TOP)
            return Scale(0, 1, _LEFT, _RIGHT), up
        left, top = zip(*spots, strict=True)
        return scale_over(left, _LEFT, _RIGHT), scale_over(top, _BOTTOM, _TOP)


class Scale(NamedTuple):
    """A linear scale: ``low`` to ``high`` are drawn from ``start`` to ``end``, other values at its ends."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return where a value is drawn."""
        part = (min(max(value, self.low), self.high) - self.low) / (
            self.high - self.low
        )
        return self.start + part * (self.end - self.start)

    def marks(self) -> Marks:
        """Return the values that the axis names, with their texts: all have as many decimals."""
        size = self.high - self.low
        if not math.isfinite(size):
            return []
        power = 10.0 ** math.floor(math.log10(size / _MOST_MARKS))
        steps = (power * one for one in (1, 2, 5, 10))
        step = next(step for step in steps if size <= step * _MOST_MARKS)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        decimals = max(0, math.ceil(-math.log10(step) - 1e-9))
        values = [number * step for number in range(first, last + 1)]
        return [(value, f"{value:.{decimals}f}") for value in values]


def scale_over(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale over these values with a margin."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.06 * (high - low) or 0.05
    return Scale(low - margin, high + margin, start, end)


# Figures over all slices of models of a paper, by name of the model and setting it was asked in.
Published = Mapping[tuple[str, str], Mapping[str, float]]
# Of a tenth of the probabilities: which, how many, their share of all, their mean, the share of right answers.
Tenth = tuple[str | float | None, ...]
# So many relations have a label: more hardly find a place.
_MOST_LABELS = 8


class Difference(NamedTuple):
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


def forest(view: View) -> tuple[list[Difference], Scale]:
    """Return the differences to the baseline of all key metrics, failed ones first, and their scale."""
    rows = [
        _difference(case, value)
        for case in sorted(view.run.cases, key=lambda case: natural(case.nodeid))
        for value in key_figures(case)
        if None not in (value.delta, value.delta_low, value.delta_high)
    ]
    rows.sort(key=lambda row: SEVERITY.index(row.gate.verdict) if row.gate else 99)
    ends = [end for row in rows for end in (row.low, row.high, row.allowed or 0.0)]
    return rows, scale_over([*ends, 0.0], 0, 100)


def _difference(case: CaseResult, value: MetricValue) -> Difference:
    sign = 1 if value.better == "higher" else -1
    at, *ends = (
        sign * (of or 0.0) for of in (value.delta, value.delta_low, value.delta_high)
    )
    gates = [
        gate
        for gate in case.gates
        if gate.metric == value.name and GATE_RULES[gate.rule].relative
    ]
    gate = min(gates, key=lambda of: SEVERITY.index(of.verdict), default=None)
    allowed = None if gate is None else -gate.bound
    if gate is not None and GATE_RULES[gate.rule].ratio:
        allowed = (gate.bound - 1) * abs(value.baseline or 0.0)
    return Difference(case, value, gate, at, min(ends), max(ends), allowed)


def plots(
    view: View, baseline: Mapping[str, Table], published: Published
) -> dict[str, Any]:
    """Return what the plots draw, by name, empty where nothing is known.

    ``baseline`` are its outcomes by node id. ``buckets``: bucket, facts, three or four shares of the run, those of its baseline; ``framing``: a point a relation; ``beside``: (setting, points) each; ``anchors`` (probabilities of
    right answers) and ``answers`` (of the model's own): rows of their tenths, the baseline's share or right
    ones last; ``traces``: (mean probability, share of right answers) of run and baseline.
    """
    own = {case.nodeid: case.table for case in view.slices if case.table.rows}
    both = list(own.values()), [baseline[key] for key in own if key in baseline]
    # Rows of a blessed run do not say what was expected.
    facts = {row.fact_id for of in both[0] for row in of.rows if row.expected}
    anchors, old_anchors = (_tenths(of, "anchor", facts) for of in both)
    answers, old_answers = (_tenths(of, "answer_prob", facts) for of in both)
    return {
        "buckets": list(_buckets(view)),
        "framing": _framing(view),
        "beside": list(_beside_published(view, published)),
        "anchors": [
            (*now[:3], old[2]) for now, old in zip(anchors, old_anchors, strict=True)
        ],
        "answers": [
            (*now[:2], *now[3:], old[4])
            for now, old in zip(answers, old_answers, strict=True)
        ],
        "traces": [
            [of[3:] for of in tenths if of[1]] for tenths in (answers, old_answers)
        ],
    }


def _known(case: CaseResult, *names: str) -> list[MetricValue]:
    """Return the metrics of these names, if all have a value."""
    values = [metric(case, name) for name in names]
    known = [one for one in values if one is not None and one.value is not None]
    return known if len(known) == len(names) else []


def _buckets(view: View) -> Iterator[tuple[str | float | None, ...]]:
    """Yield right, perhaps outdated, wrong and missing answers by bucket, over all domains."""
    names = ["accuracy", "hallucination", "missing"]
    if any(metric(case, "outdated") for case in view.slices):
        names.insert(1, "outdated")
    for bucket in BUCKETS:
        cases = [
            case
            for case in view.slices
            if (probe := probe_named(case.probe)) and probe.slicing == "bucket"
            if probe.part(case.slice) == bucket and _known(case, names[0], *names[-2:])
        ]
        if facts := sum(case.n for case in cases):
            now = (_mean(cases, name, "value") for name in names)
            yield bucket, facts, *now, *(_mean(cases, of, "baseline") for of in names)


def _mean(cases: Sequence[CaseResult], name: str, of: str) -> float | None:
    """Return a share over several cases, by their facts; ``None`` where it is not known of all that have it."""
    values = [(case.n, one) for case in cases if (one := metric(case, name))]
    shares = [getattr(one, of) for _, one in values]
    if None in shares or not shares:
        return None
    weighted = (n * share for (n, _), share in zip(values, shares, strict=True))
    return float(sum(weighted) / sum(case.n for case in cases))


def _point(
    values: Sequence[MetricValue], name: str, kind: str, label: str = ""
) -> Point:
    x, y = values
    is_paired = x.baseline is not None and y.baseline is not None
    return Point(
        at=(x.value or 0.0, y.value or 0.0),
        name=name,
        kind=kind,
        label=label,
        before=(x.baseline or 0.0, y.baseline or 0.0) if is_paired else None,
    )


def _framing(view: View) -> list[Point]:
    """Return PFD against IRD, a point a relation."""
    cases = sorted(view.slices, key=failed_first)
    known = [(case, of) for case in cases if (of := _known(case, "pfd", "ird"))]
    return [
        _point(
            values,
            relation_title(case.slice, case.label),
            case.verdict,
            case.slice if at < _MOST_LABELS else "",
        )
        for at, (case, values) in enumerate(known)
    ]


def _beside_published(
    view: View, published: Published
) -> Iterator[tuple[str, list[Point]]]:
    """Yield NCR and UR over all slices before those of the models of the paper in the same setting."""
    for case in view.aggregates:
        if not (known := _known(case, "ncr", "ur")):
            continue
        parts = [
            reliability_slice(member.partition("[")[2].removesuffix("]"))
            for member in case.members
        ]
        asked = [part.prompt for part in parts if part and part.prompt != "auto"]
        # That of the paper nearest to ``auto``.
        setting = asked[0] if asked else "zero-shot"
        models = [
            Point((figures["ncr"], figures["ur"]), name, "paper")
            for (name, of), figures in published.items()
            if of == setting and {"ncr", "ur"} <= set(figures)
        ]
        yield setting, [_point(known, "this run", case.verdict), *models]


def _tenths(
    tables: Iterable[Table], name: str, answerable: Collection[str]
) -> list[Tenth]:
    """Return the tenths from 0 to 1 of the probabilities in a column, of ``answerable`` facts."""
    bins: list[list[tuple[float, float]]] = [[] for _ in range(10)]
    for table in tables:
        for row in table.rows:
            values = dict(zip(table.columns, row.values, strict=False))
            # Left out by MONITOR; a question without an answer is never answered right.
            known = name in values and values.get("kept", 1)
            if known and row.fact_id in answerable and values.get("answered", 1):
                pair = values[name], values.get("correct", 1.0)
                bins[min(9, max(0, int(10 * pair[0])))].append(pair)
    total = sum(map(len, bins))
    return [
        (
            f"{at / 10:.1f} to {(at + 1) / 10:.1f}",
            len(of),
            len(of) / total if total else None,
            *(map(fmean, zip(*of, strict=True)) if of else (None, None)),
        )
        for at, of in enumerate(bins)
    ]
