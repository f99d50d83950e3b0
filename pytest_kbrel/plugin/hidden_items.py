"""Hidden items: what xdist's workers are sent beside the items that they have collected.

They stand behind the collected items, where xdist reaches them by number (see ``parts.py``), and nothing is
reported of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeVar

import pytest
from _pytest.runner import CallInfo, runtestprotocol

from pytest_kbrel.plugin.fixtures import part_key, runner_key
from pytest_kbrel.plugin.options import NEWS
from pytest_kbrel.plugin.parts import Dealing, dealing_of
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.plugin.worker import suites_of
from pytest_kbrel.serialization import dumps_compact


class HiddenItem(pytest.Item):
    """A filler, at which nothing is to be done; the fixtures of its suite stay set up.

    Hooks that wrap the run of an item are called with it, and others with it as the next item. They may
    expect what a test function has, so it has the marks and attributes of ``whole``.
    """

    whole: pytest.Item

    def __getattr__(self, name: str) -> Any:
        """Return what this item does not have from the one beside which it stands."""
        if name == "whole":
            raise AttributeError(name)
        return getattr(self.whole, name)

    def runtest(self) -> None:
        """Do nothing."""

    def reportinfo(self) -> tuple[PathLike[str] | str, int | None, str]:
        """Return where the item is beside which it stands."""
        return self.whole.reportinfo()


class PartItem(HiddenItem):
    """A part of the case of the item ``whole``: that item with its fixtures, which asks only the part."""

    first: int
    size: int


H = TypeVar("H", bound=HiddenItem)


class HiddenItems:
    """pytest plugin of a worker that adds the hidden items and runs them."""

    def __init__(self, workers: int, *, split: bool) -> None:
        self._workers = workers
        self._split = split

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Add the hidden items, now that the controller has been told what was collected."""
        settings = read_settings(session.config)
        ids = [item.nodeid for item in session.items]
        suites = suites_of(session.config, ids, settings)
        dealing = dealing_of(
            ids, suites, self._workers, split=self._split, shard=settings.shard
        )
        session.items += _hidden(session.items, dealing)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the controller what the parts were asked that no item has reported since."""
        if (runner := session.config.stash.get(runner_key, None)) is not None:
            news = dumps_compact(runner.pool.news())
            session.config.workeroutput[NEWS] = news  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        """Run a hidden item; reported is only an error of a teardown that no other item will have."""
        if not isinstance(item, HiddenItem):
            return None
        if isinstance(item, PartItem):
            _run_part(item)
        report = _torn_down(item, nextitem)
        if report.failed:
            item.ihook.pytest_runtest_logreport(report=report)
        return True


def _torn_down(item: HiddenItem, nextitem: pytest.Item | None) -> pytest.TestReport:
    """Tear down what the items before a hidden one have set up and the next one does not need.

    No hook is called that hooks of the user may expect an ordinary item in.
    """
    call = CallInfo.from_call(
        lambda: item.session._setupstate.teardown_exact(nextitem),
        when="teardown",
        reraise=(pytest.exit.Exception, KeyboardInterrupt),
    )
    return pytest.TestReport.from_item_and_call(item, call)


def _run_part(part: PartItem) -> None:
    """Run the item with only the facts of the part, and tear down the fixtures that it has for itself.

    Their errors are those of the item, which has such fixtures too and reports them where it is decided.
    """
    item = part.whole
    item.stash[part_key] = part.first, part.size
    try:
        # As if another item of the suite came next.
        runtestprotocol(item, log=False, nextitem=part)
    finally:
        item.stash[part_key] = None
        # What was printed belongs to this part.
        item._report_sections.clear()


def _hidden(items: Sequence[pytest.Item], dealing: Dealing) -> list[pytest.Item]:
    """Return the fillers and then the parts of a dealing."""
    hidden: list[pytest.Item] = []
    for path in dealing.fillers:
        first = next(item for item in items if item.nodeid.partition("::")[0] == path)
        hidden.append(_beside(HiddenItem, first))
    by_id = {item.nodeid: item for item in items}
    for part in dealing.parts:
        one = _beside(PartItem, by_id[part.item])
        one.first, one.size = part.first, part.size
        # Whichever worker decides, others have asked the parts.
        one.whole.stash[part_key] = None
        hidden.append(one)
    return hidden


def _beside(kind: type[H], whole: pytest.Item) -> H:
    assert whole.parent is not None
    one: H = kind.from_parent(whole.parent, name=whole.name, nodeid=whole.nodeid)
    one.whole = whole
    one.own_markers = whole.own_markers
    return one
