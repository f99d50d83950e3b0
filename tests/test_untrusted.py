"""How much is read of a file that somebody else may have made, and what is said of more."""

from __future__ import annotations

import io
import json
import lzma
import os
import tracemalloc
import zlib
from pathlib import Path

import pytest

from pytest_kbrel.untrusted import DEEPEST, MIB, lines, parse, read_bytes, unpack


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, -2, 0.5, "x", null, true]}', {"a": [1, -2, 0.5, "x", None, True]}),
        ("[" * DEEPEST + "]" * DEEPEST, None),
        (
            json.dumps(["[" * 500, "{" * 500, '\\"[' * 200]),
            ["[" * 500, "{" * 500, '\\"[' * 200],
        ),
        ("[" + "[]," * 500 + "[]]", [[]] * 501),
        (json.dumps("9" * 5000), "9" * 5000),
        ("1.5e+300", 1.5e300),
        ("1" + "0" * 308, 10**308),
    ],
)
def test_json_is_read(text, value):
    result = parse(text.encode())
    assert value is None or result == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[" * 100_000 + "]" * 100_000,
            "nested more than 100 levels deep; allowed: at most 100",
        ),
        ('{"a":' * 101 + "1" + "}" * 101, "nested more than 100 levels deep"),
        ('["]",' * 101 + "1" + "]" * 101, "nested more than 100 levels deep"),
        ("NaN", "found NaN; allowed: finite numbers"),
        ("[-Infinity]", "found -Infinity; allowed: finite numbers"),
        ("1e400", "found 1e400; allowed: finite numbers"),
        ("-1E+999", "found -1E\\+999; allowed: finite numbers"),
        ("9" * 250 + "e99", "found 9{57}...; allowed: finite numbers"),
        ("9" * 5000, r"found 9{57}\.\.\.; allowed: finite numbers"),
        ("9" * 309, r"found 9{57}\.\.\."),
        ("{", "Expecting property name"),
        ("", "Expecting value"),
    ],
)
def test_other_json_is_a_value_error_in_words(text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_what_is_not_utf8_is_a_value_error():
    with pytest.raises(ValueError, match="utf-8"):
        parse(b'"\xff"')


def test_lines_end_at_the_first_that_is_too_long():
    stream = io.BytesIO(b"one\n\nthree\n" + b"4" * 9 + b"\n")
    result = lines(stream, 8)
    assert [next(result) for _ in range(3)] == [b"one\n", b"\n", b"three\n"]
    with pytest.raises(
        ValueError,
        match="found a line of more than 0 KiB; allowed: at most 0 KiB a line",
    ):
        next(result)
    # No more of it was read.
    assert stream.tell() == 20


def test_a_file_is_read_up_to_its_most(tmp_path: Path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 2048)
    assert len(read_bytes(path, 2048)) == 2048
    with pytest.raises(
        ValueError, match="found more than 1 KiB; allowed: at most 1 KiB"
    ):
        read_bytes(path, 2047)


def test_zeros_that_unpack_to_far_more_are_refused_without_being_held():
    bomb = lzma.compress(bytes(40 * MIB), preset=0)
    assert len(bomb) < MIB
    tracemalloc.start()
    try:
        with pytest.raises(
            ValueError, match="it unpacks to more than 2 MiB; allowed: at most 2 MiB"
        ):
            unpack(bomb, 2 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 10 * MIB
    finally:
        tracemalloc.stop()


def test_what_is_packed_comes_back():
    text = b"line\n" * 500_000
    assert unpack(lzma.compress(text), 3 * MIB) == text
    assert unpack(lzma.compress(b""), MIB) == b""


def test_a_file_whose_decoder_needs_gigabytes_is_refused():
    packed = bytearray(lzma.compress(b"x"))
    # Behind the 12 bytes of the stream's header: size, flags, filter, its size, the dictionary's size, CRC.
    end = 12 + 4 * (packed[12] + 1)
    packed[16] = 40
    packed[end - 4 : end] = zlib.crc32(packed[12 : end - 4]).to_bytes(4, "little")
    with pytest.raises(ValueError, match="Memory usage limit"):
        unpack(bytes(packed), MIB)


def test_something_behind_the_end_is_refused():
    with pytest.raises(ValueError, match="something else follows behind its end"):
        unpack(lzma.compress(b"x") + b"more", MIB)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no regular file"):
        read_bytes(tmp_path / "pipe")
