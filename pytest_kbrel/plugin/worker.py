"""Running cases in one process of pytest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.evaluation.model_pool import let_threads_sleep
from pytest_kbrel.evaluation.model_under_test import ModelUnderTest
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.registry import backend_of
from pytest_kbrel.plugin import collection
from pytest_kbrel.plugin.options import SHARING
from pytest_kbrel.plugin.output_folder import store_path
from pytest_kbrel.records import Case, CaseResult, Suite
from pytest_kbrel.session.case_asker import CaseAsker
from pytest_kbrel.settings import Settings
from pytest_kbrel.store.run_store import AnswerCounts, RunStore
from pytest_kbrel.words import in_suite

if TYPE_CHECKING:
    from pytest_kbrel.session.units import Unit


class CaseRunner(CaseAsker):
    """Runs the cases of one process."""

    def __init__(self, session: pytest.Session, settings: Settings) -> None:
        config = session.config
        sent = getattr(config, "workerinput", {})
        super().__init__(
            settings,
            root=config.rootpath,
            store=RunStore(store_path(settings.output_path, settings.run)),
            suites=lambda: suites_of(
                config, [item.nodeid for item in session.items], settings
            ),
        )
        if sent:
            publish = functools.partial(self.store.count, sent["workerid"])
            self.pool.counts = AnswerCounts(publish=publish)
            self.workers = sent["workercount"]
        self._session = session
        self.model = ModelUnderTest(self.pool)
        let_threads_sleep()

    @functools.cached_property
    def units(self) -> Mapping[str, Sequence[Unit]]:
        """The units of the cases of suites, by node id; none where each is asked by itself, for its own item."""
        from pytest_kbrel.plugin.preflight import selected
        from pytest_kbrel.session.units import units_of

        session, settings = self._session, self.settings
        sent = getattr(session.config, "workerinput", None)
        if not (
            SHARING in sent
            if sent
            else may_share(session.config, settings) and self.pool.model().pools_cases
        ):
            return {}
        shared = [item.nodeid for item in session.items if collection.is_shared(item)]
        cases = selected(suites_of(session.config, shared, settings), shared)
        return units_of(cases, self.workers, settings.shard)

    def decide(self, case: Case) -> CaseResult:
        """Run a case and decide its gates.

        Raises ``KbrelError`` where no answers can be had, or where a checkpoint's files have changed since it
        was loaded.
        """
        # With cached answers no batch runs, after which the model itself would check.
        self.pool.check_files()
        decided = self.ask_case(case)
        self.pool.check_files()
        return decided


def may_share(config: pytest.Config, settings: Settings) -> bool:
    """Return True if cases may be asked before the items that decide them, and several in one call.

    Where failures end the session or a case ends before all is asked, asking ahead would be for nothing.
    With other schedulers of xdist than ``load`` an item is not dealt again.
    """
    if settings.from_run is not None or settings.until_decided:
        return False
    if config.getoption("dist", "no") not in ("load", "no"):
        return False
    is_asked = not any(
        backend_of(text) is ANSWERS
        for text in (settings.model, settings.baseline_model)
    )
    return is_asked and not config.getoption("maxfail", 0)


def suites_of(
    config: pytest.Config, nodeids: Sequence[str], settings: Settings
) -> list[Suite]:
    """Return the suites of node ids; those that this process has not collected are read."""
    paths = dict.fromkeys(nodeid.split("::", 1)[0] for nodeid in nodeids)
    collected = config.stash.get(collection.suites_key, {})
    return [
        collected.get(path) or collection.load(config.rootpath / path, path, settings)
        for path in paths
        if in_suite(path)
    ]
