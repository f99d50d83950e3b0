"""Start of a session that runs cases, and its hooks for pytest-xdist: what workers are sent and collected."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import News, announcements_of
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.registry import backend_of
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.gpus import deal_gpus, gpus_each
from pytest_kbrel.plugin.options import BEGUN, NEWS, SHARING, begun, is_meant
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check
from pytest_kbrel.plugin.progress import ProgressReporter
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.serialization import from_wire
from pytest_kbrel.settings import Settings


def start(config: pytest.Config) -> None:
    """Check the settings and register the controller; raises ``UsageError`` for wrong settings.

    A model that only the ini file or the environment names is not checked unless the arguments name suites,
    so that the project's other tests run in any case.
    """
    settings = read_settings(config)
    baseline = None
    if is_meant(config):
        try:
            baseline = check(config, settings)
        except (KbrelError, pytest.UsageError) as error:
            # A CI job that publishes the folder must not publish the reports of the previous run.
            move_aside(settings.output_path)
            raise pytest.UsageError(str(error)) from None
    recorder = Recorder(config, settings, baseline)
    config.pluginmanager.register(recorder, "kbrel-recorder")
    if settings.from_run is None:
        reporter = ProgressReporter(
            config,
            recorder.store,
            recorder.expected_requests,
            "; ".join(announcements_of(settings)),
        )
        recorder.counts = reporter.counts
        config.pluginmanager.register(reporter, "kbrel-progress")
    if config.pluginmanager.hasplugin("xdist"):
        distribution = Distribution(recorder, settings, may_share(config, settings))
        recorder.stop_workers = distribution.stop
        config.pluginmanager.register(distribution, "kbrel-distribution")


def may_share(config: pytest.Config, settings: Settings) -> bool:
    """Return True if the workers of a session may share cases: ask them ahead of the items, which then decide.

    Where failures end the session or a case ends before all is asked, asking ahead would be for nothing.
    With other schedulers of xdist than ``load`` an item is not dealt again.
    """
    if settings.from_run is not None or settings.until_decided:
        return False
    if config.getoption("dist") != "load":
        return False
    is_asked = not any(
        backend_of(text) is ANSWERS
        for text in (settings.model, settings.baseline_model)
    )
    return is_asked and not config.getoption("maxfail", 0)


# The outcome that plugins give items that are run again.
_AGAIN = "rerun"
# Seconds that the workers of a stopped session have to end before they are killed.
PATIENCE = 1.0


class Distribution:
    """Hooks of xdist's controller. Registered only where xdist is."""

    def __init__(self, recorder: Recorder, settings: Settings, may_share: bool) -> None:
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
