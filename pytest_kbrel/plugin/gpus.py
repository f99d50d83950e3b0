"""The GPUs of this machine: how many workers they are enough for, and which worker gets which."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

from pytest_kbrel.errors import KbrelError
from pytest_kbrel.models.registry import BACKENDS
from pytest_kbrel.plugin.options import (
    is_deciding_again,
    is_explicit,
    is_meant,
    origin_of,
)
from pytest_kbrel.plugin.settings import read_settings
from pytest_kbrel.settings import Settings

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
    count = max(1, each)
    for number, spec in enumerate(specs):
        dealt = [
            gpus[index % len(gpus)]
            for index in range(number * count, (number + 1) * count)
        ]
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
