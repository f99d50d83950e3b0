"""SIGTERM in a session of pytest: the first one interrupts it as Ctrl-C does, so that reports are written."""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

TERMINATED = "SIGTERM ended the session: a time limit, or whoever runs it"


class Terminated(KeyboardInterrupt):
    """SIGTERM as a ``KeyboardInterrupt``, which pytest handles."""


class Termination:
    """Handler of SIGTERM from :meth:`watch` to :meth:`end`; ``arrived`` is True once the signal came."""

    def __init__(self) -> None:
        self.arrived = False
        self._held = False
        self._former: Any = None
        self._process = 0

    def watch(self) -> None:
        """Turn the first SIGTERM into :class:`Terminated`.

        Does nothing on Windows, outside the main thread, and where SIGTERM is ignored or its handler could
        not be restored.
        """
        if self._former is not None or sys.platform == "win32":
            return
        if threading.current_thread() is not threading.main_thread():
            return
        former = signal.getsignal(signal.SIGTERM)
        if former is None or former == signal.SIG_IGN:
            return
        self._former, self._process = former, os.getpid()
        signal.signal(signal.SIGTERM, self._handle)

    def hold(self) -> None:
        """Only note the signal from now on, so that files are written completely."""
        self._held = True

    def end(self) -> None:
        """Restore the former handler."""
        # A handler that replaced this one in the meantime stays.
        if signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, self._former)
        self._former = None

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A forked child inherits the handler, and its parent expects it to die.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        first, self.arrived = not self.arrived, True
        # A second signal must not interrupt the cleaning up after the first.
        if first and not self._held:
            raise Terminated(TERMINATED)
