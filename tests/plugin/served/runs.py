"""Runs against a server: started, killed, and what they leave behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections import Counter

from tests.openai_server import BROKEN, Fault
from tests.plugin.conftest import ONE, start, wait_until

TWO = f"""{ONE}reliability:
  choices: 3
  distractors: 6
  unseen: {{count: 6, as_of: 2026-11-01, expires: 2090-01-01}}
"""


def prompts(server, since=0):
    """Return how often each prompt was put to the server."""
    return Counter(
        call.text for call in server.calls[since:] if call.path == "chat/completions"
    )


def killed_after(pytester, server, count, *args):
    """Kill a run, all of its processes, when the server got so many questions; return what is kept then."""
    before, say_before, killed = len(server.calls), server.say, threading.Event()

    def count_prompts():
        return sum(prompts(server, before).values())

    def say(text):
        if count_prompts() >= count:
            killed.wait(300)
        return say_before(text)

    server.say = say
    process = start(pytester, *args)
    wait_until(lambda: count_prompts() >= count or process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    killed.set()
    server.say = say_before
    return stored(pytester)


def stored(pytester):
    """Return how many answers and journals are kept."""
    connection = sqlite3.connect(pytester.path / ".kbrel-cache" / "answers.sqlite")
    try:
        return connection.execute(
            "SELECT count(*), (SELECT count(*) FROM journals) FROM answers"
        ).fetchone()
    finally:
        connection.close()


def unfinished(pytester, server, *args):
    """Run until the server breaks down; return how many answers were kept before."""
    server.inject(*[Fault()] * 8, *[BROKEN] * 4)
    pytester.runpytest(*args)
    assert stored(pytester) == (8, 1)
    return 8


def run_files(pytester):
    """Return the names of the files that runs have left."""
    return [path.name for path in (pytester.path / ".kbrel-cache").glob("run-*")]
