"""The plot of gate_power.py, as SVG that reads on light and on dark ground."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

WIDTH, HEIGHT = 860, 380
LEFT, RIGHT, TOP, FOOT = 60, 520, 60, 320
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .small { font-size: 12px }
  .title { font-weight: 600 }
  .grid { stroke: #d0d7de; stroke-width: 1 }
  .line { fill: none; stroke-width: 2.5 }
  .c0 { stroke: #0550ae } .c1 { stroke: #0550ae; stroke-dasharray: 7 4 }
  .c2 { stroke: #b35900 } .c3 { stroke: #6e4baf }
  .f0 { fill: #0550ae } .f2 { fill: #b35900 } .f3 { fill: #6e4baf }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .grid { stroke: #3d444d }
    .c0, .c1 { stroke: #79b8ff } .c2 { stroke: #f0a35e } .c3 { stroke: #c4a7f5 }
    .f0 { fill: #79b8ff } .f2 { fill: #f0a35e } .f3 { fill: #c4a7f5 }
  }
"""
Power = Sequence[tuple[int, bool, float, Sequence[float]]]
Alarms = Sequence[tuple[str, Sequence[float]]]


def plot(power: Power, alarms: Alarms, facts: int = 300) -> str:
    """Draw the share of alarms by true drop for slices of ``facts``, and the false alarms of a session."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'aria-label="Share of alarms by true drop, and false alarms of a session">',
            f"<style>{STYLE}</style>",
            *_curves(power, facts),
            *_bars(alarms),
            "</svg>",
            "",
        ]
    )


def _text(x: float, y: float, text: str, kind: str = "small", anchor: str = "start") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{text}</text>'


def _height(share: float) -> float:
    return FOOT - share * (FOOT - TOP)


def _curves(power: Power, facts: int) -> Iterator[str]:
    def across(drop: float) -> float:
        return LEFT + drop / 0.1 * (RIGHT - LEFT)

    yield _text(LEFT, 30, f"Alarms by true drop, a slice of {facts} facts, max_drop 0.02", "title")
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        y = _height(share)
        yield f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield _text(LEFT - 8, y + 4, f"{share:.0%}", anchor="end")
    for point in range(0, 11, 2):
        yield _text(across(point / 100), FOOT + 20, f"{point}", anchor="middle")
    yield _text((LEFT + RIGHT) / 2, FOOT + 42, "true drop, points", anchor="middle")
    lines = (
        ("c0", "ours, one slice", False, 0),
        ("c1", "ours, 20 slices pooled", True, 0),
        ("c2", "fixed tolerance 0.02", False, 2),
        ("c3", "unpaired z at 5 %", False, 3),
    )
    for number, (kind, name, pooled, column) in enumerate(lines):
        points = [
            f"{across(drop):.1f},{_height(shares[column]):.1f}"
            for n, of_all, drop, shares in power
            if (n, of_all) == (facts, pooled)
        ]
        yield f'<polyline points="{" ".join(points)}" class="line {kind}"/>'
        y = FOOT - 90 + 20 * number
        yield f'<line x1="{RIGHT - 175}" x2="{RIGHT - 145}" y1="{y - 4}" y2="{y - 4}" class="line {kind}"/>'
        yield _text(RIGHT - 138, y, name)


def _bars(alarms: Alarms) -> Iterator[str]:
    left = 585
    yield _text(left, 30, "Sessions with a false alarm", "title")
    names = ("ours", "fixed tolerance 0.02", "unpaired z at 5 %")
    y = TOP + 8
    for kind, shares in alarms:
        yield _text(left, y, kind)
        # Ours at tolerance 0, where the test alone decides.
        for name, share, colour in zip(names, (shares[0], *shares[2:]), ("f0", "f2", "f3"), strict=True):
            y += 20
            wide = max(share * 100, 0.5)
            yield f'<rect x="{left}" y="{y - 11}" width="{wide:.1f}" height="13" class="{colour}"/>'
            yield _text(left + share * 100 + 6, y, f"{share:.1%} {name}")
        y += 30
