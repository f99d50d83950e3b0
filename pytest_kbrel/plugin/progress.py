"""Hooks that show the progress of a run: a status line in a terminal, a line a minute in a log."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import pytest

from pytest_kbrel.plugin.fixtures import uses_model
from pytest_kbrel.printing import fit, printable
from pytest_kbrel.reports.formatting import one_line
from pytest_kbrel.store.run_store import AnswerCounts

if TYPE_CHECKING:
    from pytest_kbrel.plugin.controller import Recorder

# The rate is that of so many seconds.
_WINDOW = 60.0
# Seconds without an answer from which on they are told: a server may refuse whatever it is asked.
_SILENCE = 30.0
_NAME = 40


class Progress:
    """What is known of a running session: ``expected`` requests by case, and the cases that have ended.

    Times are seconds of any clock that only goes forward.
    """

    def __init__(self) -> None:
        self.expected: dict[str, int] = {}
        self._titles: Mapping[str, str] = {}
        self._ended: set[str] = set()
        self._rates: deque[tuple[float, int]] = deque()
        # What was counted at the latest change, and when that was.
        self._latest: tuple[object, float] = ((), 0.0)

    def expect(
        self,
        requests: Mapping[str, int],
        titles: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Expect so many requests of each case, at most; ``titles`` are what the cases are called."""
        self.expected |= requests
        self._titles = titles

    def end(self, case: str) -> None:
        """Note that a case has ended, whatever it was still expected to ask."""
        self._ended.add(case)

    def text(self, counts: Sequence[AnswerCounts], now: float) -> str:
        """Return the line for the counts of all processes; empty before the first case is begun."""
        asking = [
            one.current
            for one in counts
            if one.current and one.current not in self._ended
        ]
        if not asking:
            return ""
        answered = Counter[str]()
        for one in counts:
            answered.update(one.answered)
        asked = sum(one.asked for one in counts)
        rate = self._rate(asked, now)
        cases = {*asking}
        name = f"{len(asking)} workers"
        if len(asking) == 1:
            (case,) = asking
            name = one_line(self._titles.get(case) or case.partition("::")[2], _NAME)
        so_far = sum(answered[case] for case in cases)
        total = sum(self.expected.get(case, 0) for case in cases)
        of = f"{min(so_far, total):,}/{total:,}" if total else f"{so_far:,} answers"
        parts = [f"{name} {of}"]
        counted = (cases, asked, answered.total())
        if counted != self._latest[0]:
            self._latest = counted, now
        silence = now - self._latest[1]
        if silence >= _SILENCE:
            rate = 0.0
            parts.append(f"no answer for {duration(silence)}")
        if rate:
            parts.append(f"{rate:,.0f}/s" if rate >= 1 else f"{60 * rate:,.0f}/min")
        if count := len(self.expected):
            number = min(len(self._ended & self.expected.keys()) + 1, count)
            parts.append(f"case {number} of {count}")
        if rate and (left := self._remaining(answered)) > 0:
            parts.append(f"about {duration(left / rate)} left")
        return "  ".join(parts)

    def _remaining(self, answered: Counter[str]) -> float:
        """Return how many requests are still to come, as far as cases of the same probe tell."""
        really, expected = Counter[str](), Counter[str]()
        for case in self._ended & self.expected.keys():
            really[_probe(case)] += answered[case]
            expected[_probe(case)] += self.expected[case]
        left = 0.0
        for case in self.expected.keys() - self._ended:
            most, probe = self.expected[case], _probe(case)
            share = really[probe] / expected[probe] if expected[probe] else 1.0
            left += most * share - min(answered[case], most)
        return left

    def _rate(self, asked: int, now: float) -> float:
        """Return the answers a second that models gave lately; 0 as long as that is not known."""
        if not self._rates or asked != self._rates[-1][1]:
            self._rates.append((now, asked))
        while len(self._rates) > 2 and now - self._rates[1][0] > _WINDOW:
            self._rates.popleft()
        (began, first), last = self._rates[0], self._rates[-1][1]
        return (last - first) / (now - began) if last > first and now > began else 0.0


def _probe(case: str) -> str:
    return case.partition("[")[0]


def duration(seconds: float) -> str:
    """Return a length of time for people: ``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


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


# Seconds between two looks at the counts.
_TICK = 0.5


class ProgressReporter:
    """pytest plugin that shows what is asked, how fast, and how long it takes, from a thread of its own."""

    def __init__(
        self,
        config: pytest.Config,
        recorder: Recorder,
        loading: str,
    ) -> None:
        """``loading`` says what is loaded before the first request."""
        self._config = config
        self._recorder = recorder
        self._loading = loading
        self._progress = Progress()
        self._line: StatusLine | None = None
        self._terminal: pytest.TerminalReporter | None = None
        self._descriptor = -1
        self._lock = threading.RLock()
        self._over = threading.Event()
        # Whether it is known that this session asks a model.
        self._is_asking = False
        self._thread: threading.Thread | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Show the progress while the items run."""
        # With xdist the items are in the workers.
        self._is_asking = any(map(uses_model, getattr(session, "items", ())))
        if self._is_asking or getattr(self._config.option, "tx", None):
            self._start()
        try:
            return (yield)
        finally:
            self._stop()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logstart(self) -> Generator[None, None, None]:
        """Remove the line before pytest prints."""
        with self._printing():
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_logreport(
        self, report: pytest.TestReport
    ) -> Generator[None, None, None]:
        """Remove the line before pytest prints, and note which cases have ended."""
        if report.when == "teardown":
            self._progress.end(report.nodeid)
        with self._printing():
            return (yield)

    def pytest_enter_pdb(self) -> None:
        """Leave the terminal to the debugger for the rest of the session."""
        self._stop()

    def _start(self) -> None:
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if terminal is None or (mode := _mode(self._config, terminal)) is None:
            return
        try:
            # During a test pytest sends what is written to the terminal elsewhere.
            self._descriptor = os.dup(terminal._tw._file.fileno())
        except (OSError, ValueError, AttributeError):
            return
        self._line = StatusLine(
            mode,
            self._write,
            lambda: int(terminal._tw.width_of_current_line),
            started=time.monotonic(),
        )
        self._terminal = terminal
        self._thread = threading.Thread(
            target=self._tick, name="kbrel-progress", daemon=True
        )
        self._thread.start()

    def _stop(self) -> None:
        if self._thread is None:
            return
        thread, self._thread = self._thread, None
        self._over.set()
        with self._printing():
            self._line = None
        # A debugger may stop this thread while it holds the lock.
        thread.join(timeout=2 * _TICK)
        if not thread.is_alive():
            os.close(self._descriptor)

    @contextmanager
    def _printing(self) -> Generator[None, None, None]:
        with self._lock:
            if self._line is not None:
                self._line.hide()
            yield
            if self._line is not None:
                # What pytest holds back would come after the line, or into the output of a test.
                assert self._terminal is not None
                self._terminal.flush()

    def _write(self, text: str) -> None:
        with suppress(OSError):
            os.write(self._descriptor, text.encode(errors="replace"))

    def _tick(self) -> None:
        started = time.monotonic()
        while not self._over.wait(_TICK):
            # Whatever is wrong with a line of status is no fault of the session.
            with suppress(Exception):
                self._look(started)

    def _look(self, started: float) -> None:
        if not self._progress.expected:
            self._progress.expect(*self._recorder.expected_requests())
        now = time.monotonic()
        counts = self._recorder.counts()
        text = self._progress.text(counts, now)
        if (
            self._loading
            and (self._is_asking or self._progress.expected)
            and not any(one.current for one in counts)
        ):
            text = f"{self._loading}  {duration(now - started)}"
        with self._lock:
            if self._line is None or self._terminal is None:
                return
            if self._line.show(
                printable(text), width=_width(self._descriptor), now=now
            ):
                # pytest begins the next row with the name of the file.
                self._terminal.currentfspath = None


def _width(descriptor: int) -> int:
    """Return how many columns the terminal has: ``COLUMNS``, or else those of the descriptor."""
    # Standard output, which shutil would ask, is a file of pytest's while a test runs.
    if not os.environ.get("COLUMNS", ""):
        with suppress(OSError):
            if width := os.get_terminal_size(descriptor).columns:
                return width
    return shutil.get_terminal_size().columns


def _mode(config: pytest.Config, terminal: pytest.TerminalReporter) -> Mode | None:
    if (
        terminal.isatty
        and os.environ.get("TERM", "") != "dumb"
        and getattr(config.option, "capture", "no") != "no"
    ):
        return "line"
    return None if config.option.verbose < 0 else "log"
