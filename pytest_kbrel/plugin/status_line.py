"""Status line below pytest's output: rewritten in a terminal, a line a minute in a pipe or a log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pytest_kbrel.printing import fit

Mode = Literal["line", "log"]

# Seconds before the first line in a log, and between two of them.
SOON = 15.0
MINUTE = 60.0


class StatusLine:
    """Line of status that never mixes with what else is printed.

    In the mode ``line`` it stands on the row below pytest's cursor, and :meth:`hide` removes it before
    anything else is printed. In the mode ``log`` a line is printed soon after ``started``, then one a
    minute. ``write`` prints a string at once; ``column`` returns how wide the row of pytest's cursor is
    filled so far.
    """

    def __init__(
        self,
        mode: Mode,
        write: Callable[[str], None],
        column: Callable[[], int],
        *,
        started: float,
    ) -> None:
        self._mode = mode
        self._write = write
        self._column = column
        self._due = started + SOON
        self._text = ""

    def show(self, text: str, *, width: int, now: float) -> bool:
        """Show the text, cut to ``width`` columns; return True if a row of the log was printed."""
        if self._mode == "log":
            if not text or now < self._due:
                return False
            self._due = now + MINUTE
            self._write(("\n" if self._column() else "") + f"kbrel: {text}\n")
            return True
        text = fit(text, max(width - 1, 1)) if text else ""
        if text == self._text:
            return False
        if not text:
            self.hide()
            return False
        self._text = text
        column = self._column()
        # The row below, its text, and back to where pytest goes on; the rows scroll if need be.
        self._write(
            f"\n\r\x1b[2K{text}\x1b[1A\r" + (f"\x1b[{column}C" if column else "")
        )
        return False

    def hide(self) -> None:
        """Remove the line, if it is there."""
        if self._text:
            self._text = ""
            # All that is right of the cursor and below it.
            self._write("\x1b[J")
