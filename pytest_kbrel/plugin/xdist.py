"""Hooks for pytest-xdist: what workers are sent, what they collected, and how they are stopped."""

from __future__ import annotations

import functools
import json
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kbrel.evaluation.model_pool import News
from pytest_kbrel.plugin.gpus import deal_gpus, gpus_each
from pytest_kbrel.plugin.options import BEGUN, DEALT, NEWS, begun
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.plugin.controller import Recorder

# Seconds that the workers of a stopped session have to end before they are killed.
PATIENCE = 1.0


class Distribution:
    """Hooks of xdist's controller. Registered only where xdist is."""

    def __init__(
        self, recorder: Recorder, settings: Settings, *, may_split: bool = False
    ) -> None:
        """With ``may_split`` large cases are split among the workers."""
        self._recorder = recorder
        self._settings = settings
        self._may_split = may_split
        # Among how many workers items are dealt; 0 where xdist deals them.
        self._dealt = 0
        self._config: pytest.Config | None = None

    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the day and the id of the run."""
        node.workerinput[BEGUN] = begun(node.config)
        if self._dealt:
            node.workerinput[DEALT] = self._dealt, self._may_split

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Return the scheduler of items of suites, unless the user has asked for another than xdist's own."""
        if not self._dealt:
            return None
        from pytest_kbrel.plugin.scheduling import SliceScheduling

        deal = functools.partial(
            self._recorder.dealing_of, workers=self._dealt, split=self._may_split
        )
        return SliceScheduling(config, log, deal)

    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has reported with no item, once: xdist calls this twice for some."""
        self._recorder.note_down(node.gateway.id)
        if told := getattr(node, "workeroutput", {}).pop(NEWS, None):
            self._recorder.add_news(from_wire(News, json.loads(told)))

    def pytest_xdist_node_collection_finished(
        self, node: Any, ids: Sequence[str]
    ) -> None:
        """Expect the items that the workers collected."""
        self._recorder.expect(ids)
        self._recorder.note_collected()

    def pytest_xdist_setupnodes(
        self, config: pytest.Config, specs: Sequence[Any]
    ) -> None:
        """Assign the visible GPUs to the workers; raises ``UsageError`` where there are too few."""
        self._config = config
        _check_here(specs)
        if len(specs) > 1 and config.getoption("dist") == "load":
            self._dealt = len(specs)
        if self._settings.from_run is None:
            each = gpus_each(config, self._settings)
            deal_gpus(specs, self._settings.device, each)

    def stop(self, interrupt: bool) -> None:
        """End all workers in little more than :data:`PATIENCE` seconds; xdist waits much longer.

        With ``interrupt`` they get the Ctrl-C that only the controller received, so that their subprocesses
        (an engine's) end with them.
        """
        session = (
            self._config.pluginmanager.getplugin("dsession")
            if self._config is not None
            else None
        )
        manager = getattr(session, "nodemanager", None)
        if manager is None:
            return
        for gateway in manager.group:
            process = getattr(getattr(gateway, "_io", None), "popen", None)
            if interrupt and process is not None and sys.platform != "win32":
                process.send_signal(signal.SIGINT)
        manager.EXIT_TIMEOUT = PATIENCE
        manager.teardown_nodes()


def _check_here(specs: Sequence[Any]) -> None:
    """Raise ``UsageError`` for a worker that may see other files than the controller."""
    for spec in specs:
        if not spec.popen or spec.chdir or spec.via:
            raise pytest.UsageError(
                f"--tx {spec}: a worker in another folder or on another machine cannot share files and "
                "answers with this session; allowed: popen, or a session there with --kb-shard=I/N, "
                "joined by kbrel merge"
            )
