"""Hooks for pytest-xdist: what workers are sent, what they collected, and how they are stopped."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kbrel.evaluation.model_pool import News
from pytest_kbrel.plugin.gpus import deal_gpus, gpus_each
from pytest_kbrel.plugin.options import BEGUN, NEWS, SHARING, begun
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.plugin.controller import Recorder

# The outcome that plugins give items that are run again.
_AGAIN = "rerun"
# Seconds that the workers of a stopped session have to end before they are killed.
PATIENCE = 1.0


class Distribution:
    """Hooks of xdist's controller. Registered only where xdist is."""

    def __init__(
        self, recorder: Recorder, settings: Settings, *, may_share: bool = False
    ) -> None:
        """With ``may_share`` the workers share the cases of suites: any of them asks any facts."""
        self._recorder = recorder
        self._settings = settings
        self._may_share = may_share
        self._config: pytest.Config | None = None

    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the day and the id of the run."""
        node.workerinput[BEGUN] = begun(node.config)
        if self._may_share:
            node.workerinput[SHARING] = True

    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: Any
    ) -> None:
        """Have an item dealt again that its worker had not begun: it died while it asked ahead."""
        if self._may_share and not self._recorder.has_begun(crashitem):
            sched.mark_test_pending(crashitem)
            self._recorder.note_dealt_again(crashitem)
            report.outcome = _AGAIN  # type: ignore[assignment]

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Show nothing of an item that is dealt again."""
        return ("", "", "") if str(report.outcome) == _AGAIN else None

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
