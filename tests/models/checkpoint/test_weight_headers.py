"""Files of weights that are no weights, or not whole: found by their first bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    check_contents,
    check_gguf,
    check_safetensors,
    read_config,
    refuse_pointer,
)

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4976698672\n"


def safetensors(header: object, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"\0" * data


def tensor(begin: int, end: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}


WHOLE = {"a": tensor(0, 8), "b": tensor(8, 24), "__metadata__": {"format": "pt"}}


@pytest.mark.parametrize(
    ("header", "data"), [(WHOLE, 24), ({}, 0), ({"b": tensor(8, 24), "a": tensor(0, 8)}, 24)]
)
def test_a_whole_file_passes(tmp_path: Path, header: object, data: int) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(safetensors(header, data))
    check_safetensors(file)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (safetensors(WHOLE, 23), r"are cut short: the file has \d+ bytes and needs \d+ bytes by its header"),
        (
            safetensors(WHOLE, 24)[:60],
            r"the file has 60 bytes and needs a header of \d+ bytes; copy it",
        ),
        (safetensors(WHOLE, 25), r"no whole safetensors file: it has \d+ bytes, and by its header \d+$"),
        (b"", r"no safetensors file: its 0 bytes begin with b''"),
        (b"\x08\0\0", "no safetensors file: its 3 bytes"),
        (b"<!DOCTYPE html><title>401", r"no safetensors file: its 25 bytes begin with b'<!DOCTYPE html>"),
        (b"PK\x03\x04" + b"\0" * 40, "cut short|no safetensors file"),
        (POINTER.encode(), "this is a Git LFS pointer, .*'git lfs pull'"),
        (safetensors(b"not JSON", 0), "its header is broken: JSONDecodeError"),
        (safetensors(b"[1, 2]", 0), "its header is broken: AttributeError"),
        (safetensors({"a": {}}, 0), "its header is broken: KeyError"),
        (safetensors({"a": {"data_offsets": [0]}}, 0), "its header is broken: IndexError"),
        (safetensors({"a": {"data_offsets": [0, "8"]}}, 8), "its header is broken: TypeError"),
        (safetensors({"a": {"data_offsets": [0, -8]}}, 0), "its header is broken: TypeError"),
        (safetensors(b"[" * 200_000, 0), "its header is broken: ValueError: nested more than"),
    ],
)
def test_what_is_no_whole_file_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=f"^{file}: .*(?:{said})"):
        check_safetensors(file)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"x: cannot be read: No such file"):
        refuse_pointer(tmp_path / "x")


def test_a_gguf_file_begins_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    for content, said in ((b"gguf", "no GGUF file: it begins with b'gguf'"), (POINTER.encode(), "Git LFS")):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=said):
            check_gguf(file)
    file.write_bytes(b"GGUF\3\0")
    check_gguf(file)


def test_each_shard_and_each_file_of_the_tokenizer_is_looked_at(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.safetensors").write_bytes(safetensors(WHOLE, 24))
    index = {"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "tokenizer.json").write_text("{}")
    check_contents(tmp_path)
    (tmp_path / "b.safetensors").write_bytes(safetensors(WHOLE, 20))
    with pytest.raises(ModelError, match=r"b\.safetensors: the safetensors are cut short"):
        check_contents(tmp_path)
    (tmp_path / "b.safetensors").write_bytes(safetensors(WHOLE, 24))
    (tmp_path / "tokenizer.json").write_text(POINTER)
    with pytest.raises(ModelError, match=r"tokenizer\.json: this is a Git LFS pointer"):
        check_contents(tmp_path)
    (tmp_path / "config.json").write_text(POINTER)
    with pytest.raises(ModelError, match=r"config\.json: this is a Git LFS pointer"):
        read_config(tmp_path)
