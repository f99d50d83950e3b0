"""Damage to files as plain data: strategies of edits, and the pure functions that apply them.

A *structured* edit changes the tree that a JSON or YAML text is and writes it anew; a *raw* edit changes
bytes. Places are numbers that are taken modulo what there is, so that an edit can be applied to any file, and
an example gets smaller by having fewer edits.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st


class Pairs(list[list[Any]]):
    """A mapping as a list of ``[key, value]``: a key may stand in it twice."""


class Verbatim(str):
    """A text that is written as it is, without quotes."""


# Texts, JSON's and YAML's words, and bytes (one a letter) that a reader may stumble over.
_ODD: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("odd.json").read_text("utf-8")
)
_TEXTS = (*_ODD["texts"], "a" * 100_000, "[[" * 300, "1" * 5000)
_WORDS = (*_ODD["json"], "9" * 5000, "[" * 100_000, '{"a":' * 2000)
_TOKENS = (
    *(word.encode("latin-1") for word in (*_ODD["bytes"], *_ODD["yaml"])),
    *(b"a" * 70_000, b"\n" * 5000, b'"' + b"x" * 200_000),
)
_NUMBERS = (
    0,
    1,
    -1,
    2,
    0.5,
    -0.0,
    1.5,
    5e-324,
    1e308,
    -1e308,
    2**31,
    2**53 + 1,
    2**63,
    10**30,
)
_LISTS = (
    [],
    Pairs(),
    [[]],
    [None],
    ["a", "a"],
    [0] * 3000,
    Pairs([["", 1]]),
    Pairs([["a", 1], ["a", 2]]),
)
# Zero is drawn most often: most edits would be made to the first value of a file, which is all of it.
_PLACE = st.integers(0, (1 << 16) - 1).map(
    lambda drawn: (drawn * 40_503 + 40_503) % (1 << 16)
)
_TREE_OPERATIONS = (
    "drop",
    "double",
    "replace",
    "replace",
    "copy",
    "copy",
    "wrap",
    "rename",
    "swap",
    "repeat",
    "tail",
)
_numbers = (
    st.sampled_from(_NUMBERS)
    | st.integers(-5, 50)
    | st.integers()
    | st.floats(0, 1)
    | st.floats()
)
_texts = st.sampled_from(_TEXTS) | st.text(max_size=6)
_values = st.one_of(
    *(_numbers, _texts, st.sampled_from((None, True, False, 0.5, 1, 2, "a", "P36"))),
    *(
        st.sampled_from([Verbatim(word) for word in _WORDS]),
        st.sampled_from(_LISTS).map(lambda value: _copied(value)),
    ),
)
# A value of another kind is mostly refused at once; one of the same kind gets past the readers.
tree_edits = st.one_of(
    st.tuples(st.sampled_from(_TREE_OPERATIONS), _PLACE, _PLACE, _values),
    st.tuples(st.just("number"), _PLACE, _PLACE, _numbers),
    st.tuples(st.just("text"), _PLACE, _PLACE, _texts),
)

_RAW_OPERATIONS = (
    "flip",
    "cut",
    "end",
    "insert",
    "again",
    "move",
    "token",
    "encode",
    "newlines",
)
raw_edits = st.tuples(
    st.sampled_from(_RAW_OPERATIONS),
    _PLACE,
    _PLACE,
    st.sampled_from(_TOKENS) | st.binary(max_size=6),
)
_ENCODINGS = ("utf-16", "utf-8-sig", "latin-1", "utf-32", "utf-7")


def structured(
    read: Callable[[bytes], Any], write: Callable[[Any], bytes]
) -> Callable[[bytes], st.SearchStrategy[bytes]]:
    """Return what makes damaged files of one file: its tree is read, edited and written."""

    def damaged(data: bytes) -> st.SearchStrategy[bytes]:
        return some(tree_edits).map(lambda edits: write(edited(read(data), edits)))

    return damaged


def some(edits: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Return lists of edits, half of them of one: what is damaged much is refused at its first fault."""
    return st.lists(edits, min_size=1, max_size=1) | st.lists(
        edits, min_size=1, max_size=4
    )


def raw(data: bytes) -> st.SearchStrategy[bytes]:
    """Return damaged copies of a file, by bytes."""
    return some(raw_edits).map(lambda edits: changed(data, edits))


def read_json(data: bytes) -> Any:
    """Read a JSON document as a tree of lists and :class:`Pairs`."""
    return json.loads(data, object_pairs_hook=lambda pairs: Pairs(map(list, pairs)))


def read_lines(data: bytes) -> list[Any]:
    """Read JSON Lines as a list of trees."""
    return [read_json(line) for line in data.splitlines()]


def read_yaml(data: bytes) -> Any:
    """Read a YAML document as a tree; scalars are written as they stood."""
    return _from_node(yaml.compose(data.decode(), Loader=yaml.SafeLoader))


def _from_node(node: Any) -> Any:
    if isinstance(node, yaml.MappingNode):
        return Pairs([_from_node(key), _from_node(value)] for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_from_node(item) for item in node.value]
    return node.value if node.style or not node.value else Verbatim(node.value)


def write_json(tree: Any) -> bytes:
    """Write a tree as JSON, or what looks like it; in flow style YAML reads it too."""
    return "".join(_pieces(tree)).encode("utf-8", "surrogatepass")


def write_lines(tree: Any) -> bytes:
    """Write a list of trees as JSON Lines."""
    return b"".join(
        write_json(line) + b"\n"
        for line in (tree if isinstance(tree, list) else [tree])
    )


def write_yaml(tree: Any) -> bytes:
    """Write a tree as YAML: the first level a key a line, what is below it in flow style."""
    if not isinstance(tree, Pairs):
        return write_json(tree)
    return b"".join(
        write_json(key) + b": " + write_json(value) + b"\n" for key, value in tree
    )


def _pieces(tree: Any) -> Iterator[str]:
    if isinstance(tree, Verbatim):
        yield tree
    elif isinstance(tree, Pairs):
        yield "{"
        for at, (key, value) in enumerate(tree):
            yield ", " if at else ""
            yield from _pieces(key)
            yield ": "
            yield from _pieces(value)
        yield "}"
    elif isinstance(tree, list):
        yield "["
        for at, value in enumerate(tree):
            yield ", " if at else ""
            yield from _pieces(value)
        yield "]"
    else:
        yield json.dumps(tree)


def edited(tree: Any, edits: Sequence[tuple[str, int, int, Any]]) -> Any:
    """Return a tree after some structured edits."""
    root = [tree]
    for operation, offset, other, value in edits:
        slots = [slot for slot in _slots(root) if _is(operation, _value(slot))] or list(
            _slots(root)
        )
        holder, at = slots[offset % len(slots)]
        entry = isinstance(holder, Pairs)
        here = _value((holder, at))
        source, place_there = slots[other % len(slots)]
        there = _value((source, place_there))
        if operation == "drop" and holder is not root:
            del holder[at]
        elif operation == "double":
            holder.insert(at, [holder[at][0], value] if entry else here)
        elif operation == "rename" and entry:
            holder[at][0] = value
        elif operation == "swap" and entry and isinstance(source, Pairs):
            holder[at][0], source[place_there][0] = (
                source[place_there][0],
                holder[at][0],
            )
        elif (
            operation == "repeat"
            and isinstance(here, list)
            and here
            and not isinstance(here, Pairs)
        ):
            here.extend(here * min(50, 2000 // len(here)))
        elif operation == "tail" and isinstance(here, list):
            del here[other % (len(here) + 1) :]
        else:
            new = (
                _copied(there)
                if operation == "copy"
                else [here]
                if operation == "wrap"
                else value
            )
            if entry:
                holder[at][1] = new
            else:
                holder[at] = new
    return root[0]


def _slots(tree: list[Any]) -> Iterator[tuple[list[Any], int]]:
    """Yield each value of a tree as what holds it and where, at most so many that an edit stays quick."""
    waiting: list[list[Any]] = [tree]
    count = 0
    while waiting and count < 20_000:
        holder = waiting.pop()
        for at in range(len(holder)):
            count += 1
            yield holder, at
            value = _value((holder, at))
            if isinstance(value, list):
                waiting.append(value)


def _value(slot: tuple[list[Any], int]) -> Any:
    holder, at = slot
    return holder[at][1] if isinstance(holder, Pairs) else holder[at]


def _is(kind: str, value: Any) -> bool:
    if kind not in ("number", "text"):
        return True
    number = isinstance(value, (int, float)) or (
        isinstance(value, Verbatim) and value[:1].isdigit()
    )
    return number if kind == "number" else isinstance(value, str) and not number


def _copied(tree: Any) -> Any:
    if isinstance(tree, Pairs):
        return Pairs([key, _copied(value)] for key, value in tree)
    return [_copied(value) for value in tree] if isinstance(tree, list) else tree


def changed(data: bytes, edits: Sequence[tuple[str, int, int, bytes]]) -> bytes:
    """Return a file after some raw edits."""
    for operation, offset, other, value in edits:
        at = offset * (len(data) + 1) >> 16
        length = 1 + other % 200
        block = data[at : at + length]
        if operation == "flip":
            data = (
                data[:at]
                + bytes(byte ^ (1 << other % 8) for byte in block[:1])
                + data[at + 1 :]
            )
        elif operation == "cut":
            data = data[:at] + data[at + length :]
        elif operation == "end":
            data = data[:at]
        elif operation == "again":
            data = data[:at] + block * 2 + data[at + length :]
        elif operation == "move":
            there = other * (len(data) + 1) >> 16
            data = data[:there] + block + data[there:]
        elif operation == "token":
            # In place of what stands behind the next colon, or else of a few bytes.
            colon = data.find(b":", at)
            end = data.find(b"\n", colon)
            data = (
                data[: colon + 1] + b" " + value + data[end:]
                if 0 <= colon < end
                else data[:at] + value
            )
        elif operation == "encode":
            data = data.decode("utf-8", "replace").encode(
                _ENCODINGS[other % len(_ENCODINGS)], "replace"
            )
        elif operation == "newlines":
            data = data.replace(
                b"\n", (b"\r\n", b"\r", b"\n\n", "\u2028".encode())[other % 4]
            )
        else:
            data = data[:at] + value + data[at:]
    return data


def packed_lines(tree: Any) -> bytes:
    """Write a list of trees as JSON Lines packed with xz."""
    return lzma.compress(write_lines(tree), preset=0)


def unpacked_lines(data: bytes) -> list[Any]:
    """Read JSON Lines packed with xz."""
    return read_lines(lzma.decompress(data))


json_file = structured(read_json, write_json)
lines_file = structured(read_lines, write_lines)
yaml_file = structured(read_yaml, write_yaml)
packed_file = structured(unpacked_lines, packed_lines)
