"""Hooks for pytest-xdist: what workers are sent, what they collected, and which worker gets which GPU."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kbrel.plugin.options import RUN, TODAY, run_id, today

if TYPE_CHECKING:
    from pytest_kbrel.plugin.controller import Recorder

DEVICES = "CUDA_VISIBLE_DEVICES"
# Seconds that the workers of a stopped session have to end before they are killed.
PATIENCE = 1.0


class Distribution:
    """Hooks of xdist's controller. Registered only where xdist is."""

    def __init__(self, recorder: Recorder, device: str, gpus_each: int | None = 0) -> None:
        """``gpus_each`` is how many GPUs each worker needs alone, ``None`` for an even share."""
        self._recorder = recorder
        self._device = device
        self._each = gpus_each
        self._config: pytest.Config | None = None

    def pytest_configure_node(self, node: Any) -> None:
        """Send a worker the day and the id of the run."""
        node.workerinput[TODAY] = today(node.config).isoformat()
        node.workerinput[RUN] = run_id(node.config)

    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Expect the items that the workers collected."""
        self._recorder.expect(ids)
        self._recorder.note_collected()

    def pytest_xdist_setupnodes(self, config: pytest.Config, specs: Sequence[Any]) -> None:
        """Assign the visible GPUs to the workers in turn.

        The variable is set on the worker's spec: it is set before torch loads, and the replacement of a
        crashed worker has the same spec and so the same GPU. Raises ``UsageError`` where workers need more
        GPUs than there are.
        """
        self._config = config
        gpus = [] if self._device == "cpu" else visible_gpus()
        each = len(gpus) // len(specs) if self._each is None else self._each
        needed = each * len(specs)
        if gpus and needed > len(gpus):
            raise pytest.UsageError(
                f"-n {len(specs)}: each worker's vLLM engine takes {each} GPU(s) for itself, and "
                f"{len(gpus)} can be seen ({DEVICES}); allowed is -n {len(gpus) // each} at most"
            )
        for number, spec in enumerate(specs):
            if gpus:
                first, count = number * max(1, each), max(1, each)
                dealt = [gpus[index % len(gpus)] for index in range(first, first + count)]
                if DEVICES not in spec.env:
                    self._check_index(len(specs), len(gpus), count)
                spec.env.setdefault(DEVICES, ",".join(dealt))

    def _check_index(self, workers: int, gpus: int, dealt: int) -> None:
        """Raise ``UsageError`` for a device number that no worker has."""
        kind, _, index = self._device.partition(":")
        if kind == "cuda" and index.isdecimal() and int(index) >= dealt:
            raise pytest.UsageError(
                f"--kb-device: found {self._device}; with -n {workers} each worker sees {dealt} of {gpus} "
                f"GPU(s) as cuda:0 and on; allowed: cuda, or {DEVICES} for which GPUs are dealt out"
            )

    def stop(self, interrupt: bool) -> None:
        """End all workers in little more than :data:`PATIENCE` seconds; xdist waits much longer.

        With ``interrupt`` they get the Ctrl-C that only the controller received, so that their subprocesses
        (an engine's) end with them.
        """
        session = self._config.pluginmanager.getplugin("dsession") if self._config is not None else None
        manager = getattr(session, "nodemanager", None)
        if manager is None:
            return
        for gateway in manager.group:
            process = getattr(getattr(gateway, "_io", None), "popen", None)
            if interrupt and process is not None and sys.platform != "win32":
                process.send_signal(signal.SIGINT)
        manager.EXIT_TIMEOUT = PATIENCE
        manager.teardown_nodes()


def visible_gpus() -> list[str]:
    """Return the ids of the GPUs this process may use: entries of the caller's own list, else all of them.

    Entries may be UUIDs. torch is not used: counting would open a context on the first GPU.
    """
    listed = os.environ.get(DEVICES)
    if listed is not None:
        return [entry.strip() for entry in listed.split(",") if entry.strip()]
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    try:
        answer = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(number) for number, line in enumerate(answer.splitlines()) if line.startswith("GPU ")]
