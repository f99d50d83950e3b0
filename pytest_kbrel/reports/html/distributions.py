"""Plots over single facts: the probabilities of anchors, and how often answers of a probability are right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_kbrel.records import Outcome, Run, Table
from pytest_kbrel.reports import view
from pytest_kbrel.reports.formatting import count, number
from pytest_kbrel.reports.html.svg import Plot

_BINS = 10
_NAMES = [f"{at / _BINS:.1f} to {(at + 1) / _BINS:.1f}" for at in range(_BINS)]
_SOLID = 0.8


def fact_plots(run: Run, baseline: Mapping[str, Table]) -> Iterator[Plot]:
    """Yield the plots over facts that there are outcomes for; ``baseline`` are its outcomes by node id."""
    tables = {case.nodeid: case.table for case in view.slices(run) if case.table.rows}
    compared = [baseline[key] for key in tables if key in baseline]
    yield from _anchors([*tables.values()], compared)
    yield from _diagram(_calibration(tables.values()), _calibration(compared))


def _values(tables: Iterable[Table]) -> Iterator[tuple[Outcome, dict[str, float]]]:
    """Yield rows with their values by column, but for those that MONITOR left out."""
    for table in tables:
        for row in table.rows:
            values = dict(zip(table.columns, row.values, strict=False))
            if values.get("kept", 1):
                yield row, values


def _bin(probability: float) -> int:
    return min(_BINS - 1, max(0, int(probability * _BINS)))


def _anchors(tables: Sequence[Table], baseline: Sequence[Table]) -> Iterator[Plot]:
    """Yield the distribution of the anchors' probabilities, as Figure 10 of the paper on MONITOR."""
    now, before = (
        [values["anchor"] for _, values in _values(of) if "anchor" in values]
        for of in (tables, baseline)
    )
    if not now:
        return
    shares, others = _binned(now), _binned(before)
    outline = [((at + 0.5) / _BINS, share) for at, share in enumerate(others)]
    solid = f"{100 * _solid(now):.0f} % of {count(len(now), 'fact')}"
    if before:
        solid += f" (baseline {100 * _solid(before):.0f} % of {len(before)})"
    yield Plot(
        name="anchors",
        title="Anchor probabilities",
        note=f"{solid} have a probability of {_SOLID:g} or more. Bars: this run; line: the baseline.",
        about=f"Distribution of {len(now)} anchor probabilities in {_BINS} bins",
        x="probability of the right answer",
        y="share of facts",
        bars=[
            (share, f"{name}: {number(share)}")
            for name, share in zip(_NAMES, shares, strict=True)
        ],
        lines=[("outline", outline)] if before else [],
        heads=("probability", "share", "baseline"),
        rows=tuple(
            (name, number(share), number(other if before else None))
            for name, share, other in zip(_NAMES, shares, others, strict=True)
        ),
    )


def _solid(values: Sequence[float]) -> float:
    return sum(value >= _SOLID for value in values) / len(values)


def _binned(values: Sequence[float]) -> list[float]:
    bins = [_bin(value) for value in values]
    return [bins.count(at) / (len(values) or 1) for at in range(_BINS)]


# Of a bin of probabilities: number of answers, mean probability, share of right ones.
_Bin = tuple[int, float, float]


def _diagram(now: Sequence[_Bin], before: Sequence[_Bin]) -> Iterator[Plot]:
    """Yield the reliability diagram: how often answers of a probability are right."""
    total = sum(n for n, _, _ in now)
    if not total:
        return
    shown = [
        (str(n), number(sure if n else None), number(right if n else None))
        for n, sure, right in (*now, *before)
    ]
    traces = [
        (kind, [(sure, right) for n, sure, right in of if n])
        for kind, of in (("trace", now), ("outline", before))
    ]
    yield Plot(
        name="calibration",
        title="Reliability diagram",
        note=f"{total} answers to questions that have one. On the dashed line a model is right as often as "
        "it is sure. The lines go through the mean probability of each bin; dotted is the baseline.",
        about=f"Reliability diagram of {total} answers in ten bins of their probability",
        x="the answer's own probability",
        y="share of right answers",
        bars=[
            (height, f"{n} answers, probability {sure}, right {right}")
            for (_, _, height), (n, sure, right) in zip(now, shown, strict=False)
        ],
        lines=[("move", [(0, 0), (1, 1)]), *(trace for trace in traces if trace[1])],
        heads=(
            "probability",
            "answers",
            "mean probability",
            "right",
            "baseline's right",
        ),
        rows=tuple(
            (name, *cells, right)
            for name, cells, (_, _, right) in zip(
                _NAMES, shown, shown[_BINS:], strict=False
            )
        ),
    )


def _calibration(tables: Iterable[Table]) -> list[_Bin]:
    """Return the bins of the answers' own probabilities."""
    sums = [[0.0, 0.0, 0.0] for _ in range(_BINS)]
    for row, values in _values(tables):
        # A question without an answer is never answered right.
        if "answer_prob" in values and values.get("answered") and row.expected:
            added = (1.0, values["answer_prob"], values["correct"])
            at = _bin(values["answer_prob"])
            sums[at] = [old + new for old, new in zip(sums[at], added, strict=True)]
    return [(int(n), p / (n or 1), r / (n or 1)) for n, p, r in sums]
