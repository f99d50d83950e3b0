"""Text made of parts that keeps to a length: rows at the end of a part are left out, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a text: its ``head``, its ``rows`` of one or more lines each, and the ``end`` behind them.

    Where the text is too long, parts of a lower ``rank`` get their rows first, but only up to their ``share``
    of the length; what is free then is given out by rank again. Rows that are left out are counted as so many
    of ``noun``, with ``where`` behind it: "and 3 more cases in report.json". ``end`` stands only behind rows:
    empty, it is an empty line.
    """

    rank: int
    head: str = ""
    rows: Sequence[str] = ()
    end: str | None = None
    noun: str = "row"
    where: str = ""
    share: float = 1.0

    @property
    def size(self) -> int:
        """The length of the whole part, with a line break behind each piece."""
        return sum(len(piece) + 1 for piece in self.pieces(len(self.rows)))

    @property
    def least(self) -> int:
        """The length of the part where all its rows are left out."""
        return sum(len(piece) + 1 for piece in (*self._head(), *self._behind(0)))

    def pieces(self, shown: int) -> list[str]:
        """Return the part with its first ``shown`` rows, a line break belongs between each two pieces."""
        return [*self._head(), *self.rows[:shown], *self._behind(shown)]

    def _head(self) -> list[str]:
        return [self.head] if self.head else []

    def _behind(self, shown: int) -> list[str]:
        """Return what stands behind the first ``shown`` rows."""
        left_out = len(self.rows) - shown
        noun = self.noun if left_out == 1 else f"{self.noun}s"
        note = [f"\nand {left_out:,} more {noun}{self.where}"] if left_out else []
        return [*note, *([self.end] if self.rows and self.end is not None else [])]


def total_size(parts: Sequence[Part]) -> int:
    """Return how long the text of all parts is if nothing is left out."""
    return sum(part.size for part in parts)


def bounded_text(parts: Sequence[Part], limit: int) -> str:
    """Return the text of ``parts``, in at most ``limit`` characters.

    Nothing is left out where all fits. Otherwise rows are, and if the heads alone are too long, the parts of
    the highest rank as a whole. A row is never cut in itself.
    """
    ranked = sorted(range(len(parts)), key=lambda at: parts[at].rank)
    if total_size(parts) <= limit:
        return _joined(parts, [len(part.rows) for part in parts], ranked)
    room = limit
    present: list[int] = []
    for at in ranked:
        if parts[at].least <= room:
            room -= parts[at].least
            present.append(at)
    counts = [0] * len(parts)
    for is_fair in (True, False):
        for at in present:
            part = parts[at]
            own = min(room, int(part.share * limit)) if is_fair else room
            while (
                counts[at] < len(part.rows)
                and (size := len(part.rows[counts[at]]) + 1) <= own
            ):
                counts[at] += 1
                own -= size
                room -= size
    return _joined(parts, counts, present)


def _joined(
    parts: Sequence[Part], counts: Sequence[int], present: Sequence[int]
) -> str:
    pieces = [piece for at in sorted(present) for piece in parts[at].pieces(counts[at])]
    return "\n".join(pieces).rstrip() + "\n" if pieces else ""
