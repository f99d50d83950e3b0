"""SIGTERM ends a session of ours as Ctrl-C does: with a report, and never with exit code 0.

CI runners, ``timeout``, Kubernetes and SLURM send it before they kill. Without a handler a process dies of it
at once, and what it decided until then is lost.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

TERMINATED = "SIGTERM ended the session: a time limit, or whoever runs it"


class Terminated(KeyboardInterrupt):
    """SIGTERM, as the interruption that it is for pytest."""


class Termination:
    """The handler of SIGTERM, from :meth:`watch` to :meth:`end`. ``arrived`` says whether the signal came."""

    def __init__(self) -> None:
        self.arrived = False
        self._held = False
        self._former: Any = None
        self._watching = False
        self._process = 0

    def watch(self) -> None:
        """Turn the first SIGTERM into :class:`Terminated`.

        Nothing happens on Windows, which has no such signal, in another thread than the main one, where it
        is ignored, and where the handler is one that could not be put back.
        """
        if self._watching or sys.platform == "win32":
            return
        if threading.current_thread() is not threading.main_thread():
            return
        former = signal.getsignal(signal.SIGTERM)
        if former is None or former == signal.SIG_IGN:
            return
        self._former, self._process, self._watching = former, os.getpid(), True
        signal.signal(signal.SIGTERM, self._handle)

    def hold(self) -> None:
        """Only note the signal from now on: what is being written is to be written whole."""
        self._held = True

    def end(self) -> None:
        """Put the former handler back."""
        # Whoever replaced ours in the meantime keeps his.
        if self._watching and signal.getsignal(signal.SIGTERM) == self._handle:
            signal.signal(signal.SIGTERM, self._former)
        self._watching = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process:
            # A forked child inherits the handler, and its parent expects it to die.
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        first, self.arrived = not self.arrived, True
        # A second one must not end the clearing away that the first one has begun.
        if first and not self._held:
            raise Terminated(TERMINATED)
