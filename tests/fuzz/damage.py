"""Files with a little damage, drawn by a seed."""

from __future__ import annotations

import copy
import json
import lzma
import math
from collections.abc import Callable, Iterator
from pathlib import PurePath
from random import Random
from typing import Any

import yaml

_NUMBERS = (
    *(0, 1, -1, 2, 0.5, -0.0, 1.5, 5e-324, 1e308, -1e308),
    *(2**31, 2**53 + 1, 2**63, 10**400, -(10**400)),
    *(math.nan, math.inf, -math.inf, True),
)
_TEXTS = (
    *("", " ", "\n", "a\nb", "\u2028", "\0", "\ud800", "\ufeff", "\x1b[31m", "é", "ß"),
    *("%s{0}{question}", "[X]", "[Y]", "../../etc/passwd", "/dev/zero", "~", "."),
    *("NaN", "null", "1e999", "-1", "2026-02-30", "0001-01-01", "(((a+)+)+)+$"),
    *("(?P<x>", "P36", "head", "pass", "openai/x", "a" * 5000, "1" * 5000),
)
_VALUES = (*_NUMBERS, *_TEXTS, None, False, [], {}, [[]], [None], {"": 1}, [0] * 500)
_BYTES = (
    *(b"\0", b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\r", b"\n", b",", b":"),
    *(b"{", b"}", b"[", b"]", b"#", b"\\ud800", b"NaN", b"1e999", b"&a [*a]", b"<<"),
    *(b"!!bool 2", b"!!timestamp x", b"!!python/object:os.x", b"[" * 50_000, b"'"),
)


def damaged(name: str, data: bytes, random: Random) -> bytes:
    """Return a file with one to three changes, of its values or of its bytes."""
    times = random.choice((1, 1, 2, 3))
    packed = name.endswith(".xz")
    kind = PurePath(name.removesuffix(".xz")).suffix
    plain = lzma.decompress(data) if packed else data
    read = {".json": json.loads, ".jsonl": _read_lines, ".yaml": yaml.safe_load}
    if kind not in read or random.random() < 0.3:
        for _ in range(times):
            data = _with_other_bytes(data, random)
        return data
    try:
        tree = read[kind](plain)
    except ValueError:  # a file of lines that is named like a document
        tree, kind = _read_lines(plain), ".jsonl"
    for _ in range(times):
        tree = with_other_value(tree, random)
    lines = tree if kind == ".jsonl" and isinstance(tree, list) else [tree]
    text = "".join(json.dumps(line, default=str) + "\n" for line in lines)
    return lzma.compress(text.encode()) if packed else text.encode()


def with_other_value(tree: Any, random: Random) -> Any:
    """Return a tree of lists and mappings with one value dropped, copied or replaced."""
    root = [tree]
    slots = list(_slots(root))
    holder, key = random.choice(slots)
    value = holder[key]
    other_holder, other_key = random.choice(slots)
    other = json.loads(json.dumps(other_holder[other_key], default=str))
    # A value of another kind is mostly refused at once; one of the same kind is read.
    alike = _NUMBERS if isinstance(value, int | float) else _TEXTS
    changes: tuple[Callable[[], Any], ...] = (
        *(lambda: random.choice(alike), lambda: random.choice(_VALUES)),
        *(lambda: other, lambda: [value], lambda: value * 2),
    )
    if holder is not root and random.random() < 0.2:
        del holder[key]
    elif isinstance(holder, dict) and random.random() < 0.2:
        holder[random.choice(_TEXTS)] = holder.pop(key)
    else:
        change = random.choice(changes[: 5 if isinstance(value, list) else 4])
        # A list of the table above may be changed again.
        holder[key] = copy.deepcopy(change())
    return root[0]


def _read_lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


def _slots(tree: Any) -> Iterator[tuple[Any, Any]]:
    keys = range(len(tree)) if isinstance(tree, list) else tree
    for key in list(keys):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _slots(tree[key])


def _with_other_bytes(data: bytes, random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    end = at + random.randrange(200)
    block = data[at:end]
    middle = random.choice(
        (b"", block * 2, random.choice(_BYTES), random.choice(_BYTES) + block)
    )
    whole = data[:at] + middle + (b"" if random.random() < 0.1 else data[end:])
    if random.random() < 0.9:
        return whole
    text = whole.decode("utf-8", "replace")
    return text.encode(random.choice(("utf-16", "utf-8-sig", "latin-1")), "replace")
