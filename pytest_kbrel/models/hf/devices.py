"""Which devices there are. Counting them opens no context on a GPU, and takes no memory there."""

from __future__ import annotations

import torch

from pytest_kbrel.errors import ModelError


def check_there(name: str) -> None:
    """Raise :class:`ModelError` where torch knows no device ``name``, or this machine has none such.

    ``auto`` is always there.
    """
    if name == "auto":
        return
    try:
        device = torch.device(name)
        count = _count(device.type)
    except (RuntimeError, AssertionError, AttributeError):
        count = 0
    else:
        if (device.index or 0) < count:
            return
    raise ModelError(f"device {name!r} is not available: allowed on this machine: {', '.join(devices())}")


def devices() -> list[str]:
    """Return the names of the devices of this machine, ``auto`` first."""
    found = ["auto", "cpu"]
    for kind in ("cuda", "mps", "xpu"):
        count = _count(kind)
        found += [f"{kind}:{index}" for index in range(count)] if kind != "mps" else [kind][:count]
    return found


def _count(kind: str) -> int:
    if kind == "cpu":
        return 1
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    # Of a kind that torch knows and cannot run on (meta) it has no such module.
    module = torch.get_device_module(kind)
    return int(module.device_count())
