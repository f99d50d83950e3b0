"""Which parts of a checkpoint its fingerprint tells apart: one change at a time, without loading anything."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint import fingerprint as module
from pytest_kbrel.models.checkpoint.fingerprint import fingerprint, quantisation
from pytest_kbrel.models.checkpoint.spec import ModelSpec

TEMPLATE = "{{ messages }}"


class Tokenizer:
    """A vocabulary of two words."""

    def __init__(
        self, vocabulary=("a", "b"), special=None, template=TEMPLATE, backend=None
    ):
        self._vocabulary = vocabulary
        self.special_tokens_map = special or {"eos_token": "b"}
        self.chat_template = template
        if backend is not None:
            self.backend_tokenizer = SimpleNamespace(to_str=lambda: backend)

    def get_vocab(self):
        return {word: number for number, word in enumerate(self._vocabulary)}


class Model:
    """As much of a loaded checkpoint as is asked about it."""

    def __init__(self, *, ends=1, decoder=None, starts=0, dtype=torch.float32):
        self.config = SimpleNamespace(is_encoder_decoder=decoder is not None)
        self.generation_config = SimpleNamespace(
            eos_token_id=ends, decoder_start_token_id=decoder, bos_token_id=starts
        )
        self.dtype, self.device = dtype, torch.device("cpu")

    def num_parameters(self):
        return 12

    def get_base_model(self):
        return Tokenizer()


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "checkpoint"
    made.mkdir()
    save_file({"x": torch.ones(2)}, made / "model.safetensors")
    (made / "config.json").write_text(json.dumps({"rms_norm_eps": 1.0}))
    (made / "tokenizer.json").write_text("{}")
    return made


def result(folder, model=None, tokenizer=None, *, adds_bos=False, **settings):
    spec = ModelSpec(**({"text": "here", "path": str(folder)} | settings))
    return fingerprint(
        spec,
        folder,
        model or Model(),
        tokenizer or Tokenizer(),
        adds_bos=adds_bos,
        device="cpu",
    )


@pytest.mark.parametrize(
    ("settings", "derived"),
    [
        ({"load_in_8bit": True}, "load_in_8bit"),
        (
            {"load_in_4bit": True, "bnb_4bit": (("quant_type", "nf4"), ("x", True))},
            "load_in_4bit(quant_type=nf4,x=True)",
        ),
        ({"derived": "pruned", "attn_implementation": "eager"}, "pruned+attn=eager"),
    ],
)
def test_all_that_was_done_while_loading_is_named(
    folder, monkeypatch, settings, derived
):
    monkeypatch.setattr(module, "version", lambda name: "1")
    assert result(folder, **settings).derived == derived


def adapter(parent, value=1.0, scale=2):
    made = parent / "adapter"
    made.mkdir(exist_ok=True)
    save_file({"lora": torch.full((2,), value)}, made / "adapter_model.safetensors")
    (made / "adapter_config.json").write_text(json.dumps({"lora_alpha": scale}))


def test_an_adapter_is_a_part_of_the_weights(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    monkeypatch.setattr(module, "version", lambda name: "1")
    digests = [result(folder).weights_digest]
    for change in ({}, {"value": 2.0}, {"scale": 4}):
        adapter(folder.parent, **change)
        said = result(folder, peft="adapter")
        digests.append(said.weights_digest)
        assert (said.derived, said.architecture) == ("peft", "Tokenizer")
    assert len(set(digests)) == 4
    (folder.parent / "adapter" / "adapter_config.json").unlink()
    monkeypatch.setattr(
        "transformers.utils.hub.cached_file", lambda *names, **how: None
    )
    with pytest.raises(
        ModelError,
        match=r"adapter 'adapter': adapter_config\.json was not found, so that",
    ):
        result(folder, peft="adapter")


def changed(folder, name, text):
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: save_file({"x": torch.zeros(2)}, folder / "model.safetensors"),
        lambda folder: changed(folder, "config.json", '{"rms_norm_eps": 2.0}'),
        lambda folder: changed(folder, "tokenizer_config.json", '{"legacy": false}'),
    ],
    ids=["weights", "config", "a tokenizer's own config"],
)
def test_another_content_is_another_model(folder, change):
    before = result(folder)
    change(folder)
    after = result(folder)
    assert after.weights_digest != before.weights_digest
    assert after.tokenizer_digest == before.tokenizer_digest


def test_where_texts_begin_and_end_makes_another_model(folder):
    models = [
        Model(),
        Model(ends=2),
        Model(ends=[1]),
        Model(decoder=0),
        Model(decoder=3),
        Model(decoder=0, starts=3),
    ]
    digests = [result(folder, model).weights_digest for model in models]
    assert len(set(digests)) == len(digests)
    # A causal model's text begins as the tokenizer says.
    assert result(folder, Model(starts=3)).weights_digest == digests[0]


def test_a_bos_that_is_typed_beside_a_template_makes_another_model(folder):
    ways = [
        result(folder, chat_template=template, add_bos_token=bos).weights_digest
        for template, bos in [(False, None), (True, True), (True, False)]
    ]
    assert len(set(ways)) == 3
    assert result(folder, chat_template=True).weights_digest == ways[0]
    # Without a template ``adds_bos`` says what came of it.
    assert result(folder, add_bos_token=False).weights_digest == ways[0]


def test_the_settings_of_the_tokenizer_that_was_named_count(folder):
    other = folder.parent / "other"
    other.mkdir()
    changed(other, "tokenizer.json", "[]")
    before = result(folder)
    spec = ModelSpec(text="here", path=str(folder), tokenizer=str(other))

    def said():
        return fingerprint(
            spec, folder, Model(), Tokenizer(), adds_bos=False, device="cpu"
        )

    assert said().tokenizer_digest != before.tokenizer_digest
    assert said().weights_digest == before.weights_digest
    changed(folder, "tokenizer_config.json", '{"legacy": false}')
    assert said().weights_digest == before.weights_digest
    changed(other, "tokenizer_config.json", '{"legacy": false}')
    assert said().weights_digest != before.weights_digest


def test_a_tokenizer_is_known_by_words_special_tokens_and_files(folder):
    tokenizers = [
        Tokenizer(),
        Tokenizer(vocabulary=("b", "a")),
        Tokenizer(vocabulary=("a", "b", "c")),
        Tokenizer(special={"eos_token": "a"}),
        Tokenizer(special={"bos_token": "b"}),
    ]
    digests = [
        result(folder, None, tokenizer).tokenizer_digest for tokenizer in tokenizers
    ]
    changed(folder, "tokenizer.json", "[]")
    digests.append(result(folder).tokenizer_digest)
    assert len(set(digests)) == len(digests)
    # The files say all, where there are any.
    assert result(folder, None, Tokenizer(backend="x")).tokenizer_digest == digests[-1]
    (folder / "tokenizer.json").unlink()
    inner = [
        result(folder, None, Tokenizer(backend=backend)).tokenizer_digest
        for backend in (None, "x", "y")
    ]
    assert len(set(inner)) == 3


def test_a_template_counts_where_it_is_used(folder):
    other = Tokenizer(template=TEMPLATE + "!")
    assert (
        result(folder, None, other).tokenizer_digest == result(folder).tokenizer_digest
    )
    used = [
        result(folder, None, one, chat_template=True).tokenizer_digest
        for one in (None, other)
    ]
    assert used[0] != used[1]


def test_a_gguf_file_is_the_weights(folder):
    changed(folder, "x.gguf", "1")
    changed(folder, "y.gguf", "2")
    one, other = (result(folder, gguf_file=name) for name in ("x.gguf", "y.gguf"))
    assert one.quantisation == "gguf"
    assert (
        len({one.weights_digest, other.weights_digest, result(folder).weights_digest})
        == 3
    )
    # Config and weights in other formats are then not read.
    changed(folder, "config.json", '{"rms_norm_eps": 2.0}')
    (folder / "model.safetensors").unlink()
    assert result(folder, gguf_file="x.gguf") == one


@pytest.mark.parametrize(
    ("settings", "saved", "said"),
    [
        ({}, {"quant_method": "gptq", "bits": 4}, "gptq 4 bits"),
        ({}, {"quant_method": "bnb", "load_in_8bit": True}, "bnb 8 bits"),
        ({}, {}, "quantised"),
        ({}, "gptq", ""),
        ({"derived": "pruned"}, None, ""),
        (
            {"gguf_file": "x", "load_in_8bit": True, "derived": "int4"},
            None,
            "gguf + bitsandbytes 8 bits + int4",
        ),
    ],
)
def test_every_way_in_which_weights_were_made_smaller_is_named(settings, saved, said):
    spec = ModelSpec(text="x", path="x", **settings)
    assert (
        quantisation(spec, {} if saved is None else {"quantization_config": saved})
        == said
    )
