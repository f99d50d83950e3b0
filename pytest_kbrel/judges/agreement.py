"""How often verdicts agree with a human's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pytest_kbrel.records import Label

_LABELS: Sequence[Label] = ("correct", "uninformative", "wrong")


class Agreement:
    """Counts of (what the human says, what the judge says)."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[bool, Label]] = Counter()

    def add(self, human: bool, label: Label) -> None:
        """Count one answer; ``human`` is whether a human calls it right."""
        self._counts[human, label] += 1

    @property
    def answers(self) -> int:
        """Return the number of answers."""
        return self._counts.total()

    @property
    def agreeing(self) -> int:
        """Return how many answers both call right, or neither."""
        return sum(n for (human, label), n in self._counts.items() if human == (label == "correct"))

    @property
    def wrong(self) -> int:
        """Return how many answers the human calls wrong."""
        return sum(n for (human, _), n in self._counts.items() if not human)

    @property
    def called_right(self) -> int:
        """Return how many of the wrong answers the judge calls right."""
        return self._counts[False, "correct"]

    def table(self) -> str:
        """Return the counts as text of four lines, with a line of shares below where there is an answer."""
        lines = [f"{'':16}" + "".join(f"{label:>15}" for label in _LABELS)]
        for human, name in ((True, "human: correct"), (False, "human: wrong")):
            lines.append(f"{name:16}" + "".join(f"{self._counts[human, label]:15}" for label in _LABELS))
        if self.answers:
            share = f"agreement {self.agreeing / self.answers:.3f} ({self.agreeing} of {self.answers})"
            if self.wrong:
                missed = f"{self.called_right / self.wrong:.3f} ({self.called_right} of {self.wrong})"
                share += f", wrong answers called right {missed}"
            lines.append(share)
        return "\n".join(lines)
