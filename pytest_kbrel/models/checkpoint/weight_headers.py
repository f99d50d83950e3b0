"""What a file of weights says of itself in its first bytes, held against what is there.

A copy or download that broke off, and a file that is something else, are found without reading the weights.
The format of safetensors (https://github.com/huggingface/safetensors#format): 8 bytes with the length of the
header, little-endian; the header, a JSON object; the tensors, up to the last byte that it names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.untrusted import parse

# What a clone without Git LFS has in place of each large file.
_POINTER = b"version https://git-lfs.github.com/spec/"
# The safetensors library reads no longer header.
_LONGEST = 100_000_000
_ABOUT = "__metadata__"


def refuse_pointer(file: Path) -> None:
    """Raise :class:`ModelError` where Git LFS's note on a file stands in its place, or it cannot be read."""
    if _begin(file).startswith(_POINTER):
        raise ModelError(
            f"{file}: this is a Git LFS pointer, the note on a file that was not fetched; 'git lfs pull' in "
            "its repository fetches it"
        )


def check_safetensors(file: Path) -> None:
    """Raise :class:`ModelError` where a file is no safetensors file, or not a whole one."""
    refuse_pointer(file)
    begin, size = _begin(file), file.stat().st_size
    length = int.from_bytes(begin[:8], "little")
    if size < 8 or length > _LONGEST:
        raise ModelError(f"{file}: no safetensors file: its {size} bytes begin with {begin[:16]!r}")
    if length > size - 8:
        raise ModelError(_cut(file, size, f"a header of {length} bytes"))
    with file.open("rb") as stream:
        stream.seek(8)
        end = _end(file, stream.read(length))
    if size < 8 + length + end:
        raise ModelError(_cut(file, size, f"{8 + length + end} bytes by its header"))
    if size > 8 + length + end:
        raise ModelError(
            f"{file}: no whole safetensors file: it has {size} bytes, and by its header {8 + length + end}"
        )


def check_gguf(file: Path) -> None:
    """Raise :class:`ModelError` where a file does not begin as a GGUF file does."""
    refuse_pointer(file)
    if (begin := _begin(file)[:4]) != b"GGUF":
        raise ModelError(f"{file}: no GGUF file: it begins with {begin!r}; allowed: b'GGUF'")


def _begin(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(64)
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None


def _end(file: Path, header: bytes) -> int:
    """Return where the last tensor ends, counted in bytes from the header's end."""
    try:
        found: dict[str, Any] = parse(header)
        ends = [entry["data_offsets"][1] for name, entry in found.items() if name != _ABOUT]
        if not all(isinstance(end, int) and end >= 0 for end in ends):
            raise TypeError("an offset is a whole number")
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise ModelError(
            f"{file}: no safetensors file: its header is broken: {type(error).__name__}: {error}"
        ) from None
    return max(ends, default=0)


def _cut(file: Path, size: int, needed: str) -> str:
    return (
        f"{file}: the safetensors are cut short: the file has {size} bytes and needs {needed}; copy it again"
    )
