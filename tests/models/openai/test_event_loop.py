from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import CancelledError

import pytest

from pytest_kbrel.models.openai.client import LoopThread


@pytest.fixture
def loop():
    return LoopThread("a loop of a test")


async def _nothing():
    """Do nothing."""


async def _said(what):
    await asyncio.sleep(0)
    if isinstance(what, Exception):
        raise what
    return what


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "a loop of a test"]


def test_a_coroutine_s_value_and_error_come_back(loop):
    assert loop.run(_said(7)) == 7
    with pytest.raises(ValueError, match="eight"):
        loop.run(_said(ValueError("eight")))
    loop.close(_nothing())


def test_a_loop_that_ran_nothing_has_no_thread(loop):
    assert not threads()
    loop.close(_nothing())
    assert not threads()


def test_closing_cancels_what_runs_and_ends_the_thread(loop):
    begun, found = threading.Event(), []

    async def for_ever():
        begun.set()
        await asyncio.sleep(3600)

    def wait():
        with contextlib.suppress(CancelledError):
            loop.run(for_ever())
        found.append("given up")

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert begun.wait(60)
    loop.close(_nothing())
    waiting.join(60)
    assert found == ["given up"]
    assert not threads()


def test_a_closed_loop_runs_nothing_more(loop):
    loop.run(_said(7))
    for _ in range(2):
        loop.close(_nothing())
    with pytest.raises(CancelledError):
        loop.run(_said(7))
    assert not threads()
