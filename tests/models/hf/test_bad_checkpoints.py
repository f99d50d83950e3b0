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
    make_tokenizer,
)


def refusal(folder, **options):
    with pytest.raises(ModelError) as caught:
        load(parse_spec(str(folder), device="cpu", **options))
    message = str(caught.value)
    assert str(folder) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers(llama, value):
    def spoil(tensors):
        tensors["model.layers.1.mlp.up_proj.weight"][3, 5] = value

    change_weights(llama, spoil)
    assert "model.layers.1.mlp.up_proj.weight" in refusal(llama)


def test_missing_weights(llama):
    change_weights(
        llama, lambda tensors: tensors.pop("model.layers.0.mlp.up_proj.weight")
    )
    message = refusal(llama)
    assert "missing: model.layers.0.mlp.up_proj.weight" in message


def test_weights_of_another_shape(llama):
    def shrink(tensors):
        tensors["model.layers.0.mlp.up_proj.weight"] = torch.zeros(60, 32)

    change_weights(llama, shrink)
    assert (
        "another shape than the config says: model.layers.0.mlp.up_proj.weight"
        in refusal(llama)
    )


def test_more_layers_than_the_config_says(llama):
    change_json(llama / "config.json", num_hidden_layers=1)
    assert "fewer layers" in refusal(llama)


def test_a_tensor_without_use_is_no_error(llama):
    def add(tensors):
        tensors["value_head.weight"] = torch.zeros(1, 32)

    change_weights(llama, add)
    load(parse_spec(str(llama), device="cpu"))


def test_corrupt_safetensors(llama):
    file = llama / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    assert "safetensors" in refusal(llama)
    file.write_bytes(b"hello")
    assert "safetensors" in refusal(llama)


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ('{"weight_map": {"a": "model-1.safetensors"}}', "model-1.safetensors"),
        ('{"weight_map": {"a": "../other/model.safetensors"}}', "next to the index"),
        ('{"weight_map": 3}', "unreadable index"),
        ("nothing", "unreadable index"),
    ],
)
def test_shards(llama, index, said):
    (llama / "model.safetensors").unlink()
    (llama / "model.safetensors.index.json").write_text(index)
    assert said in refusal(llama)


def test_shards_load_and_count(llama):
    whole = load(parse_spec(str(llama), device="cpu")).describe()
    (llama / "model.safetensors").rename(llama / "model-1.safetensors")
    index = {"metadata": {}, "weight_map": {"lm_head.weight": "model-1.safetensors"}}
    (llama / "model.safetensors.index.json").write_text(json.dumps(index))
    assert (
        load(parse_spec(str(llama), device="cpu")).describe().weights_digest
        == whole.weights_digest
    )


@pytest.mark.parametrize("content", ["{", "[1]", ""])
def test_unreadable_config(llama, content):
    (llama / "config.json").write_text(content)
    assert "config.json" in refusal(llama)


def test_unknown_architecture(llama):
    change_json(
        llama / "config.json", model_type="oracle", architectures=["OracleForCausalLM"]
    )
    assert "unknown to transformers" in refusal(llama)


def test_a_config_that_names_other_weights(llama):
    change_json(llama / "config.json", transformers_weights="model-2.safetensors")
    assert "transformers_weights=model-2.safetensors, which" in refusal(llama)


def test_code_of_the_checkpoint_is_not_run(llama):
    (llama / "configuration_oracle.py").write_text("raise SystemExit('this ran')")
    change_json(
        llama / "config.json",
        model_type="oracle",
        auto_map={"AutoConfig": "configuration_oracle.OracleConfig"},
    )
    assert "never run" in refusal(llama)


def test_masked_model(llama):
    config = transformers.BertConfig(
        vocab_size=400,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.BertForMaskedLM(config).save_pretrained(llama)
    assert "does not write text" in refusal(llama)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "t5", "mamba"])
def test_tokenizer_missing(tmp_path, kind):
    make_checkpoint(tmp_path / kind, kind)
    for file in (tmp_path / kind).glob("*token*"):
        file.unlink()
    assert "tokenizer" in refusal(tmp_path / kind)


@pytest.mark.parametrize("content", ["{", "", '{"version": "1.0"}'])
def test_tokenizer_unreadable(llama, content):
    (llama / "tokenizer.json").write_text(content)
    assert "tokenizer" in refusal(llama)


def test_tokenizer_with_more_tokens_than_the_model(llama):
    def cut(tensors):
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            tensors[name] = tensors[name][:300].clone()

    change_weights(llama, cut)
    change_json(llama / "config.json", vocab_size=300)
    message = refusal(llama)
    assert "does not fit" in message
    assert "0 to 299" in message


def test_added_token_beyond_the_embedding(llama):
    tokenizer = transformers.AutoTokenizer.from_pretrained(llama)
    tokenizer.add_tokens(["<late>", *(f"<late{k}>" for k in range(40))])
    tokenizer.save_pretrained(llama)
    assert "does not fit" in refusal(llama)


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


def test_chat_template_missing(llama):
    assert "tokenizer has none" in refusal(llama, chat_template=True)


def test_hub_id_out_of_reach(monkeypatch, tmp_path):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert "no such folder here" in refusal("nobody/nothing-here")


def test_device_that_is_not_there(llama):
    with pytest.raises(ModelError, match="device 'nonsense' is not available"):
        load(parse_spec(str(llama), device="nonsense"))


@pytest.mark.parametrize(
    ("args", "package"),
    [
        ("peft=adapter", "peft"),
        ("load_in_4bit=True", "bitsandbytes"),
        ("load_in_8bit=True", "bitsandbytes"),
        ("gguf_file=config.json", "gguf"),
        ("gguf_file=config.json", "accelerate"),
    ],
)
def test_missing_package_of_an_option(llama, args, package, monkeypatch):
    without(monkeypatch, package)
    with pytest.raises(
        ModelError,
        match=f"^model-args: {args} needs the package .*pip install {package}",
    ):
        check_spec(parse_spec(str(llama), args, device="cpu"))


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


def test_digest_is_of_the_content(llama, tmp_path):
    shutil.copytree(llama, tmp_path / "elsewhere")
    first, other = (
        load(parse_spec(str(p), device="cpu")).describe()
        for p in (llama, tmp_path / "elsewhere")
    )
    assert first.weights_digest == other.weights_digest
    assert first.tokenizer_digest == other.tokenizer_digest

    def change(tensors):
        tensors["lm_head.weight"][3, 5] += 1e-3

    change_weights(tmp_path / "elsewhere", change)
    make_tokenizer(tmp_path / "elsewhere", vocabulary=380)
    changed = load(parse_spec(str(tmp_path / "elsewhere"), device="cpu")).describe()
    assert changed.weights_digest != first.weights_digest
    assert changed.tokenizer_digest != first.tokenizer_digest


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
