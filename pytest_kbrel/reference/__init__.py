"""The embedded reference checkpoints: which there are, and where they lie."""

from __future__ import annotations

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
