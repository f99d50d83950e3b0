"""Which device each part of a checkpoint goes to, as the user typed it: one, or several by accelerate."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pytest_kbrel.bounds import DEVICE_NUMBER
from pytest_kbrel.errors import ModelError, nearest
from pytest_kbrel.records import record
from pytest_kbrel.untrusted import parse

WORDS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Ways in which accelerate spreads layers by itself."""

PLACING_ARGS = (
    "parallelize",
    "device_map",
    "device_map_option",
    "max_memory_per_gpu",
    "max_cpu_memory",
    "offload_folder",
)
_DEVICE = re.compile(r"(cpu|mps|cuda|xpu|npu|hpu)(:[0-9]{1,4})?|[0-9]{1,4}")
_MEMORY = re.compile(r"[0-9]{1,15}|[0-9]{1,6}([.][0-9]{1,6})? ?[KMGT]i?B", re.IGNORECASE)


@record
class Placement:
    """How a checkpoint is spread over devices.

    ``device_map`` is one of :data:`WORDS` or a JSON object of parts and devices. Memory is what accelerate
    may fill, in bytes or as in ``10GiB``; empty for what is free.
    """

    device_map: str = "auto"
    max_memory_per_gpu: str = ""
    max_cpu_memory: str = ""
    offload_folder: str = ""

    @property
    def parts(self) -> dict[str, str | int] | None:
        """Devices by the names of parts, ``None`` where accelerate is to choose."""
        if self.device_map in WORDS:
            return None
        found: dict[str, str | int] = json.loads(self.device_map)
        return found


def read_placement(args: Mapping[str, str], *, parallelize: bool) -> tuple[Placement | None, str, list[str]]:
    """Return how to spread a checkpoint, the one device it names, and a line on what has no effect.

    ``None`` stands for a checkpoint that is not spread, an empty device for one that is not named. Raises
    :class:`ModelError` for a value of the wrong kind, or two that contradict each other.
    """
    option, given = args.get("device_map_option", ""), args.get("device_map", "")
    if option and given and option != given:
        raise ModelError(
            f"model-args: device_map_option={option} and device_map={given} are one thing; give one of them"
        )
    for key in ("max_memory_per_gpu", "max_cpu_memory"):
        if key in args and not _MEMORY.fullmatch(args[key]):
            raise ModelError(
                f"model-args: {key}={args[key]:.60}; allowed is a number of bytes, or as in 10GiB"
            )
    chosen = given or (option if parallelize else "")
    device = ""
    if _DEVICE.fullmatch(chosen):
        # One device for all is no map, and needs no accelerate.
        device = f"cuda:{chosen}" if chosen.isdigit() else chosen
        if parallelize:
            raise ModelError(
                f"model-args: parallelize=True and device_map={chosen} contradict each other; give one"
            )
    elif chosen or parallelize:
        return (
            Placement(
                device_map=_checked(chosen or "auto"),
                max_memory_per_gpu=args.get("max_memory_per_gpu", ""),
                max_cpu_memory=args.get("max_cpu_memory", ""),
                offload_folder=args.get("offload_folder", ""),
            ),
            "",
            [],
        )
    idle = [key for key in PLACING_ARGS[2:] if key in args and args[key] != device]
    return (
        None,
        device,
        [
            f"model-args: {key}={args[key]} is not used: without parallelize=True or device_map=auto the "
            "checkpoint goes to one device"
            for key in idle
        ],
    )


def _checked(device_map: str) -> str:
    if device_map in WORDS:
        return device_map
    allowed = (
        f"allowed: {', '.join(WORDS)}, a device, or a JSON object of parts and devices such as "
        '{"model.embed_tokens": 0, …}'
    )
    if not device_map.startswith("{"):
        raise ModelError(f"model-args: device_map={device_map}; {allowed}{nearest(device_map, WORDS)}")
    try:
        found = parse(device_map)
    except ValueError as error:
        raise ModelError(f"model-args: device_map is not JSON: {error}; {allowed}") from None
    wrong = [name for name, device in found.items() if not _is_device(device)]
    if wrong or not found:
        said = f"{wrong[0]!r} goes to {found[wrong[0]]!r}" if wrong else "it is empty"
        raise ModelError(
            f"model-args: device_map: {said}; allowed: cpu, disk, or a GPU by its number or as in cuda:1"
        )
    return device_map


def _is_device(device: object) -> bool:
    if isinstance(device, int):
        return device in DEVICE_NUMBER
    return isinstance(device, str) and (device == "disk" or bool(_DEVICE.fullmatch(device)))
