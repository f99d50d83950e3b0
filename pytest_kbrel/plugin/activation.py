"""Start of a run: settings are checked, then controller and xdist hooks are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.options import find_suites, is_explicit
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    pass


def start(config: pytest.Config) -> None:
    """Check the settings and register the controller; raises ``UsageError`` for wrong settings.

    A model that only the ini file or the environment names is not checked unless the arguments name suites,
    so that the project's other tests run in any case.
    """
    settings = read_settings(config)
    baseline = None
    if is_explicit(config, "model") or is_explicit(config, "from_run") or find_suites(config):
        try:
            baseline = check(config, settings)
        except (KbrelError, pytest.UsageError) as error:
            # A CI job that publishes the folder must not publish the reports of the previous run.
            move_aside(settings.output_path)
            raise pytest.UsageError(str(error)) from None
    recorder = Recorder(config, settings, baseline)
    config.pluginmanager.register(recorder, "kbrel-recorder")
    if config.pluginmanager.hasplugin("xdist"):
        from pytest_kbrel.plugin.xdist import Distribution

        device = "cpu" if settings.from_run else settings.device
        distribution = Distribution(recorder, device, _gpus_each(config, settings))
        recorder.stop_workers = distribution.stop
        config.pluginmanager.register(distribution, "kbrel-distribution")


def _gpus_each(config: pytest.Config, settings: Settings) -> int | None:
    """Return how many GPUs each worker needs alone, 0 if workers share them, ``None`` for an even share."""
    from pytest_kbrel.models.registry import gpus_of

    if settings.from_run is not None or not (is_explicit(config, "model") or find_suites(config)):
        return 0
    needed = [gpus_of(spec) for spec in settings.own_specs]
    # An engine states its number; a model that is spread over GPUs makes do with those.
    most = max((count for count in needed if count is not None), default=0)
    return None if None in needed and not most else most
