"""Devices of this machine and of a loaded model. Counting them opens no context on a GPU."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    Placement,
)


def check_device(name: str) -> None:
    """Raise :class:`ModelError` where torch knows no device ``name``, or this machine has none such.

    ``auto`` is always there.
    """
    if name == "auto":
        return
    try:
        device = torch.device(name)
        is_available = (device.index or 0) < _count(device.type)
    except (RuntimeError, AssertionError, AttributeError):
        is_available = False
    if not is_available:
        raise ModelError(
            f"device {name!r} is not available: allowed on this machine: {', '.join(available_devices())}"
        )


def available_devices() -> list[str]:
    """Return the names of the devices of this machine, ``auto`` first."""
    available = ["auto", "cpu"]
    for kind in ("cuda", "mps", "xpu"):
        count = _count(kind)
        available += (
            [f"{kind}:{index}" for index in range(count)]
            if kind != "mps"
            else [kind][:count]
        )
    return available


def _count(kind: str) -> int:
    if kind == "cpu":
        return 1
    if kind == "mps":
        return int(torch.backends.mps.is_available())
    # Of a kind that torch knows and cannot run on (meta) it has no such module.
    return int(torch.get_device_module(kind).device_count())


def device_map_options(placement: Placement) -> dict[str, Any]:
    """Return the arguments of ``from_pretrained`` that spread a checkpoint as ``placement`` says."""
    options: dict[str, Any] = {"device_map": placement.parts or placement.device_map}
    if placement.max_memory_per_gpu or placement.max_cpu_memory:
        from accelerate.utils import get_max_memory

        limits: dict[int | str, int | str] = dict(get_max_memory())
        for device in limits:
            if (
                limit := placement.max_cpu_memory
                if device == "cpu"
                else placement.max_memory_per_gpu
            ):
                limits[device] = (
                    int(limit) if limit.isdigit() else limit.replace(" ", "")
                )
        options["max_memory"] = limits
    if placement.offload_folder:
        options["offload_folder"] = placement.offload_folder
    return options


def check_placement(spec: ModelSpec, model: Any) -> None:
    """Refuse a model whose embedding is offloaded, and an adapter on a model with offloaded weights."""
    if spec.placement is None:
        return
    if (
        model.device.type == "meta"
        or model.get_input_embeddings().weight.device != model.device
    ):
        raise ModelError(
            f"{spec.text}: device_map={spec.placement.device_map} leaves the first layers on the disk or in "
            "main memory beside a GPU; allowed: an embedding that lies where it is computed (its own entry "
            "in device_map, or more max_memory_per_gpu or max_cpu_memory)"
        )
    if spec.peft and is_offloaded(model):
        raise ModelError(
            f"{spec.text}: peft={spec.peft} on weights of which some are offloaded: PEFT places such a model "
            "anew; allowed: more memory, or the merged checkpoint (merge_and_unload)"
        )


def avoid_cudnn_attention(model: Any) -> None:
    """Let torch compute a model's attention without cuDNN, which plans every new shape of a batch anew.

    Nearly every shape of a run is new. The setting is torch's and global: it is put back behind each forward
    pass.
    """
    before: list[bool] = []

    def switch_off(*_: object) -> None:
        is_on = torch.backends.cuda.cudnn_sdp_enabled()  # type: ignore[no-untyped-call,unused-ignore]
        before.append(bool(is_on))
        torch.backends.cuda.enable_cudnn_sdp(False)

    def put_back(*_: object) -> None:
        torch.backends.cuda.enable_cudnn_sdp(before.pop())

    parts = [model, model.get_encoder()] if model.config.is_encoder_decoder else [model]
    for part in parts:
        part.register_forward_pre_hook(switch_off)
        part.register_forward_hook(put_back, always_call=True)


def is_offloaded(model: Any) -> bool:
    """Return True if some weights are brought to their device only while they are used."""
    return any(parameter.device.type == "meta" for parameter in model.parameters())


def devices_of(model: Any) -> tuple[torch.device, ...]:
    """Return the devices that compute a model, the one that takes its inputs first."""
    mapped = (getattr(model, "hf_device_map", None) or {}).values()
    # What is offloaded is computed where the rest is, and on the CPU where there is no rest.
    names = [name for name in mapped if name not in ("cpu", "disk")]
    devices = [
        torch.device("cuda", name) if isinstance(name, int) else torch.device(name)
        for name in names
    ]
    return tuple(dict.fromkeys([model.device, *devices]))


def describe_devices(model: Any) -> str:
    """Return where a model is computed: ``cuda:0``, ``cuda x 2``, ``cuda x 2, partly offloaded``."""
    if not getattr(model, "hf_device_map", None):
        return str(model.device)
    kinds = Counter(device.type for device in devices_of(model))
    words = str(model.device)
    if kinds.total() > 1:
        words = " + ".join(f"{kind} x {count}" for kind, count in kinds.items())
    return f"{words}, partly offloaded" if is_offloaded(model) else words
