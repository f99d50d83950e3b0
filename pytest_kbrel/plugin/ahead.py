"""Asking ahead: a worker of xdist asks its share of all suites before it runs items, which then decide.

Workers share the cases by units (see ``session/units.py``), so that it does not matter which worker xdist
gives an item to, and large cases are asked by all of them.
"""

from __future__ import annotations

from collections.abc import Generator
from os import PathLike
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from pytest_kbrel.plugin.collection import is_shared
from pytest_kbrel.plugin.fixtures import ahead_key, runner_key
from pytest_kbrel.plugin.options import NEWS
from pytest_kbrel.serialization import dumps_compact


class NextItem(pytest.Item):
    """No-op item that stands behind an item that asks ahead: of its fixtures those of the session stay set up.

    Hooks get it as the next item. They may expect what a test function has, so it has what ``whole`` has.
    """

    whole: pytest.Item

    def __getattr__(self, name: str) -> Any:
        """Return what this item does not have from the one behind which it stands."""
        if name == "whole":
            raise AttributeError(name)
        return getattr(self.whole, name)

    def runtest(self) -> None:
        """Do nothing."""

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Return where the item is behind which it stands."""
        return self.whole.reportinfo()


class AskAhead:
    """pytest plugin of a worker that asks ahead.

    It begins with its first item: xdist cannot deal items to a worker that died before.
    """

    def __init__(self) -> None:
        self._has_asked = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Ask ahead of the first item."""
        self._ask(item.session)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Ask also where there were more workers than items."""
        outcome = yield
        if not (session.shouldstop or session.shouldfail):
            self._ask(session)
        return outcome

    def _ask(self, session: pytest.Session) -> None:
        """Run one item of each suite with its fixtures, not to decide its case but to ask those of the suite."""
        if self._has_asked:
            return
        self._has_asked = True
        suites: dict[str, pytest.Item] = {}
        for item in filter(is_shared, session.items):
            suites.setdefault(item.nodeid.partition("::")[0], item)
        for item in suites.values():
            behind = NextItem.from_parent(session, name=item.name, nodeid=item.nodeid)
            behind.whole, behind.own_markers = item, item.own_markers
            item.stash[ahead_key] = True
            try:
                # An error of its fixtures is one of the item too, which reports it.
                runtestprotocol(item, log=False, nextitem=behind)
            finally:
                item.stash[ahead_key] = False
                item._report_sections.clear()

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller what the worker was asked that no item has reported."""
        if (runner := session.config.stash.get(runner_key, None)) is not None:
            news = dumps_compact(runner.pool.news())
            session.config.workeroutput[NEWS] = news  # type: ignore[attr-defined]
