"""Drawings as SVG markup: shapes whose texts and numbers are escaped, scales and their marks."""

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
# The room of a letter, by which labels are cut: that of a wide font, for it is the reader's that is used.
_LETTER = 6.8
_STEPS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing with what is written around it. ``rows`` are its numbers, as texts, below their ``heads``."""

    name: str
    title: str
    note: str
    drawing: Markup
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


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

    def marks(self, most: int = 6) -> list[float]:
        """Return the values that the axis names, at most ``most`` or so."""
        if not math.isfinite(self.high - self.low):
            return []
        step = next(
            (one for one in _STEPS if (self.high - self.low) / one <= most),
            self.high - self.low,
        )
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [number * step for number in range(first, last + 1)]


def scale_over(
    values: Sequence[float], start: float, end: float, *, whole: bool = False
) -> Scale:
    """Return a scale over these values with a margin; ``whole``: from 0 to 1 at least."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if whole:
        low, high = min(0.0, low), max(1.0, high)
    else:
        margin = 0.06 * (high - low) or 0.05
        low, high = low - margin, high + margin
    return Scale(low, high, start, end)


def mark_texts(marks: Sequence[float]) -> list[str]:
    """Return the values of an axis as texts, all with the decimals of the one that needs most."""
    texts = [f"{mark:.3g}" for mark in marks]
    if any("e" in text for text in texts):
        return texts
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    return [f"{mark:.{decimals}f}" for mark in marks]


def label_spots(
    points: Sequence[tuple[float, float, str]],
    rings: Sequence[tuple[float, float]],
    radius: float,
) -> list[tuple[float, float, str, bool]]:
    """Return where the labels of points are written, without those that would cover a label, point or ring.

    The last of each is whether the label ends there instead of beginning.
    """
    marks = [*((x, y) for x, y, _ in points), *rings]
    boxes = [(x - radius, y - radius, x + radius, y + radius) for x, y in marks]
    spots = []
    for at, (x, y, label) in enumerate(points):
        others = [box for other, box in enumerate(boxes) if other != at]
        wide = _LETTER * len(label)
        for left, ends in ((x + radius + 3, False), (x - radius - 3 - wide, True)):
            box = (left, y - 5, left + wide, y + 5)
            inside = left >= 0 and left + wide <= WIDTH
            if inside and not any(_overlap(box, other) for other in others):
                spots.append((left + wide if ends else left, y + 4, label, ends))
                boxes.append(box)
                break
    return spots


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return ascending places at least ``gap`` apart and within ``low`` and ``high``, near the given ones.

    There must be room for them.
    """
    moved: list[float] = []
    for at, place in enumerate(places):
        least = low if at == 0 else moved[-1] + gap
        moved.append(min(max(place, least), high - gap * (len(places) - 1 - at)))
    return moved


_Box = tuple[float, float, float, float]


def _overlap(one: _Box, other: _Box) -> bool:
    return (
        one[0] < other[2]
        and other[0] < one[2]
        and one[1] < other[3]
        and other[1] < one[3]
    )


def cut(text: str, width: float) -> str:
    """Return a label that fits into ``width``."""
    return one_line(text, max(3, int(width / _LETTER)))


class Drawing:
    """An SVG drawing. Screen readers are told ``label``; the shapes are drawn in the order of the calls."""

    def __init__(self, height: float, label: str, width: float = WIDTH) -> None:
        self._width = width
        self._parts = [
            f'<svg class="plot" viewBox="0 0 {_number(width)} {_number(height)}" role="img" '
            f'aria-label="{escape(one_line(label, 400))}">'
        ]

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Draw a line."""
        self._add(
            "path", kind, d=f"M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}"
        )

    def path(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw lines from point to point."""
        self._add(
            "path",
            kind,
            d="M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in points),
        )

    def dots(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Draw many dots, in few bytes and without titles: lines of no length with round ends."""
        self._add(
            "path", kind, d="".join(f"M{_number(x)} {_number(y)}h0" for x, y in points)
        )

    def circle(
        self, x: float, y: float, radius: float, kind: str, title: str = ""
    ) -> None:
        """Draw a circle."""
        self._add(
            "circle", kind, title=title, cx=_number(x), cy=_number(y), r=_number(radius)
        )

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

    def x_axis(self, scale: Scale, top: float, bottom: float, name: str = "") -> None:
        """Draw upright lines with their values below, and the name of the axis below these."""
        marks = scale.marks()
        for value, text in zip(marks, mark_texts(marks), strict=True):
            self.line(scale(value), top, scale(value), bottom, "grid")
            half = _LETTER * len(text) / 2
            self.text(
                min(max(scale(value), half), self._width - half),
                bottom + 13,
                text,
                "middle",
            )
        if name:
            self.text((scale.start + scale.end) / 2, bottom + 28, name, "middle")

    def y_axis(self, scale: Scale, left: float, right: float, name: str = "") -> None:
        """Draw level lines with their values to the left, and the name of the axis above."""
        marks = scale.marks()
        for value, text in zip(marks, mark_texts(marks), strict=True):
            self.line(left, scale(value), right, scale(value), "grid")
            self.text(left - 5, scale(value) + 4, text, "end")
        if name:
            self.text(2, min(scale.start, scale.end) - 8, name)

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
