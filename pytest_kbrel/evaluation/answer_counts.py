"""Counts of the answers that one process has, by case, for those who show the progress of a run."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from pathlib import Path

# Seconds between two writes of the counts for another process.
_INTERVAL = 0.5


class AnswerCounts:
    """Numbers of answered requests by case (node id), and of those that a model was really asked.

    With a ``path`` they are written there at most every half second, for :func:`read_counts` in another
    process. A file that cannot be written is no reason to stop: nobody then sees the progress.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.answered: Counter[str] = Counter()
        self.asked = 0
        self.current = ""
        self._path = path
        self._written = 0.0

    def begin(self, case: str) -> None:
        """Note which case asks from now on."""
        is_new = case != self.current
        self.current = case
        # A case of few questions must not hide the next one, which may take long.
        self._write(at_once=is_new)

    def add(self, count: int, asked: bool) -> None:
        """Add answers of the case that asks; ``asked`` if the model gave them now, not the cache."""
        self.answered[self.current] += count
        if asked:
            self.asked += count
        self._write()

    def _write(self, *, at_once: bool = False) -> None:
        now = time.monotonic()
        if self._path is None or (not at_once and now - self._written < _INTERVAL):
            return
        self._written = now
        part = self._path.with_name(self._path.name + ".new")
        state = {"case": self.current, "answered": self.answered, "asked": self.asked}
        with contextlib.suppress(OSError):
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(state))
            os.replace(part, self._path)


def read_counts(path: Path) -> AnswerCounts | None:
    """Return the counts that another process wrote; ``None`` where there are none that can be read."""
    try:
        state = json.loads(path.read_text())
        counts = AnswerCounts()
        counts.current, counts.asked = str(state["case"]), int(state["asked"])
        counts.answered.update(
            {str(case): int(count) for case, count in state["answered"].items()}
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None
    return counts


def note_end(path: Path) -> None:
    """Note that the process that counted at ``path`` has ended, maybe within a case; its answers stay."""
    if (counts := read_counts(path)) is not None:
        counts._path = path
        counts.begin("")
