"""What is drawn as SVG: plots with points, lines and bars in their own numbers, and the scales of their axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

# The edges of the plane between two axes, in a drawing as wide as a telephone: its letters can be read there.
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 328, 24, 262
_MOST_MARKS = 8

Spot = tuple[float, float]
Marks = Sequence[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a plot. ``before`` is where the baseline has it, ``kind`` its style."""

    at: Spot
    name: str
    kind: str = ""
    label: str = ""
    before: Spot | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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
