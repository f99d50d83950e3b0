"""Reading of files that somebody else may have made: no more of them is held than a stated number of bytes.

A file, a line or a JSON document beyond these limits is a ``ValueError`` that says what was found and what is
allowed; the reader adds the file and, where it knows one, the line.
"""

from __future__ import annotations

import json
import lzma
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

MIB = 1 << 20
# A line of facts, responses or rules, a row of a table, a member of a list.
LINE = 16 * MIB
# A document that is read as a whole: a report, a baseline, a checkpoint's index of shards.
DOCUMENT = 64 * MIB
# What is packed in xz, whatever its number of facts.
UNPACKED = 256 * MIB
DEEPEST = 100
# A decoder with the largest preset of xz needs 65 MiB; the format allows 4 GiB.
_DECODER = 128 * MIB
_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
# Without three digits behind an e or a plus, or a hundred in a row, no number of a text can be beyond the
# floats. Begun with a digit and not with the alternative, the search takes a seventh of the time.
_LARGE = re.compile(r"[0-9][0-9]{2}(?:(?<=[eE+]...)|[0-9]{97})")
Pairs = Callable[[list[tuple[str, Any]]], Any]


def size(count: int) -> str:
    """Return a number of bytes in words."""
    return f"{count // MIB} MiB" if count >= MIB else f"{count // 1024} KiB"


def read_bytes(path: Path, most: int = DOCUMENT) -> bytes:
    """Return a regular file's bytes; raises ``OSError``, and ``ValueError`` on more than ``most`` of them."""
    if path.exists() and not path.is_file():
        # Reading a pipe would wait for somebody to write.
        raise ValueError("is no regular file; allowed: a file")
    with path.open("rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise ValueError(f"found more than {size(most)}; allowed: at most {size(most)}")
    return data


def read_json(path: Path, most: int = DOCUMENT) -> Any:
    """Return the JSON in a file; raises as :func:`read_bytes` and :func:`parse` do."""
    return parse(read_bytes(path, most))


def lines(stream: BinaryIO, most: int = LINE) -> Iterator[bytes]:
    """Yield the lines of a file with their ends; raises ``ValueError`` at one of more than ``most`` bytes."""
    while line := stream.readline(most + 1):
        yield short(line, most)


def short(line: bytes, most: int = LINE) -> bytes:
    """Return a line that was read up to ``most + 1`` bytes; raises ``ValueError`` where it is longer."""
    if len(line) > most:
        raise ValueError(
            f"found a line of more than {size(most)}; allowed: at most {size(most)} a line"
        )
    return line


def parse(data: bytes | str, pairs: Pairs | None = None, *, nan: bool = False) -> Any:
    """Return the value that UTF-8 text of JSON stands for; ``pairs`` makes a value of each object.

    Raises ``ValueError`` on what is no JSON, on NaN and infinity unless ``nan`` allows them, on numbers
    beyond the floats, and on more than :data:`DEEPEST` levels.
    """
    text = data if isinstance(data, str) else data.decode("utf-8")
    if text.count("[") + text.count("{") > DEEPEST:
        _check_depth(text)
    large = _LARGE.search(text)
    if pairs is None and not nan and not large and not text.startswith("\ufeff"):
        # Making a decoder takes as long as reading a line with it.
        return _PLAIN.decode(text)
    hooks: dict[str, Any] = {} if nan else {"parse_constant": _constant}
    if pairs is not None:
        hooks["object_pairs_hook"] = pairs
    if large:
        hooks |= {"parse_int": _integer, "parse_float": _float}
    return json.loads(text, **hooks)


def no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, as ``pairs`` of :func:`parse`; raises ``ValueError`` on a key that stands in it twice."""
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twin = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twin[:60]!r} stands twice; allowed: each key once")
    return value


def unpack(data: bytes, most: int) -> bytes:
    """Return what is packed in the bytes of an xz file.

    Raises ``ValueError`` where it is cut short, no such file, or more than ``most`` bytes long.
    """
    most = min(most, UNPACKED)
    decoder = lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=_DECODER)
    try:
        whole = decoder.decompress(data, most + 1)
    except lzma.LZMAError as error:
        raise ValueError(str(error)) from None
    if len(whole) > most:
        raise ValueError(
            f"it unpacks to more than {size(most)}; allowed: at most {size(most)}"
        )
    if not decoder.eof:
        raise ValueError("it ends early")
    if decoder.unused_data:
        raise ValueError("something else follows behind its end")
    return whole


def _check_depth(text: str) -> None:
    # Python's parser, and whatever walks through its result, recurse once a level.
    depth = 0
    for match in _BRACKET.finditer(text):
        mark = match[0]
        depth += (mark in ("[", "{")) - (mark in ("]", "}"))
        if depth > DEEPEST:
            raise ValueError(
                f"nested more than {DEEPEST} levels deep; allowed: at most {DEEPEST}"
            )


def _constant(name: str) -> float:
    raise ValueError(f"found {name}; allowed: finite numbers")


_PLAIN = json.JSONDecoder(parse_constant=_constant)


def _integer(text: str) -> int:
    # Python reads no more than some thousand digits.
    _float(text)
    return int(text)


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise ValueError(f"found {shown}; allowed: finite numbers")
    return value
