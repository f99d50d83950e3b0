"""Hooks that show the progress of a run: a status line in a terminal, a line a minute in a log."""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence

import pytest

from pytest_kbrel.plugin.fixtures import runner_key, uses_model
from pytest_kbrel.plugin.progress import Progress, duration
from pytest_kbrel.plugin.status_line import Mode, StatusLine
from pytest_kbrel.printing import printable
from pytest_kbrel.store.run_store import AnswerCounts, RunStore

# Requests and titles, by node id.
Expected = tuple[Mapping[str, int], Mapping[str, str]]
# Seconds between two looks at the counts.
_TICK = 0.5


class ProgressReporter:
    """pytest plugin that shows what is asked, how fast, and how long it takes, from a thread of its own."""

    def __init__(
        self,
        config: pytest.Config,
        store: RunStore,
        expected: Callable[[], Expected],
        loading: str,
    ) -> None:
        """``store`` is that of the run, in which workers count their answers.

        ``expected`` returns how many requests each case has at most, and what the cases are called: both
        empty as long as nobody knows.
        ``loading`` says what is loaded before the first request.
        """
        self._config = config
        self._store = store
        self._expected = expected
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

    def counts(self) -> Sequence[AnswerCounts]:
        """Return the counts of this process, or of all workers."""
        if (runner := self._config.stash.get(runner_key, None)) is not None:
            return [runner.pool.counts]
        return self._store.counts()

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

    @contextlib.contextmanager
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
        with contextlib.suppress(OSError):
            os.write(self._descriptor, text.encode(errors="replace"))

    def _tick(self) -> None:
        started = time.monotonic()
        while not self._over.wait(_TICK):
            # Whatever is wrong with a line of status is no fault of the session.
            with contextlib.suppress(Exception):
                self._look(started)

    def _look(self, started: float) -> None:
        if not self._progress.expected:
            self._progress.expect(*self._expected())
        now = time.monotonic()
        counts = self.counts()
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
        with contextlib.suppress(OSError):
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
