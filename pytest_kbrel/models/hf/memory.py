"""Token budget of a batch, from the free memory; no answer depends on it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import torch

from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.hf.devices import devices_of

CPU_MOST, GPU_MOST = 4096, 32768
"""Tokens a batch at most. On a CPU a larger batch is no faster, it only takes memory (measured:
benchmarks/options.py); a GPU idles with a smaller one (not measured)."""

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
