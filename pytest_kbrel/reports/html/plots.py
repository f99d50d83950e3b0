"""Plots of the figures of cases: differences, buckets, relations, and models of a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pytest_kbrel.catalogue.probes import probe_named, reliability_slice
from pytest_kbrel.catalogue.rules import GATE_RULES
from pytest_kbrel.catalogue.verdicts import SEVERITY
from pytest_kbrel.records import BUCKETS, CaseResult, GateResult, MetricValue, Run
from pytest_kbrel.reports import reasons, view
from pytest_kbrel.reports.formatting import (
    bound,
    count,
    difference,
    metric_title,
    number,
    signed,
)
from pytest_kbrel.reports.html.sources import PublishedModel
from pytest_kbrel.reports.html.svg import (
    WIDTH,
    Drawing,
    Plot,
    Scale,
    cut,
    label_spots,
    mark_texts,
    scale_over,
)

_SHARES = ("accuracy", "hallucination", "missing")
_SHARE_WORDS = ("right", "wrong", "missing")
# So many relations have a row, so many a label, and so many domains are drawn.
_MOST_RELATIONS, _MOST_LABELS, _MOST_DOMAINS = 30, 60, 6
_NAME = 140


@dataclass(frozen=True, slots=True)
class Difference:
    """One row of the forest plot. Numbers are towards what is better: below zero is worse.

    ``allowed`` is where the tolerance ends, ``None`` without a gate on this difference.
    """

    case: CaseResult
    metric: str
    tone: str
    at: float
    low: float
    high: float
    allowed: float | None
    words: str
    bound: str


@dataclass(frozen=True, slots=True)
class Forest:
    """The rows of the forest plot, failed ones first, with the scale that they share."""

    rows: tuple[Difference, ...]
    scale: Scale

    @property
    def marks(self) -> list[tuple[float, str]]:
        """Where the axis has its marks, with their texts: without signs, for they are worse to the left."""
        marks = self.scale.marks()
        texts = mark_texts([abs(mark) for mark in marks])
        return [
            (self.scale(mark), text) for mark, text in zip(marks, texts, strict=True)
        ]


def forest(run: Run) -> Forest:
    """Return the differences to the baseline of all key metrics and of all that have a gate on them."""
    rows = [
        row
        for case in view.ordered(run)
        for name in dict.fromkeys(
            [*view.key_metrics(case), *(gate.metric for gate in case.gates)]
        )
        if (value := view.metric(case, name)) is not None
        if (row := _difference(case, value)) is not None
    ]
    rows.sort(key=lambda row: (_order(row), reasons.natural(row.case.nodeid)))
    ends = [end for row in rows for end in (row.low, row.high, row.allowed or 0.0)]
    return Forest(tuple(rows), scale_over([*ends, 0.0], 0, 100))


def _difference(case: CaseResult, value: MetricValue) -> Difference | None:
    if value.delta is None or value.delta_low is None or value.delta_high is None:
        return None
    sign = 1 if value.better == "higher" else -1
    ends = sorted((sign * value.delta_low, sign * value.delta_high))
    gate = _gate_on(case, value.name)
    return Difference(
        case=case,
        metric=value.name,
        tone="none" if gate is None else gate.verdict.replace(" ", "-"),
        at=sign * value.delta,
        low=ends[0],
        high=ends[1],
        allowed=None if gate is None else _tolerance(gate, value),
        words=f"{signed(value.delta)} {difference(value.delta_low, value.delta_high)}",
        bound="" if gate is None else bound(gate.bound),
    )


def _gate_on(case: CaseResult, name: str) -> GateResult | None:
    """Return the worst of the gates on a metric's difference."""
    gates = [
        gate
        for gate in case.gates
        if gate.metric == name and GATE_RULES[gate.rule].relative
    ]
    return min(gates, key=lambda gate: SEVERITY.index(gate.verdict), default=None)


def _tolerance(gate: GateResult, value: MetricValue) -> float | None:
    if not GATE_RULES[gate.rule].ratio:
        return -gate.bound
    return None if value.baseline is None else -(1 - gate.bound) * abs(value.baseline)


def _order(row: Difference) -> tuple[int, bool]:
    verdicts = [word.replace(" ", "-") for word in SEVERITY]
    return (
        verdicts.index(row.tone) if row.tone in verdicts else len(verdicts),
        row.allowed is None,
    )


def figure_plots(run: Run, published: Sequence[PublishedModel]) -> Iterator[Plot]:
    """Yield the plots that there are figures for."""
    yield from _buckets(run)
    relations = [
        case
        for case in sorted(view.slices(run), key=reasons.failed_first)
        if all(
            (value := view.metric(case, name)) and value.value is not None
            for name in ("monitor", "pfd", "ird")
        )
    ]
    if relations:
        yield _framing(relations)
        yield _monitor(relations)
    for x, y in (("ncr", "ur"), ("nccr", "iur")):
        yield from _beside_published(run, published, x, y)


def _has(case: CaseResult, names: Sequence[str]) -> bool:
    values = [view.metric(case, name) for name in names]
    return all(value is not None and value.value is not None for value in values)


@dataclass(frozen=True, slots=True)
class _Shares:
    """Shares of right, wrong and missing answers, of the run and of its baseline (None where not known)."""

    name: str
    n: int
    now: tuple[float, ...]
    before: tuple[float, ...] | None


def _buckets(run: Run) -> Iterator[Plot]:
    """Yield right, wrong and missing answers by bucket, over all domains and in each."""
    by_domain: dict[str, dict[str, list[CaseResult]]] = {}
    for case in view.slices(run):
        probe = probe_named(case.probe)
        if (
            probe is None
            or probe.slicing != "bucket"
            or (part := probe.part(case.slice)) not in BUCKETS
        ):
            continue
        if _has(case, _SHARES):
            domain = case.slice.removesuffix(part).rstrip("-")
            by_domain.setdefault(domain, {}).setdefault(part, []).append(case)
            by_domain.setdefault("", {}).setdefault(part, []).append(case)
    domains = [
        "",
        *sorted((name for name in by_domain if name), key=reasons.natural)[
            :_MOST_DOMAINS
        ],
    ]
    rows = [
        _shares(f"{domain} {part}".strip(), by_domain[domain][part])
        for domain in (domains if len(by_domain) > 2 else domains[:1])
        for part in BUCKETS
        if part in by_domain.get(domain, {})
    ]
    if rows:
        yield _bars(rows)


def _shares(name: str, cases: Sequence[CaseResult]) -> _Shares:
    def mean(of: str) -> tuple[float, ...] | None:
        values = [
            [getattr(view.metric(case, share), of) for share in _SHARES]
            for case in cases
        ]
        if any(value is None for row in values for value in row):
            return None
        total = sum(case.n for case in cases) or 1
        columns = zip(*values, strict=True)
        return tuple(
            sum(case.n * value for case, value in zip(cases, column, strict=True))
            / total
            for column in columns
        )

    return _Shares(
        name,
        sum(case.n for case in cases),
        mean("value") or (0.0, 0.0, 0.0),
        mean("baseline"),
    )


def _bars(rows: Sequence[_Shares]) -> Plot:
    scale = Scale(0, 1, _NAME + 6, WIDTH - 12)
    height = 26 + 34 * len(rows)
    drawing = Drawing(
        height + 34,
        "Right, wrong and missing answers by popularity, the run above its baseline",
    )
    for at, kind in enumerate(_SHARE_WORDS):
        drawing.rect(_NAME + 6 + 64 * at, 4, 10, 10, kind)
        drawing.text(_NAME + 20 + 64 * at, 13, kind)
    for at, row in enumerate(rows):
        top = 24 + 34 * at
        drawing.text(0, top + 12, cut(row.name, _NAME))
        drawing.text(0, top + 24, f"{row.n} facts", "faint")
        for offset, tall, of, who in (
            (0, 13, row.now, "now"),
            (15, 8, row.before, "baseline"),
        ):
            left = 0.0
            for share, kind, words in zip(
                of or (), ("right", "wrong", "missing"), _SHARE_WORDS, strict=False
            ):
                width = scale(left + share) - scale(left)
                drawing.rect(
                    scale(left),
                    top + offset,
                    width,
                    tall,
                    kind,
                    f"{who} {words} {number(share)}",
                )
                left += share
    drawing.x_axis(scale, 22, height - 2, "share of answers")
    return Plot(
        name="buckets",
        title="Right, wrong and missing by popularity",
        note="The broad bar is this run, the narrow one below it the baseline.",
        drawing=drawing.markup(),
        heads=(
            "bucket",
            "facts",
            *_SHARE_WORDS,
            *(f"{word}, baseline" for word in _SHARE_WORDS),
        ),
        rows=tuple(
            (
                row.name,
                str(row.n),
                *map(number, row.now),
                *(map(number, row.before or (None,) * 3)),
            )
            for row in rows
        ),
    )


def _known(case: CaseResult, name: str) -> float | None:
    value = view.metric(case, name)
    return None if value is None else value.value


def _value(case: CaseResult, name: str) -> float:
    return _known(case, name) or 0.0


def _before(case: CaseResult, name: str) -> float | None:
    value = view.metric(case, name)
    return None if value is None else value.baseline


def _tone(case: CaseResult) -> str:
    return case.verdict.replace(" ", "-")


def _title(case: CaseResult) -> str:
    return view.relation_title(case.slice, case.label)


def _framing(cases: Sequence[CaseResult]) -> Plot:
    """Draw PFD against IRD, a point a relation, joined with a mark for the baseline."""
    pairs = [(_before(case, "pfd"), _before(case, "ird")) for case in cases]
    xs = [
        *(_value(case, "pfd") for case in cases),
        *(x for x, _ in pairs if x is not None),
    ]
    ys = [
        *(_value(case, "ird") for case in cases),
        *(y for _, y in pairs if y is not None),
    ]
    across, up = scale_over(xs, 44, WIDTH - 12), scale_over(ys, 262, 24)
    drawing = Drawing(
        296, f"PFD against IRD of {len(cases)} relations; the baseline's are rings"
    )
    drawing.x_axis(across, 24, 262, "PFD: how much the wording matters")
    drawing.y_axis(up, 44, WIDTH - 12, "IRD: how much a wrong context matters")
    rings = [(across(x), up(y)) for x, y in pairs if x is not None and y is not None]
    for case, (x, y) in zip(cases, pairs, strict=True):
        here = across(_value(case, "pfd")), up(_value(case, "ird"))
        if x is not None and y is not None:
            drawing.line(*here, across(x), up(y), "move")
            drawing.circle(across(x), up(y), 3.5, "before")
    # Failed relations come last, so that nothing covers them.
    for case in reversed(cases):
        spot = across(_value(case, "pfd")), up(_value(case, "ird"))
        words = f"{_title(case)}: PFD {number(_value(case, 'pfd'))}, IRD {number(_value(case, 'ird'))}"
        drawing.circle(*spot, 4.5, f"point {_tone(case)}", words)
    points = [
        (across(_value(case, "pfd")), up(_value(case, "ird")), cut(case.slice, 60))
        for case in cases
    ]
    # More labels than these hardly find a place.
    for x, y, label, ends in label_spots(
        points[:_MOST_LABELS],
        [*rings, *((x, y) for x, y, _ in points[_MOST_LABELS:])],
        4.5,
    ):
        drawing.text(x, y, label, "end" if ends else "")
    return Plot(
        name="framing",
        title="PFD against IRD",
        note=f"A point is one of {count(len(cases), 'relation')} in this run, its ring the baseline's. "
        "Nearer to the lower left is steadier. Colour is the case's verdict.",
        drawing=drawing.markup(),
        heads=("relation", "PFD", "baseline's", "IRD", "baseline's"),
        rows=tuple(
            (
                _title(case),
                *(
                    number(of(case, name))
                    for name in ("pfd", "ird")
                    for of in (_known, _before)
                ),
            )
            for case in cases[:_MOST_LABELS]
        ),
    )


def _monitor(cases: Sequence[CaseResult]) -> Plot:
    """Draw MONITOR of each relation with the interval and a mark for the baseline."""
    shown = cases[:_MOST_RELATIONS]
    values = [view.metric(case, "monitor") for case in shown]
    ends = [
        end
        for value in values
        if value is not None
        for end in (value.value, value.low, value.high, value.baseline)
        if end is not None
    ]
    scale = scale_over(ends, _NAME, WIDTH - 10)
    height = 12 + 18 * len(shown)
    drawing = Drawing(
        height + 32,
        f"MONITOR of {len(shown)} relations with 95 % intervals and the baseline",
    )
    drawing.x_axis(scale, 4, height, "MONITOR, lower is better")
    for at, (case, value) in enumerate(zip(shown, values, strict=True)):
        y = 16 + 18 * at
        drawing.text(0, y + 4, cut(_title(case), _NAME))
        if value is None or value.value is None:
            continue
        if value.low is not None and value.high is not None:
            drawing.line(
                scale(value.low), y, scale(value.high), y, f"span {_tone(case)}"
            )
        if value.baseline is not None:
            drawing.circle(scale(value.baseline), y, 3.5, "before")
        drawing.circle(
            scale(value.value),
            y,
            4,
            f"point {_tone(case)}",
            f"{_title(case)}: {number(value.value)}",
        )
    more = (
        f" {len(cases) - len(shown)} more relations are in the table of cases."
        if cases[len(shown) :]
        else ""
    )
    return Plot(
        name="monitor",
        title="MONITOR by relation",
        note=f"With 95 % intervals; rings are the baseline's. Colour is the case's verdict.{more}",
        drawing=drawing.markup(),
        heads=(
            "relation",
            "MONITOR",
            "baseline",
            "PFD",
            "IRD",
            "accuracy",
            "anchor prob",
        ),
        rows=tuple(
            (
                _title(case),
                number(_value(case, "monitor")),
                number(_before(case, "monitor")),
                *(
                    number(_known(case, name))
                    for name in ("pfd", "ird", "accuracy", "anchor_prob")
                ),
            )
            for case in shown
        ),
    )


def _prompt_of(case: CaseResult) -> str:
    """Return the prompt setting of the slices that a figure is over."""
    slices = (
        reliability_slice(member.partition("[")[2].removesuffix("]"))
        for member in case.members
    )
    return next((part.prompt for part in slices if part is not None), "zero-shot")


def _beside_published(
    run: Run, published: Sequence[PublishedModel], x: str, y: str
) -> Iterator[Plot]:
    """Yield two figures over all slices before those of the models of the paper in the same setting."""
    for case in view.aggregates(run):
        across, up = view.metric(case, x), view.metric(case, y)
        if across is None or up is None or across.value is None or up.value is None:
            continue
        setting = _prompt_of(case)
        models = [
            (model.figures[x], model.figures[y], model.name)
            for model in published
            if model.setting == setting and x in model.figures and y in model.figures
        ]
        xs = [
            across.value,
            *(one for one, _, _ in models),
            *filter(None, [across.baseline]),
        ]
        wide = scale_over([*xs, 0.0], 44, WIDTH - 12)
        ys = [up.value, *(one for _, one, _ in models), *filter(None, [up.baseline])]
        tall = scale_over(ys, 262, 24)
        titles = [metric_title(name) for name in (x, y)]
        drawing = Drawing(
            296,
            f"{titles[0]} against {titles[1]} beside {len(models)} published models",
        )
        drawing.x_axis(wide, 24, 262, f"{titles[0]}, seen knowledge")
        drawing.y_axis(tall, 44, WIDTH - 12, f"{titles[1]}, unseen knowledge")
        for one, other, name in models:
            drawing.circle(
                wide(one),
                tall(other),
                3.5,
                "paper",
                f"{name}: {number(one)}, {number(other)}",
            )
        here = wide(across.value), tall(up.value)
        if across.baseline is not None and up.baseline is not None:
            before = wide(across.baseline), tall(up.baseline)
            drawing.line(*here, *before, "move")
            drawing.circle(*before, 5, "before", "baseline")
        drawing.circle(*here, 5.5, f"point {_tone(case)}", "this run")
        yield Plot(
            name=f"published-{x}-{setting}",
            title=f"{titles[0]} and {titles[1]} beside published models",
            note=f"Grey: {len(models)} models of Zheng et al. (arXiv 2407.13578), {setting}, on their own "
            "questions. The large point is this run, the ring its baseline. Upper right is better.",
            drawing=drawing.markup(),
            heads=("model", *titles),
            rows=(
                ("this run", number(across.value), number(up.value)),
                ("baseline", number(across.baseline), number(up.baseline)),
                *((name, number(one), number(other)) for one, other, name in models),
            ),
        )
