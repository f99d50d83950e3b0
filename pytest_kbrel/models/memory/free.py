"""How much memory a process may still take, as far as the system tells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
# Limit and use, in version 2 and 1 of cgroups.
_FILES = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)


def free_bytes(device: torch.device) -> int | None:
    """Return the bytes that are free on a device, ``None`` where nothing tells: other systems or devices.

    On a CPU the least of what the machine has left, what the container may take and what the process may.
    """
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    return cpu_bytes() if device.type == "cpu" else None


def cpu_bytes(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int | None:
    """Return the bytes of main memory that this process may still take; the folders are Linux's own."""
    found = [
        one for one in (_of_machine(proc), _of_container(proc, cgroups), _of_process(proc)) if one is not None
    ]
    return max(0, min(found)) if found else None


def _of_machine(proc: Path) -> int | None:
    kilobytes = re.search(r"^MemAvailable:\s+([0-9]+) kB", _text(proc / "meminfo"), re.MULTILINE)
    return int(kilobytes[1]) * 1024 if kilobytes else None


def _of_container(proc: Path, cgroups: Path) -> int | None:
    # The process's own group where the container shows it, and the root of what it shows.
    own = re.search(r"^0::(/.*)$", _text(proc / "self" / "cgroup"), re.MULTILINE)
    folders = [cgroups, *([cgroups / own[1].lstrip("/")] if own else [])]
    left = []
    for folder in folders:
        for limit, used in _FILES:
            most, now = _text(folder / limit).strip(), _text(folder / used).strip()
            if most.isdigit() and now.isdigit():
                # What files hold in memory counts as used, and is given back when it is needed.
                left.append(int(most) - int(now) + _of_files(folder))
    return min(left) if left else None


def _of_files(folder: Path) -> int:
    found = re.search(r"^inactive_file ([0-9]+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return int(found[1]) if found else 0


def _of_process(proc: Path) -> int | None:
    limit = re.search(r"^Max address space\s+([0-9]+)\s", _text(proc / "self" / "limits"), re.MULTILINE)
    used = re.search(r"^VmSize:\s+([0-9]+) kB", _text(proc / "self" / "status"), re.MULTILINE)
    return int(limit[1]) - int(used[1]) * 1024 if limit and used else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
