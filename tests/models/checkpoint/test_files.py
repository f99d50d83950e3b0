"""What of a checkpoint's folder is read, file by file and key by key, without loading it."""

from __future__ import annotations

import json

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    check_folder,
    digest_of_files,
    effective_config,
    looks_like_hub_id,
    read_config,
    tokenizer_files,
    tokenizer_settings,
    weight_files,
)


def fill(folder, *names, text="{}"):
    for name in names:
        (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("path", "found"),
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
def test_what_can_be_a_hub_id(tmp_path, monkeypatch, path, found):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert looks_like_hub_id(path) is found


def test_what_no_checkpoint_is_says_what_is_there(tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json, so no checkpoint; found nothing$"):
        check_folder(tmp_path)
    fill(tmp_path, *"gfedcb")
    with pytest.raises(ModelError, match=r"found b, c, d, e, f, g$"):
        check_folder(tmp_path)
    fill(tmp_path, "h", "a")
    with pytest.raises(ModelError, match=r"found a, b, c, d, e, f and 2 more$"):
        check_folder(tmp_path)
    fill(tmp_path, "adapter_config.json")
    with pytest.raises(ModelError, match=f"this is an adapter: .* model-args peft={tmp_path}$"):
        check_folder(tmp_path)


def test_a_gguf_file_needs_no_config(tmp_path):
    fill(tmp_path, "x.gguf")
    check_folder(tmp_path, gguf_file="x.gguf")
    with pytest.raises(ModelError, match=r"no file y\.gguf; found x\.gguf$"):
        check_folder(tmp_path, gguf_file="y.gguf")


def test_a_checkpoint_needs_config_and_weights(tmp_path):
    fill(tmp_path, "config.json")
    with pytest.raises(ModelError, match=r"no weights: model\.safetensors is needed; found config\.json"):
        check_folder(tmp_path)
    fill(tmp_path, "model.safetensors")
    check_folder(tmp_path)
    fill(tmp_path, "config.json", text="[]")
    with pytest.raises(ModelError, match="a JSON object is needed, found list"):
        check_folder(tmp_path)
    fill(tmp_path, "config.json", text="{")
    with pytest.raises(ModelError, match="unreadable"):
        read_config(tmp_path)


def index(folder, **shards):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))


def test_the_files_of_weights_are_named_by_the_index_where_there_is_no_single_one(tmp_path):
    fill(tmp_path, "a.safetensors", "b.safetensors", "c.safetensors")
    index(tmp_path, x="b.safetensors", y="a.safetensors", z="b.safetensors")
    assert [file.name for file in weight_files(tmp_path)] == ["a.safetensors", "b.safetensors"]
    fill(tmp_path, "model.safetensors")
    assert [file.name for file in weight_files(tmp_path)] == ["model.safetensors"]


@pytest.mark.parametrize(
    ("shards", "said"),
    [
        ({}, "the shards are none"),
        ({"x": "gone.safetensors"}, r"the shards \['gone.safetensors'\]"),
        ({"x": "a.safetensors", "y": "gone.safetensors"}, r"the shards \['gone.safetensors'\]"),
        # A file elsewhere is not read, though it is there.
        ({"x": "deep/a.safetensors"}, r"the shards \['deep/a.safetensors'\]"),
        ({"x": "../a.safetensors"}, r"the shards \['../a.safetensors'\]"),
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


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"weight_map": []}'])
def test_an_index_that_cannot_be_read_is_named(tmp_path, text):
    fill(tmp_path, "model.safetensors.index.json", text=text)
    with pytest.raises(ModelError, match=r"index\.json: unreadable index of shards"):
        weight_files(tmp_path)


@pytest.mark.parametrize("name", ["x.bin", "x.pt", "x.pth", "x.ckpt", "x.msgpack", "x.h5"])
def test_pickles_are_not_opened(tmp_path, name):
    fill(tmp_path, name)
    with pytest.raises(ModelError, match=rf"only pickled weights \({name}\), which can run code"):
        weight_files(tmp_path)
    fill(tmp_path, "other.safetensors")
    with pytest.raises(ModelError, match=r"found other\.safetensors, but neither model\.safetensors nor"):
        weight_files(tmp_path)


def test_three_of_many_wrong_files_are_named(tmp_path):
    fill(tmp_path, *(f"{name}.bin" for name in "dcba"))
    with pytest.raises(ModelError, match=r"\(a\.bin, b\.bin, c\.bin\)"):
        weight_files(tmp_path)
    fill(tmp_path, *(f"{name}.safetensors" for name in "dcba"))
    with pytest.raises(ModelError, match=r"found a\.safetensors, b\.safetensors, c\.safetensors, but"):
        weight_files(tmp_path)


def test_the_files_of_a_vocabulary(tmp_path):
    own = ["added_tokens.json", "merges.txt", "q.tiktoken", "spiece.model", "tokenizer.json", "vocab.json"]
    others = ["tokenizer_config.json", "config.json", "model.safetensors", "my_tokenizer.json", "vocabulary"]
    fill(tmp_path, *own[::-1], *others)
    (tmp_path / "folder.model").mkdir()
    assert [file.name for file in tokenizer_files(tmp_path)] == own


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("add_prefix_space", False),
        ("do_lower_case", False),
        ("keep_accents", True),
        ("legacy", False),
        ("split_special_tokens", True),
        ("strip_accents", False),
        ("tokenize_chinese_chars", False),
        ("added_tokens_decoder", {}),
    ],
)
def test_what_a_tokenizers_own_config_says_of_a_texts_tokens(tmp_path, name, value):
    fill(tmp_path, "tokenizer_config.json", text=json.dumps({name: value, "model_max_length": 8}))
    assert tokenizer_settings(tmp_path) == {name: value}
    fill(tmp_path, "tokenizer_config.json", text=json.dumps({name: None}))
    assert tokenizer_settings(tmp_path) == {}


@pytest.mark.parametrize("text", ["{", "[]", '"legacy"'])
def test_a_tokenizers_config_that_cannot_be_read_says_nothing(tmp_path, text):
    assert tokenizer_settings(tmp_path) == {}
    fill(tmp_path, "tokenizer_config.json", text=text)
    assert tokenizer_settings(tmp_path) == {}


def test_who_saved_a_config_is_not_what_it_says():
    idle = {"_name_or_path": "x", "transformers_version": "5", "torch_dtype": "float16", "dtype": "float16"}
    assert effective_config({**idle, "rms_norm_eps": 0, "architectures": []}) == {
        "rms_norm_eps": 0,
        "architectures": [],
    }


def test_a_digest_is_of_contents_in_their_order_and_of_what_is_said_beside_them(tmp_path):
    fill(tmp_path, "a", "same", text="1")
    fill(tmp_path, "b", text="2")
    a, b, same = (tmp_path / name for name in ("a", "b", "same"))
    digests = [
        digest_of_files(files, extra)
        for files, extra in [
            ([], None),
            ([a], None),
            ([a, b], None),
            ([b, a], None),
            ([a, a], None),
            ([a], {}),
            ([a], {"x": 1, "y": 2}),
            ([a], {"x": 1, "y": "2"}),
        ]
    ]
    assert len(set(digests)) == len(digests)
    assert digest_of_files([same]) == digests[1]
    assert digest_of_files([a], {"y": 2, "x": 1}) == digests[6]
