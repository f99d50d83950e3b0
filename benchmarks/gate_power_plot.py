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
Curves = Sequence[tuple[int, float, float, float]]
Sessions = Sequence[tuple[int, float, float]]


def plot(curves: Curves, sessions: Sessions) -> str:
    """Draw the shares of red slices by true drop, and the sessions that are red at an allowed drop."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'aria-label="Share of red slices by true drop, and sessions red at an allowed drop">',
            f"<style>{STYLE}</style>",
            *_curves(curves),
            *_bars(sessions),
            "</svg>",
            "",
        ]
    )


def _text(
    x: float, y: float, text: str, kind: str = "small", anchor: str = "start"
) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">{text}</text>'


def _height(share: float) -> float:
    return FOOT - share * (FOOT - TOP)


def _curves(curves: Curves) -> Iterator[str]:
    most = max(drop for _, drop, _, _ in curves)

    def across(drop: float) -> float:
        return LEFT + drop / most * (RIGHT - LEFT)

    yield _text(
        LEFT,
        30,
        "Red slices by true drop: within 0.08, beyond 0.02",
        "title",
    )
    for share in (0, 0.2, 0.4, 0.6, 0.8, 1):
        y = _height(share)
        yield f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield _text(LEFT - 8, y + 4, f"{share:.0%}", anchor="end")
    for point in range(0, int(100 * most) + 1, 2):
        yield _text(across(point / 100), FOOT + 20, f"{point}", anchor="middle")
    yield _text(
        (LEFT + RIGHT) / 2,
        FOOT + 42,
        "true drop, points; 5 % of the facts flip",
        anchor="middle",
    )
    for number, n in enumerate(dict.fromkeys(n for n, *_ in curves)):
        points = [
            f"{across(drop):.1f},{_height(red):.1f}"
            for of, drop, red, _ in curves
            if of == n
        ]
        yield f'<polyline points="{" ".join(points)}" class="line c{number}"/>'
        y = FOOT - 90 + 20 * number
        yield f'<line x1="{RIGHT - 125}" x2="{RIGHT - 95}" y1="{y - 4}" y2="{y - 4}" class="line c{number}"/>'
        yield _text(RIGHT - 88, y, f"{n:,} facts")


def _bars(sessions: Sessions) -> Iterator[str]:
    left = 585
    yield _text(left, 30, "Sessions red though all is allowed", "title")
    yield _text(left, 50, "each slice drops by 1 point, 2 are allowed")
    y = TOP + 18
    for n, old, new in sessions:
        yield _text(left, y, f"{n:,} facts a slice")
        for name, share, colour in (
            ("old rule", old, "f2"),
            ("two numbers", new, "f0"),
        ):
            y += 20
            wide = max(share * 100, 0.5)
            yield f'<rect x="{left}" y="{y - 11}" width="{wide:.1f}" height="13" class="{colour}"/>'
            yield _text(left + share * 100 + 6, y, f"{share:.1%} {name}")
        y += 26
