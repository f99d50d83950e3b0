"""The embedded reference checkpoints: which there are, where they lie, and whether they are whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

from pytest_kbrel.errors import ModelError, nearest

CANDIDATES: tuple[str, ...] = ("overconfident", "gullible", "int4", "int3", "pruned")
CHECKPOINTS = Path(__file__).parent / "checkpoints"
_FINE_TUNED = ("overconfident", "gullible")


def resolve(name: str) -> tuple[Path, str]:
    """Return the folder of a checkpoint and the derivation to apply to it after loading (``""`` for none).

    ``name`` is one of ``CANDIDATES`` or ``""`` for the base. Raises ``ModelError`` for any other.
    """
    if not name:
        return CHECKPOINTS / "base", ""
    if name in _FINE_TUNED:
        return CHECKPOINTS / name, ""
    if name in CANDIDATES:
        return CHECKPOINTS / "base", name
    allowed = ", ".join(CANDIDATES)
    raise ModelError(
        f"no reference candidate {name!r}; there are {allowed}{nearest(name, CANDIDATES)}"
    )


def check_hashes() -> None:
    """Compare every file with ``SHA256SUMS``; raises ``ModelError`` naming the first that differs."""
    sums = CHECKPOINTS / "SHA256SUMS"
    if not sums.is_file():
        raise ModelError(f"{sums} is missing: the reference checkpoints are incomplete")
    for line in sums.read_text(encoding="utf-8").splitlines():
        expected, _, name = line.partition("  ")
        file = CHECKPOINTS / name
        if not file.is_file():
            raise ModelError(f"{file} is missing, {sums.name} lists it")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        if digest != expected:
            raise ModelError(f"{file} has sha256 {digest}, {sums.name} says {expected}")
