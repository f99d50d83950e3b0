"""Before a run: all that can be checked without loading anything is checked, in one line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.plugin import worker
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.options import find_suites, is_explicit, is_on_command_line
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check_judge
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.reports.files import REPORT_FILES
from pytest_kbrel.settings import Settings

if TYPE_CHECKING:
    from pytest_kbrel.baselines import Baseline


def start(config: pytest.Config) -> None:
    """Begin to record; ``UsageError`` for settings with which nothing could come of it.

    A model that only ini file or environment name may be wrong as long as no suite is in sight: the project's
    other tests have nothing to do with it.
    """
    settings = read_settings(config)
    baseline = None
    if is_explicit(config, "model") or is_explicit(config, "from_run") or find_suites(config):
        try:
            baseline = check(config, settings)
        except (KbrelError, pytest.UsageError) as error:
            # Whoever publishes the folder must not publish what an older run left there.
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
    """Return how many GPUs each worker needs for itself, 0 where it can share one, ``None`` for its share."""
    from pytest_kbrel.models.registry import gpus_of

    if settings.from_run is not None or not (is_explicit(config, "model") or find_suites(config)):
        return 0
    needed = [gpus_of(spec) for spec in settings.own_specs]
    # An engine says how many it takes; what is spread makes do with those.
    most = max((count for count in needed if count is not None), default=0)
    return None if None in needed and not most else most


def check(config: pytest.Config, settings: Settings) -> Baseline | None:
    """Check all that can be checked without loading anything; return the baseline that was asked for.

    Raises :class:`KbrelError` or ``UsageError`` for what is wrong.
    """
    from pytest_kbrel.models.registry import check_spec

    _check_output(settings.output_path)
    if settings.model_spec is not None:
        check_spec(settings.model_spec.get())
    if settings.baseline_model:
        _check_base(settings)
    if settings.noise_floor:
        _check_noise_floor(settings)
    _check_company(config, settings)
    check_judge(settings)
    if settings.attribute:
        from pytest_kbrel.models import attribution
        from pytest_kbrel.models.registry import backend_of

        attribution.check(backend_of(settings.model).name)
    if settings.baseline_update:
        from pytest_kbrel.baselines import baseline_directory, check_target

        if settings.limit is not None:
            raise pytest.UsageError(
                "--kb-baseline-update blesses complete runs only, and --kb-limit leaves facts out"
            )
        check_target(baseline_directory(settings.baseline_update, config.rootpath))
    return worker.read_baseline(settings, config) if settings.baseline else None


def _check_base(settings: Settings) -> None:
    from pytest_kbrel.models.registry import check_spec

    if settings.baseline:
        raise pytest.UsageError(
            f"--kb-baseline-model and --kb-baseline: found both, {settings.baseline_model} and "
            f"{settings.baseline}; allowed: one of them, a model to ask in this session or a blessed run"
        )
    if settings.from_run is not None or settings.baseline_spec is None:
        return
    try:
        check_spec(settings.baseline_spec.get())
    except KbrelError as error:
        raise pytest.UsageError(f"--kb-baseline-model: {error}") from None


def _check_noise_floor(settings: Settings) -> None:
    if not settings.baseline_update:
        raise pytest.UsageError(
            "--kb-noise-floor: found without --kb-baseline-update; allowed: with it, for the floor is kept "
            "with the baseline"
        )


def _check_company(config: pytest.Config, settings: Settings) -> None:
    """Refuse what is typed and would be ignored: it is empty, or the flag that it belongs to is missing."""
    if is_on_command_line(config, "from_run") and not settings.from_run and not is_explicit(config, "model"):
        raise pytest.UsageError("--kb-from-run: found nothing (an unset variable?); allowed: a recorded run")
    for name, present, needed, why in (
        ("prices", settings.plan, "--kb-plan", "prices are what a plan reckons with"),
        ("baseline_reason", settings.baseline_update, "--kb-baseline-update", "it is kept with the baseline"),
    ):
        if not present and is_on_command_line(config, name):
            flag = "--kb-" + name.replace("_", "-")
            raise pytest.UsageError(f"{flag}: found without {needed}; allowed: with it, for {why}")


def _check_output(directory: Path) -> None:
    standing = next(path for path in (directory, *directory.parents) if path.exists())
    if not standing.is_dir():
        raise pytest.UsageError(
            f"--kb-output-path: {standing} is a file; allowed: a folder, or one to be made"
        )
    if not os.access(standing, os.W_OK | os.X_OK):
        raise pytest.UsageError(
            f"--kb-output-path: {standing} may not be written; allowed: a folder of yours"
        )
    for name in REPORT_FILES:
        if (directory / name).is_dir():
            raise pytest.UsageError(
                f"--kb-output-path: {directory / name} is a folder, and a report goes there; "
                "allowed: a folder where that name is free"
            )
