"""Text made of parts that keeps to a length: rows at the end of a part are left out, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a text: its ``head``, its ``rows`` of one or more lines each, and the ``end`` behind them.

    Where the text is too long, parts of a lower ``rank`` get their rows first, but only up to their ``share``
    of the length; what is free then is given out by rank again. Rows that are left out, or exceed ``most``,
    are counted as so many of ``noun``, with ``where`` behind it: "and 3 more cases in report.json". ``end``
    stands only behind rows: empty, it is an empty line.
    """

    rank: int
    head: str = ""
    rows: Sequence[str] = ()
    end: str | None = None
    noun: str = "row"
    where: str = ""
    share: float = 1.0
    most: int | None = None

    @property
    def listed(self) -> Sequence[str]:
        """The rows that are shown where there is room for them."""
        return self.rows[: self.most]

    def text(self, shown: int) -> str:
        """Return the part with its first ``shown`` rows."""
        left_out = len(self.rows) - shown
        noun = self.noun if left_out == 1 else f"{self.noun}s"
        note = [f"\nand {left_out:,} more {noun}{self.where}"] if left_out else []
        end = [self.end] if self.rows and self.end is not None else []
        head = [self.head] if self.head else []
        return "\n".join([*head, *self.rows[:shown], *note, *end])


def _size(text: str) -> int:
    """Return the length of lines as browsers count characters, of which some of Unicode's are two."""
    return len(text.encode("utf-16-le", "replace")) // 2 + 1


def total_size(parts: Sequence[Part]) -> int:
    """Return how long the text of all parts is where there is room for it."""
    return sum(_size(part.text(len(part.listed))) for part in parts)


def bounded_text(parts: Sequence[Part], limit: int) -> str:
    """Return the text of ``parts``, in at most ``limit`` characters.

    Nothing is left out where all fits. Otherwise rows are, and if the heads alone are too long, the parts of
    the highest rank as a whole. A row is never cut in itself.
    """
    counts = {at: len(part.listed) for at, part in enumerate(parts)}
    if total_size(parts) > limit:
        counts = _fitting(parts, limit)
    pieces = [parts[at].text(shown) for at, shown in sorted(counts.items())]
    return "\n".join(pieces).rstrip() + "\n" if pieces else ""


def _fitting(parts: Sequence[Part], limit: int) -> dict[int, int]:
    """Return how many rows of which parts fit."""
    counts: dict[int, int] = {}
    room = limit
    for at in sorted(range(len(parts)), key=lambda at: parts[at].rank):
        least = _size(parts[at].text(0))
        if least <= room:
            room -= least
            counts[at] = 0
    for is_fair in (True, False):
        for at in counts:
            own = min(room, int(parts[at].share * limit)) if is_fair else room
            for row in parts[at].listed[counts[at] :]:
                size = _size(row)
                if size > own:
                    break
                counts[at] += 1
                own -= size
                room -= size
    return counts
