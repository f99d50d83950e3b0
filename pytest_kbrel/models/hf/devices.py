"""Devices of this machine and of a loaded model, and how many tokens a batch may have in their free memory.

Counting devices opens no context on a GPU; no answer depends on the number of tokens.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import ModelSpec, Placement


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
    options = {"device_map": placement.parts or placement.device_map}
    if placement.max_memory_per_gpu or placement.max_cpu_memory:
        from accelerate.utils import get_max_memory

        limits = dict(get_max_memory())
        for device in limits:
            given = placement.max_memory_per_gpu, placement.max_cpu_memory
            if limit := given[device == "cpu"]:
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
    before = []

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


CPU_MOST, GPU_MOST = 8192, 32768
"""Tokens a batch at most. On a CPU a larger batch is no faster and takes more memory (benchmarks/README.md); on a GPU
a forward pass has a price of its own (benchmarks/gpu/README.md)."""

# Of the memory that is free; the rest is for others, and for what an allocator cannot use again.
_SHARE = 0.6
# In bytes, for the logits: they are counted apart (``hf_batches``), and softmax takes two copies of them.
_FOR_LOGITS = 3 * 2**28
# In tokens: a packed row. With less than that nothing can be shared.
_LEAST = 256


def token_budget(spec: ModelSpec, device: str) -> int:
    """Return the most tokens of a batch on a kind of device (``"cpu"``, ``"cuda"``)."""
    return spec.batch_size or (CPU_MOST if device == "cpu" else GPU_MOST)


def tokens_within(free: float, per_token: float, most: int, *, workers: int = 1) -> int:
    """Return the number of tokens, up to ``most``, that fit into ``free`` bytes that ``workers`` share.

    ``per_token`` is in bytes. The result is at least a packed row, or ``most``: only a try shows if it fits.
    """
    allowed = max(0.0, _SHARE * free / workers - _FOR_LOGITS)
    return max(min(_LEAST, most), min(most, int(allowed / per_token)))


def measure_budget(model: Any, spec: ModelSpec) -> int:
    """Return the budget of a loaded checkpoint in tokens, from its shape and the memory that is free now."""
    most = token_budget(spec, model.device.type)
    devices = devices_of(model)
    # A batch goes through all devices, so the fullest one sets the limit.
    frees = [free for free in map(free_bytes, devices) if free is not None]
    if not frees:
        return most
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return tokens_within(min(frees), bytes_a_token(model), most, workers=workers)


def bytes_a_token(model: Any) -> float:
    """Return the bytes that a token of a batch takes, computed from a model's shape.

    These are twice its keys and values, since a cache is copied when it grows, and in one layer its input,
    the residual sum, queries, keys, values and attention, three parts of a gated feed-forward, and a packed
    row's mask and attention weights.
    """
    config = model.config.get_text_config(decoder=True)
    width = float(model.get_input_embeddings().weight.shape[1])
    heads = _number(config, 1.0, "num_attention_heads", "n_head", "num_heads")
    inner = _number(
        config, 4 * width, "intermediate_size", "ffn_dim", "n_inner", "d_ff"
    )
    layers = _number(config, 1.0, "num_hidden_layers", "n_layer", "num_layers")
    one = _number(config, width / heads, "head_dim", "d_kv")
    cached = 2 * layers * one * _number(config, heads, "num_key_value_heads")
    layer = 7 * width + 3 * inner + 2 * _LEAST * (1 + heads)
    return float(model.dtype.itemsize) * (2 * cached + layer)


def _number(config: Any, otherwise: float, *names: str) -> float:
    values = (getattr(config, name, None) for name in names)
    return next(
        (float(one) for one in values if isinstance(one, int) and one > 0), otherwise
    )


_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def free_bytes(device: torch.device) -> int | None:
    """Return the free bytes of a device, ``None`` if unknown (other systems or devices).

    For a CPU this is the least of the machine's free memory, the container's limit and the process's limit.
    """
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return cpu_bytes() if device.type == "cpu" else None


def cpu_bytes(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Return the bytes of main memory that this process may still take; the folders are Linux's."""
    # The process's own group where the container shows it, and the root of what it shows.
    own = _match(proc / "self" / "cgroup", r"^0::/(.*)$")
    free = []
    for group in {cgroups, cgroups / own}:
        limit, used = (
            _match(group / name) for name in ("memory.max", "memory.current")
        )
        if limit and used:
            # What files hold in memory counts as used, and is given back when it is needed.
            files = _match(group / "memory.stat", r"^inactive_file ([0-9]+)$") or 0
            free.append(int(limit) - int(used) + int(files))
    if available := _match(proc / "meminfo", r"^MemAvailable:\s+([0-9]+) kB"):
        free.append(int(available) * 1024)
    address_space = _match(proc / "self" / "limits", r"^Max address space\s+([0-9]+)\s")
    used = _match(proc / "self" / "status", r"^VmSize:\s+([0-9]+) kB")
    if address_space and used:
        free.append(int(address_space) - int(used) * 1024)
    return max(0, min(free)) if free else None


def _match(path: Path, pattern: str = r"\A\s*([0-9]+)\s*\Z") -> str:
    """Return the group of ``pattern`` in a file; empty if it is not there or cannot be read."""
    try:
        match = re.search(pattern, path.read_text("utf-8", "replace"), re.MULTILINE)
    except OSError:
        return ""
    return match[1] if match else ""
