"""A checkpoint's folder: config, weights and tokenizer files, headers of weights, and digests of tensors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    INDEX,
    WEIGHTS,
    check_contents,
    check_folder,
    check_safetensors,
    digest_of_tensors,
    looks_like_hub_id,
    unread_weights,
    weight_files,
)


def fill(folder, *names, text="{}"):
    for name in names:
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("path", "result"),
    [
        ("org/name", True),
        ("Org-1/na.me_2", True),
        ("org", False),
        ("a/b/c", False),
        ("/org/name", False),
        ("./name", False),
        ("../name", False),
        (".hidden/name", False),
        ("org/-name", False),
        ("org/", False),
        ("here/name", False),
        ("org/na me", False),
    ],
)
def test_what_can_be_a_hub_id(tmp_path, monkeypatch, path, result):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert looks_like_hub_id(path) is result


def test_what_no_checkpoint_is_says_what_is_there(tmp_path):
    with pytest.raises(
        ModelError, match=r"no config\.json, so no checkpoint; found nothing$"
    ):
        check_folder(tmp_path)
    fill(tmp_path, *"gfedcb")
    with pytest.raises(ModelError, match=r"found b, c, d, e, f, g$"):
        check_folder(tmp_path)
    fill(tmp_path, "h", "a")
    with pytest.raises(ModelError, match=r"found a, b, c, d, e, f and 2 more$"):
        check_folder(tmp_path)
    fill(tmp_path, "adapter_config.json")
    with pytest.raises(
        ModelError, match=f"this is an adapter: .* model-args peft={tmp_path}$"
    ):
        check_folder(tmp_path)


def index(folder, **shards):
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": shards})
    )


def test_the_files_of_weights_are_named_by_the_index_where_there_is_no_single_one(
    tmp_path,
):
    fill(tmp_path, "a.safetensors", "b.safetensors", "c.safetensors")
    index(tmp_path, x="b.safetensors", y="a.safetensors", z="b.safetensors")
    assert [file.name for file in weight_files(tmp_path)] == [
        "a.safetensors",
        "b.safetensors",
    ]


ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


@pytest.mark.parametrize(
    ("files", "shards", "other"),
    [
        ((WEIGHTS, ONE, TWO), (ONE, TWO), INDEX),
        ((WEIGHTS, ONE), (WEIGHTS, ONE), INDEX),
        ((WEIGHTS, ONE, TWO), (), ONE),
    ],
)
def test_two_sets_of_weights_are_refused(tmp_path, files, shards, other):
    fill(tmp_path, *files)
    if shards:
        index(tmp_path, **{name: name for name in shards})
    with pytest.raises(
        ModelError, match=f"two sets of weights: {WEIGHTS}, which .*, and {other}, "
    ):
        weight_files(tmp_path)


@pytest.mark.parametrize(
    ("files", "shards", "unread"),
    [
        # Some programs write an index for a single file; Mistral puts a file of its own beside the shards.
        ((WEIGHTS, "consolidated.safetensors"), (WEIGHTS,), []),
        (
            (ONE, TWO, "model-3-of-3.safetensors"),
            (ONE, TWO),
            ["model-3-of-3.safetensors"],
        ),
        ((WEIGHTS, "pytorch_model.bin", "optimizer.bin"), (), ["pytorch_model.bin"]),
        ((WEIGHTS, "model.fp16.safetensors"), (), ["model.fp16.safetensors"]),
    ],
)
def test_other_weights_beside_those_that_are_read_are_named(
    tmp_path, files, shards, unread
):
    fill(tmp_path, *files)
    if shards:
        index(tmp_path, **{name: name for name in shards})
    weight_files(tmp_path)
    assert unread_weights(tmp_path) == unread


@pytest.mark.parametrize("says", [ONE, TWO])
def test_a_tensor_is_in_one_shard_the_one_that_the_index_says(tmp_path, says):
    other = {"c": tensor(0, 8)}
    for name, tensors in ((ONE, WHOLE), (TWO, other | WHOLE if says == ONE else other)):
        (tmp_path / name).write_bytes(safetensors(tensors, 24 if "a" in tensors else 8))
    index(tmp_path, a=says, b=ONE, c=TWO)
    with pytest.raises(ModelError, match=r"the tensor a is in .* and in .* by"):
        check_contents(tmp_path)


@pytest.mark.parametrize(
    ("shards", "said"),
    [
        ({}, "the shards are none"),
        ({"x": "gone.safetensors"}, r"the shards \['gone.safetensors'\]"),
        # A file elsewhere is not read, though it is there.
        ({"x": "deep/a.safetensors"}, r"the shards \['deep/a.safetensors'\]"),
        ({"x": 3}, "unreadable index of shards: TypeError"),
    ],
)
def test_a_shard_is_a_file_beside_its_index(tmp_path, shards, said):
    folder = tmp_path / "checkpoint"
    (folder / "deep").mkdir(parents=True)
    fill(folder, "a.safetensors", "deep/a.safetensors", "../a.safetensors")
    index(folder, **shards)
    with pytest.raises(ModelError, match=said):
        weight_files(folder)


POINTER = (
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 4976698672\n"
)


def safetensors(header: object, data: int) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"\0" * data


def tensor(begin: int, end: int) -> dict[str, object]:
    return {"dtype": "F32", "shape": [(end - begin) // 4], "data_offsets": [begin, end]}


WHOLE = {"a": tensor(0, 8), "b": tensor(8, 24), "__metadata__": {"format": "pt"}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            safetensors(WHOLE, 23),
            r"are cut short: the file has \d+ bytes and needs \d+ bytes by its header",
        ),
        (
            safetensors(WHOLE, 24)[:60],
            r"the file has 60 bytes and needs a header of \d+ bytes; copy it",
        ),
        (
            safetensors(WHOLE, 25),
            r"no whole safetensors file: it has \d+ bytes, and by its header \d+$",
        ),
        (b"\x08\0\0", "no safetensors file: its 3 bytes"),
        (POINTER.encode(), "this is a Git LFS pointer, .*'git lfs pull'"),
        (safetensors(b"[1, 2]", 0), "its header is broken: .*Error"),
        (
            safetensors({"a": {"data_offsets": [0, -8]}}, 0),
            "its header is broken: ValueError: the offsets 0 and -8",
        ),
    ],
)
def test_what_is_no_whole_file_is_named(
    tmp_path: Path, content: bytes, said: str
) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(ModelError, match=f"^{file}: .*(?:{said})"):
        check_safetensors(file)


def test_a_gguf_file_begins_with_its_name(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    for content, said in (
        (b"gguf", "no GGUF file: it begins with b'gguf'"),
        (POINTER.encode(), "Git LFS"),
    ):
        file.write_bytes(content)
        with pytest.raises(ModelError, match=said):
            check_contents(tmp_path, gguf_file=file.name)
    file.write_bytes(b"GGUF\3\0")
    assert check_contents(tmp_path, gguf_file=file.name) == {}


TENSORS = {
    "a.weight": torch.arange(12.0).reshape(3, 4),
    "b.weight": torch.ones(2, dtype=torch.bfloat16),
    "c.bias": torch.tensor([], dtype=torch.float32),
}


def saved(
    folder: Path, name: str, tensors: dict[str, torch.Tensor], **notes: str
) -> Path:
    folder.mkdir(exist_ok=True)
    save_file(tensors, folder / name, metadata=notes or None)
    return folder / name


@pytest.mark.parametrize(
    "change",
    [
        {"a.weight": torch.arange(12.0).reshape(4, 3)},
        {"a.weight": torch.arange(12.0).reshape(3, 4) + 1e-6},
        {"b.weight": torch.ones(2, dtype=torch.float16)},
        {"d.weight": torch.zeros(1)},
    ],
    ids=["shape", "values", "dtype", "one more"],
)
def test_another_tensor_is_another_model(tmp_path, change):
    before = digest_of_tensors([saved(tmp_path, "a.safetensors", TENSORS)])
    assert (
        digest_of_tensors([saved(tmp_path, "b.safetensors", TENSORS | change)])
        != before
    )
