"""The SIGTERM handler of a session, before, during and after."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

from pytest_kbrel.plugin.controller import Terminated, Termination

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")


@pytest.fixture(autouse=True)
def _handler_stays() -> Iterator[None]:
    former = signal.getsignal(signal.SIGTERM)
    # What would end this process is not tried on it.
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    yield
    signal.signal(signal.SIGTERM, former)


def _terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_the_first_signal_interrupts_and_later_ones_do_not() -> None:
    termination = Termination()
    termination.watch()
    assert not termination.arrived
    with pytest.raises(Terminated, match=r"^SIGTERM ended the session"):
        _terminate()
    assert termination.arrived
    _terminate()
    assert isinstance(Terminated(), KeyboardInterrupt)


def test_while_it_is_held_the_signal_is_only_noted() -> None:
    termination = Termination()
    termination.watch()
    termination.hold()
    _terminate()
    assert termination.arrived


def test_the_former_handler_is_put_back() -> None:
    former = signal.getsignal(signal.SIGTERM)
    termination = Termination()
    termination.watch()
    termination.watch()
    assert signal.getsignal(signal.SIGTERM) != former
    termination.end()
    assert signal.getsignal(signal.SIGTERM) == former
    termination.end()
    assert signal.getsignal(signal.SIGTERM) == former


def test_a_handler_that_took_the_place_of_ours_keeps_it() -> None:
    termination = Termination()
    termination.watch()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    termination.end()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    termination = Termination()
    termination.watch()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    termination.end()
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN


def test_another_thread_and_another_system_get_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    former, termination = signal.getsignal(signal.SIGTERM), Termination()
    thread = threading.Thread(target=termination.watch)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) == former
    monkeypatch.setattr("pytest_kbrel.plugin.controller.sys.platform", "win32")
    termination.watch()
    assert signal.getsignal(signal.SIGTERM) == former


def test_a_forked_child_dies_of_the_signal_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    termination, sent = Termination(), []
    termination.watch()
    handler = signal.getsignal(signal.SIGTERM)
    assert callable(handler)
    monkeypatch.setattr("os.getpid", lambda: -1)
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append((pid, number)))
    handler(signal.SIGTERM, None)
    assert sent == [(-1, signal.SIGTERM)]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert not termination.arrived
