"""Drawings as SVG markup: shapes whose texts and numbers are escaped, scales, scatter plots and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from pytest_kbrel.reports.formatting import one_line

if TYPE_CHECKING:
    from markupsafe import Markup

# The width of a drawing in its own units: that of a telephone, so that its letters can be read there.
WIDTH = 340
# The edges of the plane between two axes.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, WIDTH - 12, 24, 262
# The room of a letter, by which labels are cut: that of a wide font, for it is the reader's that is used.
_LETTER = 6.8
_MOST_MARKS = 8

Spot = tuple[float, float]
Marks = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with what is written around it. ``rows`` are its numbers, as texts, below their ``heads``."""

    name: str
    title: str
    note: str
    drawing: Markup
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Scale:
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


def cut(text: str, width: float) -> str:
    """Return a label that fits into ``width``."""
    return one_line(text, max(3, int(width / _LETTER)))


class Drawing:
    """An SVG drawing. Screen readers are told ``label``; the shapes are drawn in the order of the calls."""

    def __init__(self, height: float, label: str) -> None:
        self._parts = [
            f'<svg class="plot" viewBox="0 0 {WIDTH} {_number(height)}" role="img" '
            f'aria-label="{escape(one_line(label, 400))}">'
        ]

    def path(self, spots: Sequence[Spot], kind: str) -> None:
        """Draw lines from spot to spot."""
        steps = "L".join(f"{_number(x)} {_number(y)}" for x, y in spots)
        self._add("path", kind, d=f"M{steps}")

    def circle(self, spot: Spot, radius: float, kind: str, title: str = "") -> None:
        """Draw a circle."""
        x, y = map(_number, spot)
        self._add("circle", kind, title=title, cx=x, cy=y, r=_number(radius))

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        kind: str,
        title: str = "",
    ) -> None:
        """Draw a rectangle."""
        sides = {"width": _number(max(0.0, width)), "height": _number(max(0.0, height))}
        self._add("rect", kind, title=title, x=_number(x), y=_number(y), **sides)

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Write words; ``kind`` may hold ``end`` or ``middle`` for where they are anchored."""
        attributes = f' class="{kind}"' if kind else ""
        self._parts.append(
            f'<text x="{_number(x)}" y="{_number(y)}"{attributes}>{escape(one_line(words, 200))}</text>'
        )

    def x_axis(
        self, scale: Scale, top: float, bottom: float, name: str, marks: Marks
    ) -> None:
        """Draw upright lines with their values below, and the name of the axis below these."""
        for value, text in marks:
            at = scale(value)
            self.path([(at, top), (at, bottom)], "grid")
            half = _LETTER * len(text) / 2
            middle = min(max(at, half), WIDTH - half)
            self.text(middle, bottom + 13, text, "middle")
        self.text((scale.start + scale.end) / 2, bottom + 28, name, "middle")

    def y_axis(self, scale: Scale, left: float, right: float, name: str) -> None:
        """Draw level lines with their values to the left, and the name of the axis above."""
        for value, text in scale.marks():
            at = scale(value)
            self.path([(left, at), (right, at)], "grid")
            self.text(left - 5, at + 4, text, "end")
        self.text(2, scale.end - 8, name)

    def markup(self) -> Markup:
        """Return the drawing as markup that templates do not escape again."""
        from markupsafe import Markup

        return Markup("".join([*self._parts, "</svg>"]))

    def _add(self, tag: str, kind: str, title: str = "", **attributes: str) -> None:
        shape = "".join(f' {name}="{value}"' for name, value in attributes.items())
        end = (
            f"><title>{escape(one_line(title, 200))}</title></{tag}>" if title else "/>"
        )
        self._parts.append(f'<{tag} class="{kind}"{shape}{end}')


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a scatter plot. ``before`` is where the baseline has it, ``kind`` its style."""

    at: Spot
    title: str
    kind: str = ""
    label: str = ""
    before: Spot | None = None


def scatter(
    description: str,
    x: str,
    y: str,
    points: Sequence[Point],
    *,
    curves: Sequence[Sequence[Spot]] = (),
    marks: Marks = (),
) -> Markup:
    """Draw points, each joined with a ring where the baseline has it; the last are on top.

    ``curves`` are lines behind them, ``marks`` those of the x axis where it is not linear.
    """
    known = [point.at for point in points]
    known += [point.before for point in points if point.before]
    across = scale_over([value for value, _ in known], _LEFT, _RIGHT)
    up = scale_over([value for _, value in known], _BOTTOM, _TOP)

    def spot(value: Spot) -> Spot:
        return across(value[0]), up(value[1])

    drawing = Drawing(_BOTTOM + 34, description)
    drawing.x_axis(across, _TOP, _BOTTOM, x, marks or across.marks())
    drawing.y_axis(up, _LEFT, _RIGHT, y)
    for curve in curves:
        drawing.path(list(map(spot, curve)), "trace")
    labels: dict[Spot, list[str]] = {}
    for point in points:
        here = spot(point.at)
        if point.before:
            drawing.path([here, spot(point.before)], "move")
            drawing.circle(spot(point.before), 3.5, "before")
        drawing.circle(here, 4.5, f"point {point.kind}".strip(), point.title)
        if point.label:
            labels.setdefault(here, []).append(point.label)
    for (left, top), words in labels.items():
        # Towards the middle there is room.
        ends = left > WIDTH / 2
        drawing.text(
            left - 8 if ends else left + 8,
            top + 4,
            cut(", ".join(words), WIDTH / 3),
            "end" if ends else "",
        )
    return drawing.markup()


def bars(
    description: str,
    x: str,
    y: str,
    heights: Sequence[float],
    titles: Sequence[str],
    lines: Sequence[tuple[str, Sequence[Spot]]],
) -> Markup:
    """Draw bars that share the way from 0 to 1, and before them ``lines``: (style, spots) each."""
    ends = [*heights, *(value for _, spots in lines for _, value in spots)]
    across, up = Scale(0, 1, _LEFT, _RIGHT), Scale(0, max(ends) or 1, _BOTTOM, _TOP)
    drawing = Drawing(_BOTTOM + 34, description)
    drawing.x_axis(across, _TOP, _BOTTOM, x, across.marks())
    drawing.y_axis(up, _LEFT, _RIGHT, y)
    width = (_RIGHT - _LEFT) / len(heights)
    for at, (height, title) in enumerate(zip(heights, titles, strict=True)):
        left, top = _LEFT + at * width, up(height)
        drawing.rect(left + 1, top, width - 2, _BOTTOM - top, "bar", title)
    for kind, spots in lines:
        drawing.path([(across(value), up(share)) for value, share in spots], kind)
    return drawing.markup()
