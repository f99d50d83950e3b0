"""Each way in which a checkpoint can be wrong gives one ModelError that says where and what."""

from __future__ import annotations

import importlib.util
import json
import shutil
from dataclasses import replace

import pytest
import torch
import transformers

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    parse_spec,
)
from pytest_kbrel.models.hf.backend import load
from pytest_kbrel.models.registry import check_spec
from pytest_kbrel.records import ScoreRequest
from tests.models.tiny_checkpoints import (
    change_json,
    change_weights,
    make_checkpoint,
)


def refusal(folder, **options):
    with pytest.raises(ModelError) as caught:
        load(parse_spec(str(folder), device="cpu", **options))
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


UP = "model.layers.0.mlp.up_proj.weight"


def spoiled(value):
    return lambda tensors: tensors[UP].__setitem__((3, 5), value)


def cut_to_300(tensors):
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors[name][:300].clone()


def written(name, text):
    return lambda folder: (folder / name).write_text(text)


def config(**changes):
    return lambda folder: change_json(folder / "config.json", **changes)


def weights(change, **changes):
    def made(folder):
        change_weights(folder, change)
        change_json(folder / "config.json", **changes)

    return made


def masked(folder):
    config = transformers.BertConfig(
        vocab_size=400,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertForMaskedLM(config).save_pretrained(folder)


def more_tokens(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([f"<late{k}>" for k in range(40)])
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (weights(spoiled(float("nan"))), f"NaN or infinity in {UP}"),
        (weights(spoiled(float("-inf"))), f"NaN or infinity in {UP}"),
        (weights(lambda tensors: tensors.pop(UP)), f"missing: {UP}"),
        (
            weights(lambda tensors: tensors.update({UP: torch.zeros(60, 32)})),
            f"another shape than the config says: {UP}",
        ),
        (config(num_hidden_layers=1), "fewer layers"),
        (config(model_type="oracle"), "unknown to transformers"),
        (
            config(transformers_weights="model-2.safetensors"),
            "transformers_weights=model-2.safetensors, which",
        ),
        (masked, "does not write text"),
        (written("tokenizer.json", '{"version": "1.0"}'), "tokenizer"),
        (
            written("merges.txt", "version https://git-lfs.github.com/spec/v1\n"),
            "merges.txt: this is a Git LFS pointer",
        ),
        (weights(cut_to_300, vocab_size=300), "the ids 0 to 299 only"),
        (more_tokens, "does not fit"),
    ],
)
def test_what_is_wrong_is_said_with_the_folder(llama, change, said):
    change(llama)
    assert said in refusal(llama)


def test_a_tensor_without_use_is_no_error(llama):
    change_weights(
        llama, lambda tensors: tensors.update({"value_head.weight": torch.zeros(1, 32)})
    )
    load(parse_spec(str(llama), device="cpu"))


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_tokenizer_missing(tmp_path, kind):
    make_checkpoint(tmp_path / kind, kind)
    for file in (tmp_path / kind).glob("*token*"):
        file.unlink()
    assert "tokenizer" in refusal(tmp_path / kind)


def test_shards_load_and_count(llama):
    whole = load(parse_spec(str(llama), device="cpu")).describe()
    (llama / "model.safetensors").rename(llama / "model-1.safetensors")
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "model-1.safetensors"}}
    (llama / "model.safetensors.index.json").write_text(json.dumps(index))
    sharded = load(parse_spec(str(llama), device="cpu")).describe()
    assert sharded.weights_digest == whole.weights_digest


def test_a_special_token_beyond_the_embedding_fails_only_what_spells_it_out(llama):
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    beyond = transformers.AutoConfig.from_pretrained(llama).vocab_size - len(tokenizer)
    tokenizer.add_tokens([f"<spare{k}>" for k in range(beyond)])
    tokenizer.add_special_tokens({"pad_token": "<late>"})
    tokenizer.save_pretrained(llama)
    model = load(parse_spec(str(llama), device="cpu"))
    asked = [
        ScoreRequest(prompt="Paris is", continuation=text)
        for text in (" the", " <late>", " a long city")
    ]
    usual, late, longer = model.score(asked)
    assert usual.probabilities
    assert longer.probabilities
    assert "token 400 is beyond the model's 400 tokens" in late.error


def test_a_checkpoint_in_a_subfolder_is_the_same_one(llama):
    usual = load(parse_spec(str(llama), device="cpu")).describe()
    inner = load(
        parse_spec(str(llama.parent), f"subfolder={llama.name}", device="cpu")
    ).describe()
    assert (inner.weights_digest, inner.tokenizer_digest) == (
        usual.weights_digest,
        usual.tokenizer_digest,
    )


def test_a_subfolder_of_a_repository_on_the_hub(llama, monkeypatch, tmp_path):
    snapshot = tmp_path / "hub" / "models--somebody--tiny" / "snapshots" / ("0" * 40)
    shutil.copytree(llama, snapshot / "last")
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(
        "transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path / "hub")
    )
    there = load(parse_spec("somebody/tiny", "subfolder=last", device="cpu")).describe()
    assert there == replace(
        load(parse_spec(str(llama), device="cpu")).describe(),
        spec="somebody/tiny",
        name="somebody/tiny/last",
    )
    assert "cannot be loaded" in refusal("somebody/tiny")


def test_what_was_typed_without_effect_is_told_by_the_loaded_model(llama):
    change_json(llama / "tokenizer_config.json", add_bos_token=False)
    typed, warned = load(parse_spec(str(llama), "batch_size=8", device="cpu")).notes
    assert typed.startswith("model-args: batch_size=8 is not used")
    assert warned.startswith("warning: tokenizer_config.json says add_bos_token=False")


def test_hub_id_out_of_reach(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert "no such folder here" in refusal("nobody/nothing-here")


@pytest.mark.parametrize(
    ("args", "package"),
    [
        ("peft=adapter", "peft"),
        ("load_in_4bit=True", "bitsandbytes"),
        ("load_in_8bit=True", "bitsandbytes"),
        ("gguf_file=config.json", "gguf"),
        ("gguf_file=config.json", "accelerate"),
        ("device_map=auto", "accelerate"),
        ("attn_implementation=flash_attention_2", "flash.attn"),
    ],
)
def test_missing_package_of_an_option(llama, args, package, monkeypatch):
    without(monkeypatch, package)
    with pytest.raises(
        ModelError,
        match=f"^model-args: {args} needs the package .*pip install {package}",
    ):
        check_spec(parse_spec(str(llama), args))


def without(monkeypatch, package):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        "pytest_kbrel.models.hf.backend.find_spec",
        lambda name: None if name == package else real(name),
    )


def test_missing_torch_names_the_extra(llama, monkeypatch):
    without(monkeypatch, "torch")
    with pytest.raises(MissingExtraError, match=r"pytest-kbrel\[hf\]"):
        load(parse_spec(str(llama)))


@pytest.mark.parametrize(
    ("saved", "asked", "used"),
    [
        ("float16", "auto", "float32"),
        ("bfloat16", "auto", "bfloat16"),
        ("float32", "auto", "float32"),
        ("float16", "bfloat16", "bfloat16"),
    ],
)
def test_number_format(llama, saved, asked, used):
    dtype = getattr(torch, saved)
    change_weights(
        llama, lambda t: t.update({name: value.to(dtype) for name, value in t.items()})
    )
    change_json(llama / "config.json", dtype=saved)
    assert (
        load(parse_spec(str(llama), device="cpu", dtype=asked)).describe().dtype == used
    )


def test_derivation_after_loading(llama):
    request = [ScoreRequest(prompt="Paris is", continuation=" the capital")]
    plain = load(ModelSpec(text="plain", path=str(llama), device="cpu"))
    derived = load(
        ModelSpec(text="derived", path=str(llama), derived="int4", device="cpu")
    )
    assert derived.describe().derived == "int4"
    assert derived.describe().weights_digest == plain.describe().weights_digest
    (before,), (after,) = plain.score(request), derived.score(request)
    assert before.token_ids == after.token_ids
    assert before.probabilities != after.probabilities
