"""Plots over single facts: anchor probabilities, accuracy by frame and context, and how sure answers were."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pytest_kbrel.records import Outcome, Run, Table
from pytest_kbrel.reports import reasons, view
from pytest_kbrel.reports.formatting import count, number, one_line
from pytest_kbrel.reports.html.svg import WIDTH, Drawing, Plot, Scale, cut

_BINS = 20
_SOLID = 0.8
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, WIDTH - 12, 24, 232
_NAME = 112
_CELL = "cell:"
# The least sizes of moves of a probability that are counted apart.
_MOVES = (0.05, 0.2, 0.5)
# So many relations have a box, so many facts a point, and so many lost facts a point with a title.
_MOST_BOXES, _MOST_POINTS, _MOST_LOST = 24, 8_000, 200
_CONTEXTS = (
    ("positive", "after right answer"),
    ("none", "no context"),
    ("negative", "after wrong answer"),
)


def fact_plots(run: Run, baseline: Mapping[str, Table]) -> Iterator[Plot]:
    """Yield the plots over facts that there are outcomes for; ``baseline`` are its outcomes by node id."""
    tables = {case.nodeid: case.table for case in view.slices(run) if case.table.rows}
    yield from _anchors(tables, baseline)
    yield from _pairs(run, tables, baseline)
    yield from _boxes(run, tables, baseline)
    yield from _diagram(tables, baseline)


def _column(table: Table, name: str) -> Iterator[tuple[Outcome, float]]:
    """Yield the rows that have a value in a column; those of MONITOR that were left out have none."""
    if name not in table.columns:
        return
    at = table.columns.index(name)
    used = table.columns.index("kept") if "kept" in table.columns else None
    for row in table.rows:
        if used is None or row.values[used]:
            yield row, row.values[at]


def _anchors(
    tables: Mapping[str, Table], baseline: Mapping[str, Table]
) -> Iterator[Plot]:
    """Yield the distribution of the anchors' probabilities, as Figure 10 of the paper on MONITOR."""
    now = [value for table in tables.values() for _, value in _column(table, "anchor")]
    before = [
        value
        for key in tables
        if key in baseline
        for _, value in _column(baseline[key], "anchor")
    ]
    if not now:
        return
    bars, outline = _binned(now), _binned(before)
    across = Scale(0, 1, _LEFT, _RIGHT)
    up = Scale(0, max([*bars, *outline]) * 1.05 or 1, _BOTTOM, _TOP)
    drawing = Drawing(
        _BOTTOM + 34, f"Distribution of {len(now)} anchor probabilities in {_BINS} bins"
    )
    drawing.y_axis(up, _LEFT, _RIGHT, "share of facts")
    for at, share in enumerate(bars):
        left = across(at / _BINS)
        title = f"{at / _BINS:.2f} to {(at + 1) / _BINS:.2f}: {number(share)}"
        drawing.rect(
            left + 0.5,
            up(share),
            across((at + 1) / _BINS) - left - 1,
            _BOTTOM - up(share),
            "bar",
            title,
        )
    if before:
        steps = [(at / _BINS, share) for at, share in enumerate(outline)]
        corners = [
            (across(x + dx), up(share)) for x, share in steps for dx in (0, 1 / _BINS)
        ]
        drawing.path(corners, "outline")
    drawing.x_axis(across, _BOTTOM, _BOTTOM, "probability of the right answer")
    solid = [
        sum(value >= _SOLID for value in values) / len(values)
        for values in (now, before)
        if values
    ]
    shares = f"{100 * solid[0]:.0f} % of {count(len(now), 'fact')}"
    shares += (
        f" (baseline {100 * solid[1]:.0f} % of {len(before)})" if solid[1:] else ""
    )
    yield Plot(
        name="anchors",
        title="Anchor probabilities",
        note=f"{shares} have a probability of {_SOLID:g} or more. Bars: this run; line: the baseline.",
        drawing=drawing.markup(),
        heads=("probability", "share", "baseline"),
        rows=tuple(
            (
                f"{at / _BINS:.1f} to {(at + 2) / _BINS:.1f}",
                number(bars[at] + bars[at + 1]),
                number(outline[at] + outline[at + 1]) if before else number(None),
            )
            for at in range(0, _BINS, 2)
        ),
    )


def _binned(values: Sequence[float]) -> list[float]:
    counts = [0] * _BINS
    for value in values:
        counts[min(_BINS - 1, max(0, int(value * _BINS)))] += 1
    return [count / (len(values) or 1) for count in counts]


def _pairs(
    run: Run, tables: Mapping[str, Table], baseline: Mapping[str, Table]
) -> Iterator[Plot]:
    """Yield the anchors' probabilities of the baseline against those of the run, a point a fact."""
    points: list[tuple[float, float]] = []
    lost: list[tuple[float, float, str]] = []
    changed = {
        (case.nodeid, change.fact_id) for case in run.cases for change in case.lost
    }
    for key, table in tables.items():
        other = baseline.get(key, Table(columns=(), rows=()))
        before = {row.fact_id: value for row, value in _column(other, "anchor")}
        for row, value in _column(table, "anchor"):
            if row.fact_id not in before:
                continue
            if (key, row.fact_id) in changed:
                words = (
                    f"{row.question} {number(before[row.fact_id])} to {number(value)}"
                )
                lost.append((before[row.fact_id], value, words))
            else:
                points.append((before[row.fact_id], value))
    if not points and not lost:
        return
    across, up = Scale(0, 1, _LEFT, _RIGHT), Scale(0, 1, 296, _TOP)
    total = len(points) + len(lost)
    drawing = Drawing(
        330, f"Anchor probability of {total} facts in the baseline and in this run"
    )
    drawing.x_axis(across, _TOP, 296, "baseline")
    drawing.y_axis(up, _LEFT, _RIGHT, "this run")
    drawing.line(across(0), up(0), across(1), up(1), "move")
    # In an order of their own: a file of outcomes has its facts in another one than the run.
    points.sort()
    step = max(1, -(-len(points) // _MOST_POINTS))
    drawing.dots([(across(x), up(y)) for x, y in points[::step]], "facts")
    lost.sort(key=lambda point: (point[1] - point[0], point))
    for x, y, words in lost[:_MOST_LOST]:
        drawing.circle(across(x), up(y), 4, "lost", words)
    drawn = f" Of the others one in {step} is drawn." if step > 1 else ""
    yield Plot(
        name="pairs",
        title="Anchor probability, baseline and this run",
        note=f"A point is one of {count(total, 'fact')}; below the line it lost probability. Marked: "
        f"{count(len(lost), 'lost fact')}.{drawn}",
        drawing=drawing.markup(),
        heads=("probability", "facts", "of them lost"),
        rows=tuple(
            _moves(
                [*points, *((x, y) for x, y, _ in lost)], [(x, y) for x, y, _ in lost]
            )
        ),
    )


_Point = tuple[float, float]


def _moves(
    facts: Sequence[_Point], lost: Sequence[_Point]
) -> Iterator[tuple[str, str, str]]:
    """Yield how many facts, and how many of those that were lost, moved how far."""
    counts = [[0] * (2 * len(_MOVES) + 1) for _ in (facts, lost)]
    for of, points in zip(counts, (facts, lost), strict=True):
        for before, now in points:
            size = bisect_left(_MOVES, round(abs(now - before), 9))
            of[len(_MOVES) + (size if now > before else -size)] += 1
    ends = [f"{least:g}" for least in _MOVES]
    sizes = [
        *(f"by {low} to {high}" for low, high in pairwise(ends)),
        f"by more than {ends[-1]}",
    ]
    words = [
        *(f"fell {size}" for size in reversed(sizes)),
        f"within {ends[0]}",
        *(f"rose {size}" for size in sizes),
    ]
    for row in zip(words, *counts, strict=True):
        yield (row[0], str(row[1]), str(row[2]))


_Box = tuple[float, float, float, float, float]


def _boxes(
    run: Run, tables: Mapping[str, Table], baseline: Mapping[str, Table]
) -> Iterator[Plot]:
    """Yield the accuracies of all frames and contexts as boxes, by context and by relation."""
    now, before = (
        {key: _cells(table) for key, table in of.items()} for of in (tables, baseline)
    )
    keys = [key for key, cells in now.items() if len(cells) > 1]
    if not keys:
        return
    rows: list[tuple[str, list[float], list[float]]] = []
    for start, words in _CONTEXTS:
        mine, others = (
            [
                value
                for key in keys
                for name, value in of.get(key, {}).items()
                if name.startswith(start)
            ]
            for of in (now, before)
        )
        rows.append((words, mine, others))
    by_key = {case.nodeid: case for case in view.slices(run)}
    ranked = sorted(keys, key=lambda key: reasons.failed_first(by_key[key]))
    for key in ranked[:_MOST_BOXES]:
        name = view.relation_title(by_key[key].slice, by_key[key].label)
        rows.append((name, list(now[key].values()), list(before.get(key, {}).values())))
    rows = [row for row in rows if row[1]]
    most = max(len(now[key]) for key in keys)
    scale = Scale(0, 1, _NAME + 30, _RIGHT)
    height = 8 + 24 * len(rows)
    drawing = Drawing(
        height + 32,
        "Accuracy by frame and context as boxes, by context and by relation",
    )
    drawing.x_axis(scale, 4, height, "accuracy")
    for at, (words, mine, others) in enumerate(rows):
        y = 8 + 24 * at
        drawing.text(0, y + 12, cut(words, _NAME + 28))
        _draw_box(drawing, scale, box_of(mine), y + 2, 10, "box")
        if others:
            _draw_box(drawing, scale, box_of(others), y + 14, 5, "box base")
    more = (
        f" {len(keys) - _MOST_BOXES} more relations are not drawn."
        if len(keys) > _MOST_BOXES
        else ""
    )
    yield Plot(
        name="boxes",
        title="Accuracy by frame and context",
        note=f"Least, quartiles and greatest accuracy over {count(most, 'combination')} of frame and "
        f"context; the narrow box is the baseline's. The first are over {count(len(keys), 'relation')}, "
        f"the others of one each.{more}",
        drawing=drawing.markup(),
        heads=(
            "over",
            "least",
            "lower quartile",
            "median",
            "upper quartile",
            "greatest",
            "baseline's median",
        ),
        rows=tuple(
            (
                one_line(words, 40),
                *map(number, box_of(mine)),
                number(box_of(others)[2]) if others else number(None),
            )
            for words, mine, others in rows
        ),
    )


def _cells(table: Table) -> dict[str, float]:
    """Return the accuracy in each cell of a table of MONITOR."""
    accuracies = {}
    for name in table.columns:
        if name.startswith(_CELL) and (
            values := [value for _, value in _column(table, name)]
        ):
            accuracies[name.removeprefix(_CELL)] = sum(values) / len(values)
    return accuracies


def box_of(values: Iterable[float]) -> _Box:
    """Return the least value, the quartiles and the greatest, with linear interpolation between values."""
    ordered = sorted(values)

    def at(part: float) -> float:
        place = part * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])

    return (ordered[0], at(0.25), at(0.5), at(0.75), ordered[-1])


def _draw_box(
    drawing: Drawing, scale: Scale, box: _Box, top: float, tall: float, kind: str
) -> None:
    least, lower, median, upper, greatest = map(scale, box)
    middle = top + tall / 2
    drawing.line(least, middle, greatest, middle, "whisker")
    drawing.rect(
        lower,
        top,
        max(1.0, upper - lower),
        tall,
        kind,
        " ".join(number(value) for value in box),
    )
    drawing.line(median, top, median, top + tall, "median")


def _diagram(
    tables: Mapping[str, Table], baseline: Mapping[str, Table]
) -> Iterator[Plot]:
    """Yield the reliability diagram: how often answers of a probability are right."""
    # A question without an answer is never answered right.
    answerable = [
        key for key, table in tables.items() if any(row.expected for row in table.rows)
    ]
    now = _calibration(tables[key] for key in answerable)
    before = _calibration(baseline[key] for key in answerable if key in baseline)
    total = sum(n for n, _, _ in now)
    if not total:
        return
    across, up = Scale(0, 1, _LEFT, _RIGHT), Scale(0, 1, 296, _TOP)
    drawing = Drawing(
        330, f"Reliability diagram of {total} answers in ten bins of their probability"
    )
    drawing.x_axis(across, _TOP, 296, "the answer's own probability")
    drawing.y_axis(up, _LEFT, _RIGHT, "share of right answers")
    drawing.line(across(0), up(0), across(1), up(1), "move")
    for at, (n, sure, right) in enumerate(now):
        if n:
            left = across(at / 10)
            words = f"{n} answers, probability {number(sure)}, right {number(right)}"
            drawing.rect(
                left + 1,
                up(right),
                across((at + 1) / 10) - left - 2,
                296 - up(right),
                "bar",
                words,
            )
    drawing.path([(across(sure), up(right)) for n, sure, right in now if n], "trace")
    if any(n for n, _, _ in before):
        drawing.path(
            [(across(sure), up(right)) for n, sure, right in before if n], "outline"
        )
    yield Plot(
        name="calibration",
        title="Reliability diagram",
        note=f"{total} answers to questions that have one. On the dashed line a model is right as often as "
        "it is sure. The lines go through the mean probability of each bin; dotted is the baseline.",
        drawing=drawing.markup(),
        heads=(
            "probability",
            "answers",
            "mean probability",
            "right",
            "baseline's right",
        ),
        rows=tuple(
            (
                f"{at / 10:.1f} to {(at + 1) / 10:.1f}",
                str(n),
                number(sure if n else None),
                number(right if n else None),
                number(before[at][2] if before[at][0] else None),
            )
            for at, (n, sure, right) in enumerate(now)
        ),
    )


def _calibration(tables: Iterable[Table]) -> list[tuple[int, float, float]]:
    """Return number of answers, mean probability and share of right ones in ten bins of probability."""
    sums = [[0.0, 0.0, 0.0] for _ in range(10)]
    for table in tables:
        if not {"correct", "answered", "answer_prob"} <= set(table.columns):
            continue
        right, answered = (
            table.columns.index("correct"),
            table.columns.index("answered"),
        )
        for row, sure in _column(table, "answer_prob"):
            if row.values[answered]:
                of = sums[min(9, max(0, int(sure * 10)))]
                of[0] += 1
                of[1] += sure
                of[2] += row.values[right]
    return [(int(n), p / (n or 1), r / (n or 1)) for n, p, r in sums]
