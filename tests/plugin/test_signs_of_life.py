"""What a session shows while it works: in a terminal, in a pipe, over workers, and when it is stopped."""

import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from tests.plugin.conftest import GATED, KNOWN, script, start

pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals")


def slow_model(pytester, seconds):
    """Write a script of a model that takes so long for one question of the first case."""
    waits = json.dumps({"contains": f"{KNOWN[0][0]}?", "delay": seconds}) + "\n"
    (pytester.path / "slow.jsonl").write_text(waits + script(KNOWN))


class Screen:
    """A session in a pseudo-terminal of 100 columns; ``output`` is all that it wrote."""

    def __init__(self, pytester, *args):
        leader, follower = pty.openpty()
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PYTEST_XDIST")
        }
        self.process = start(
            pytester,
            "suites",
            "--color=no",
            *args,
            env=environment | {"TERM": "xterm", "COLUMNS": "100"},
            stdin=subprocess.DEVNULL,
            stdout=follower,
            stderr=follower,
            # What a shell starts in the background ignores Ctrl-C, and so would this.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        os.close(follower)
        self._leader = leader
        self.output = ""

    def read(self, until="", seconds=120.0):
        """Read until ``until`` was written, or the session has ended."""
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end and not (
                until and re.search(until, self.output)
            ):
                if select.select([self._leader], [], [], 1.0)[0]:
                    self.output += os.read(self._leader, 65536).decode()
        except OSError:
            # The other end is closed.
            pass
        return self.output

    def end(self):
        """Return the exit code once all is written."""
        self.read()
        os.close(self._leader)
        return self.process.wait(60)


@pytest.fixture
def screen(pytester):
    """Start sessions in pseudo-terminals; those that a failed test leaves are killed."""
    begun = []

    def screen(*args):
        begun.append(Screen(pytester, *args))
        return begun[-1]

    yield screen
    for one in begun:
        if one.process.poll() is None:
            os.killpg(one.process.pid, signal.SIGKILL)
            one.process.wait()


def visible(output):
    """Return the rows of a terminal that are there in the end."""
    from tests.plugin.test_progress import Terminal

    terminal = Terminal()
    terminal.write(output.replace("\r\n", "\n"))
    return "\n".join(row.rstrip() for row in terminal.rows)


@pytest.mark.slow
@pytest.mark.parametrize("args", [("-v",), ("-n2",)], ids=["verbose", "n2"])
def test_a_terminal_shows_the_case_that_is_asked_and_keeps_no_trace_of_it(
    pytester, mini_suite, screen, args
):
    mini_suite(GATED)
    slow_model(pytester, 2)
    session = screen("--kb-model=scripted/slow.jsonl", *args)
    assert session.end() == 0
    # How many are expected is known a moment later, above all where the machine is busy.
    assert re.search(r"(head_to_tail\[[a-z-]+\]|2 workers) \d+", session.output)
    rows = visible(session.output)
    assert "case 1 of" not in rows
    assert "passed" in rows


@pytest.mark.slow
def test_ctrl_c_while_the_line_is_shown_ends_the_session(pytester, mini_suite, screen):
    mini_suite(GATED)
    slow_model(pytester, 60)
    session = screen("--kb-model=scripted/slow.jsonl")
    session.read(r"head_to_tail\[[a-z-]+\] \d+/\d+")
    os.kill(session.process.pid, signal.SIGINT)
    assert session.end() == pytest.ExitCode.INTERRUPTED
    assert "KeyboardInterrupt" in session.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "shown"), [((), True), (("-q",), False)], ids=["plain", "quiet"]
)
def test_a_pipe_gets_a_line_a_minute_and_with_q_none(pytester, mini_suite, args, shown):
    mini_suite(GATED)
    slow_model(pytester, 1.5)
    hurry = "from pytest_kbrel.plugin import progress\n\nprogress.SOON = progress.MINUTE = 0.2\n"
    (pytester.path / "conftest.py").write_text(hurry)
    result = pytester.runpytest_subprocess(
        "--kb-model=scripted/slow.jsonl", "suites", *args
    )
    assert result.ret == 0
    lines = [
        line for line in result.outlines if re.match(r"kbrel: head_to_tail\[", line)
    ]
    assert bool(lines) is shown
