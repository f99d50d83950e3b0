"""Announcement of a checkpoint before it is loaded: its name, size, number type and device."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import read_config, weight_files
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    dtype_of,
)

_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))


def announce(spec: ModelSpec) -> str:
    """Return what is about to be loaded, such as ``loading ./qwen3 (84 MB, bfloat16, cpu)``.

    Nothing heavy is imported. What cannot be told without loading, such as the size of a checkpoint of a hub,
    is left out.
    """
    device = _device(spec)
    known = ", ".join(filter(None, (_size(spec), _dtype(spec, device), device)))
    return f"loading {spec.name}" + (f" ({known})" if known else "")


def _files(spec: ModelSpec) -> tuple[Path, ...]:
    folder = Path(spec.location)
    return (folder / spec.gguf_file,) if spec.gguf_file else weight_files(folder)


def _size(spec: ModelSpec) -> str:
    if not spec.is_local:
        return ""
    try:
        total = sum(file.stat().st_size for file in _files(spec))
    except (ModelError, OSError):
        # Loading says what is wrong.
        return ""
    unit, factor = next(
        ((name, size) for name, size in _UNITS if total >= size), ("bytes", 1)
    )
    return f"{total / factor:.3g} {unit}"


def _dtype(spec: ModelSpec, device: str) -> str:
    saved = ""
    if spec.is_local and not spec.gguf_file:
        try:
            config = read_config(Path(spec.location))
        except ModelError:
            return ""
        stated = config.get("dtype") or config.get("torch_dtype")
        saved = stated if isinstance(stated, str) else ""
    loaded = dtype_of(spec, saved, device)
    return saved if loaded == "auto" else loaded


def _device(spec: ModelSpec) -> str:
    if spec.placement is not None:
        return f"device_map={spec.placement.device_map}"
    if spec.device != "auto":
        return spec.device
    # A Mac and other accelerators are known to torch only.
    if not sys.platform.startswith("linux"):
        return ""
    return "" if shutil.which("nvidia-smi") else "cpu"
