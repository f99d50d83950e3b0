"""Digests of weights by what they are: tensors, in whatever files and order they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from pytest_kbrel.errors import ModelError
from pytest_kbrel.untrusted import parse

_CHUNK = 2**22
# The names of the two ends of a tensor's bytes, and how many bytes say how long a file's header is.
_OFFSETS, _LENGTH = "data_offsets", 8
# That of the safetensors library.
_LONGEST_HEADER = 100_000_000


def digest_of_tensors(files: Iterable[Path]) -> str:
    """Return the sha256 (hex) over names, formats, shapes and bytes of all tensors of safetensors files.

    The same tensors in other shards, in another order or beside other notes have the same digest. Files are
    read once, from front to back, and never held in memory.

    Raises :class:`ModelError` for a file that is no safetensors.
    """
    found: list[tuple[str, str]] = []
    for file in files:
        with file.open("rb") as stream:
            try:
                found += _tensors(stream)
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ModelError(f"{file}: no readable safetensors: {error!r}") from None
    return hashlib.sha256(json.dumps(sorted(found)).encode()).hexdigest()


def _tensors(stream: BinaryIO) -> Iterator[tuple[str, str]]:
    """Yield what each tensor is, with the digest of its bytes, in the order of the file."""
    size = int.from_bytes(stream.read(_LENGTH), "little")
    if size > _LONGEST_HEADER:
        raise ValueError(f"a header of {size} bytes")
    header: dict[str, Any] = parse(stream.read(size))
    header.pop("__metadata__", None)
    for name, about in sorted(header.items(), key=lambda item: item[1][_OFFSETS]):
        start, end = about[_OFFSETS]
        stream.seek(_LENGTH + size + start)
        yield json.dumps([name, about["dtype"], about["shape"]]), _digest(stream, end - start)


def _digest(stream: BinaryIO, size: int) -> str:
    total = hashlib.sha256()
    while size:
        chunk = stream.read(min(size, _CHUNK))
        if not chunk:
            raise ValueError("it ends early")
        total.update(chunk)
        size -= len(chunk)
    return total.hexdigest()
