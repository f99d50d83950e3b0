"""Start of a session that runs cases."""

from __future__ import annotations

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import announcements_of
from pytest_kbrel.models.answers import ANSWERS
from pytest_kbrel.models.registry import backend_of
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.options import is_meant
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check
from pytest_kbrel.plugin.progress_reporter import ProgressReporter
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.plugin.xdist import Distribution
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
        shares = may_share(config, settings)
        distribution = Distribution(recorder, settings, may_share=shares)
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
