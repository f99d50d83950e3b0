"""Start of a session that runs cases, its hooks for pytest-xdist, and which worker gets which GPU."""

from __future__ import annotations

import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.evaluation.model_pool import News, announcements_of
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.plugin.controller import Recorder
from pytest_kbrel.plugin.options import (
    BEGUN,
    NEWS,
    SHARING,
    begun,
    is_deciding_again,
    is_explicit,
    is_meant,
    origin_of,
)
from pytest_kbrel.plugin.output_folder import move_aside
from pytest_kbrel.plugin.preflight import check
from pytest_kbrel.plugin.progress import ProgressReporter
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.plugin.worker import may_share
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
    kind = Distribution if config.pluginmanager.hasplugin("xdist") else Recorder
    recorder = kind(config, settings, baseline)
    config.pluginmanager.register(recorder, "kbrel-recorder")
    if settings.from_run is None:
        loading = "; ".join(announcements_of(settings))
        reporter = ProgressReporter(config, recorder, loading)
        config.pluginmanager.register(reporter, "kbrel-progress")


# The outcome that plugins give items that are run again.
_AGAIN = "rerun"
# Seconds that the workers of a stopped session have to end before they are killed.
PATIENCE = 1.0


class Distribution(Recorder):
    """Recorder of a session in which xdist is, with its hooks."""

    @functools.cached_property
    def _may_share(self) -> bool:
        """Whether the workers share the cases of suites: any of them asks any facts."""
        return may_share(self._config, self._settings)

    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the day and the id of the run."""
        node.workerinput[BEGUN] = begun(node.config)
        if self._may_share:
            node.workerinput[SHARING] = True

    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: Any
    ) -> None:
        """Have an item dealt again that its worker had not begun: it died while it asked ahead."""
        if self._may_share and crashitem not in self._results.begun:
            sched.mark_test_pending(crashitem)
            self._results.dealt_again.add(crashitem)
            report.outcome = _AGAIN  # type: ignore[assignment]

    def pytest_report_teststatus(
        self, report: pytest.TestReport
    ) -> tuple[str, str, str] | None:
        """Show nothing of an item that is dealt again."""
        return ("", "", "") if str(report.outcome) == _AGAIN else None

    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker has reported with no item, once: xdist calls this twice for some."""
        self.store.end_counting(node.gateway.id)
        if told := getattr(node, "workeroutput", {}).pop(NEWS, None):
            self._results.add_news(from_wire(News, json.loads(told)))

    def pytest_xdist_node_collection_finished(
        self, node: Any, ids: Sequence[str]
    ) -> None:
        """Expect the items that the workers collected."""
        self.expect(ids)
        self._collected = True

    def pytest_xdist_setupnodes(
        self, config: pytest.Config, specs: Sequence[Any]
    ) -> None:
        """Assign the visible GPUs to the workers; raises ``UsageError`` where there are too few."""
        _check_here(specs)
        if self._settings.from_run is None:
            each = gpus_each(config, self._settings)
            deal_gpus(specs, self._settings.device, each)

    def stop_workers(self, interrupt: bool) -> None:
        """End all workers in little more than :data:`PATIENCE` seconds; xdist waits much longer.

        With ``interrupt`` they get the Ctrl-C that only the controller received, so that their subprocesses
        (an engine's) end with them.
        """
        session = self._config.pluginmanager.getplugin("dsession")
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


DEVICES = "CUDA_VISIBLE_DEVICES"
_XDISTS_OWN = "PYTEST_XDIST_AUTO_NUM_WORKERS"


def auto_workers(config: pytest.Config) -> int | None:
    """Return how many workers -n auto starts, ``None`` where no GPU is used and xdist counts cores.

    Raises ``UsageError`` for wrong settings.
    """
    if is_deciding_again(config) or os.environ.get(_XDISTS_OWN):
        return None
    if not is_meant(config):
        return None
    settings = read_settings(config)
    gpus = visible_gpus(settings.device)
    try:
        specs = [parsed.get() for parsed in settings.specs.values()]
        if not gpus or not any(BACKENDS[of.backend].computes_here for of in specs):
            return None
        each = gpus_each(config, settings)
    except KbrelError:
        # It is reported when the session starts.
        return None
    # A model that is spread over all GPUs that it sees may need them all.
    return 1 if each is None else max(1, len(gpus) // max(1, each))


def gpus_each(config: pytest.Config, settings: Settings) -> int | None:
    """Return how many GPUs each worker needs alone, 0 if workers share them, ``None`` for an even share.

    Raises ``UsageError`` for --kb-gpus-per-worker where there are no GPUs, or an engine needs more.
    """
    given = settings.gpus_per_worker
    if not is_meant(config):
        return given or 0
    needed = [BACKENDS[spec.backend].gpus(spec) for spec in settings.own_specs]
    # An engine states its number; a model that is spread over GPUs makes do with those.
    most = max((count for count in needed if count is not None), default=0)
    if given is None:
        return None if None in needed and not most else most
    flag = origin_of(config, "gpus_per_worker")
    if is_explicit(config, "gpus_per_worker") and not visible_gpus(settings.device):
        raise pytest.UsageError(
            f"{flag}: found {given} GPU(s), and none can be used (--kb-device={settings.device}, {DEVICES}); "
            "allowed: with GPUs"
        )
    if given < most:
        raise pytest.UsageError(
            f"{flag}: found {given}, and tensor_parallel_size={most} splits the model over {most} GPUs of "
            f"each worker; allowed: {most} or more, or none"
        )
    return given


def deal_gpus(specs: Sequence[Any], device: str, each: int | None) -> None:
    """Assign the visible GPUs to the workers in turn, given their specs of execnet.

    ``device`` is that of --kb-device, ``each`` how many GPUs each worker needs alone, ``None`` for an even
    share. The variable is set on the worker's spec: it is set before torch loads, and the replacement of a
    crashed worker has the same spec and so the same GPU. Raises ``UsageError`` where workers need more GPUs
    than there are.
    """
    gpus = visible_gpus(device)
    if not gpus:
        return
    if each is None:
        each = len(gpus) // len(specs)
    if each * len(specs) > len(gpus):
        most = len(gpus) // each
        allowed = (
            f"-n {most} at most"
            if most
            else f"{len(gpus)} GPU(s) for each worker at most"
        )
        raise pytest.UsageError(
            f"-n {len(specs)}: each worker takes {each} GPU(s) for itself, and {len(gpus)} can be seen "
            f"({DEVICES}); allowed is {allowed}"
        )
    in_turn = itertools.cycle(gpus)
    for spec in specs:
        dealt = itertools.islice(in_turn, max(1, each))
        spec.env.setdefault(DEVICES, ",".join(dealt))


def visible_gpus(device: str = "auto") -> list[str]:
    """Return the ids of the GPUs this process may use: entries of the caller's own list, else all of them.

    With --kb-device=cpu it uses none.

    Entries may be UUIDs. torch is not used: counting would open a context on the first GPU.
    """
    if device == "cpu":
        return []
    listed = os.environ.get(DEVICES)
    if listed is not None:
        return [entry.strip() for entry in listed.split(",") if entry.strip()]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        answer = subprocess.run(
            [tool, "-L"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [
        str(number)
        for number, line in enumerate(answer.splitlines())
        if line.startswith("GPU ")
    ]
