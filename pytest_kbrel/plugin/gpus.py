"""The GPUs of this machine: which ones a session may use, and which worker gets which."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

DEVICES = "CUDA_VISIBLE_DEVICES"


def deal_gpus(specs: Sequence[Any], device: str, each: int | None) -> None:
    """Assign the visible GPUs to workers in turn, given their specs of execnet.

    ``device`` is that of --kb-device, ``each`` how many GPUs each worker needs alone, ``None`` for an even
    share. The variable is set on the worker's spec: it is set before torch loads, and the replacement of a
    crashed worker has the same spec and so the same GPU. Raises ``UsageError`` where workers need more GPUs
    than there are.
    """
    gpus = [] if device == "cpu" else visible_gpus()
    if each is None:
        each = len(gpus) // len(specs)
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
                _check_index(device, len(specs), len(gpus), count)
            spec.env.setdefault(DEVICES, ",".join(dealt))


def _check_index(device: str, workers: int, gpus: int, dealt: int) -> None:
    """Raise ``UsageError`` for a device number that no worker has."""
    kind, _, index = device.partition(":")
    if kind == "cuda" and index.isdecimal() and int(index) >= dealt:
        raise pytest.UsageError(
            f"--kb-device: found {device}; with -n {workers} each worker sees {dealt} of {gpus} "
            f"GPU(s) as cuda:0 and on; allowed: cuda, or {DEVICES} for which GPUs are dealt out"
        )


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
