"""What a tokenizer and a config are held against before anything is asked, and what is told of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.hf.checks import bos_note, check_fit, check_kind, fast_note
from pytest_kbrel.models.hf.spec import ModelSpec

SPEC = ModelSpec(text="x", path="x")


@pytest.mark.parametrize(("highest", "fits"), [(9, True), (10, False)])
def test_a_tokenizers_ids_are_rows_of_the_embedding(highest, fits):
    model = SimpleNamespace(get_input_embeddings=lambda: SimpleNamespace(weight=torch.zeros(10, 2)))
    tokenizer = SimpleNamespace(
        get_vocab=lambda: {"low": 0, "high": highest},
        added_tokens_decoder={},
        bos_token_id=None,
        eos_token_id=None,
    )
    if fits:
        check_fit(SPEC, model, tokenizer)
        return
    with pytest.raises(ModelError, match="token 'high' has id 10, but the model knows the ids 0 to 9 only"):
        check_fit(SPEC, model, tokenizer)


@pytest.mark.parametrize(
    ("special", "bos", "fits"), [(True, None, True), (False, None, False), (True, 10, False)]
)
def test_a_special_token_beyond_the_embedding_is_let_be_unless_it_begins_texts(special, bos, fits):
    model = SimpleNamespace(get_input_embeddings=lambda: SimpleNamespace(weight=torch.zeros(10, 2)))
    tokenizer = SimpleNamespace(
        get_vocab=lambda: {"low": 0, "<pad>": 10},
        added_tokens_decoder={10: SimpleNamespace(special=special)},
        bos_token_id=bos,
        eos_token_id=None,
    )
    if fits:
        check_fit(SPEC, model, tokenizer)
        return
    with pytest.raises(ModelError, match=r"token '<pad>' has id 10, .* tokenizer=FOLDER"):
        check_fit(SPEC, model, tokenizer)


def test_a_prefix_token_is_a_row_of_the_embedding():
    model = SimpleNamespace(get_input_embeddings=lambda: SimpleNamespace(weight=torch.zeros(10, 2)))
    tokenizer = SimpleNamespace(
        get_vocab=lambda: {"low": 0}, added_tokens_decoder={}, bos_token_id=None, eos_token_id=None
    )
    check_fit(replace(SPEC, prefix_token_id=9), model, tokenizer)
    with pytest.raises(ModelError, match="prefix_token_id=10, but the model knows the ids 0 to 9 only"):
        check_fit(replace(SPEC, prefix_token_id=10), model, tokenizer)


@pytest.mark.parametrize(
    ("kind", "encoder_decoder", "fits"),
    [
        ("", True, True),
        ("", False, True),
        ("causal", False, True),
        ("seq2seq", True, True),
        ("causal", True, False),
        ("seq2seq", False, False),
    ],
)
def test_a_kind_that_is_typed_is_what_the_config_says(kind, encoder_decoder, fits):
    config = SimpleNamespace(is_encoder_decoder=encoder_decoder)
    if fits:
        check_kind(replace(SPEC, kind=kind), config)
        return
    with pytest.raises(ModelError, match=f"backend={kind}, but config.json says"):
        check_kind(replace(SPEC, kind=kind), config)


def told_of_bos(folder, said, adds_bos, *, bos=1, **typed):
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": said}))
    encoder = SimpleNamespace(adds_bos=adds_bos, tokenizer=SimpleNamespace(bos_token_id=bos))
    return bos_note(replace(SPEC, **typed), folder, encoder)


@pytest.mark.parametrize(
    ("said", "adds_bos", "words"),
    [
        (True, False, "add_bos_token=True, and .* puts no BOS in front"),
        (False, True, "add_bos_token=False, and .* puts BOS in front"),
    ],
)
def test_a_tokenizer_that_does_not_add_bos_as_its_config_says_is_told(tmp_path, said, adds_bos, words):
    assert re.search(words, told_of_bos(tmp_path, said, adds_bos))
    # What was typed holds, and a chat template has its own.
    for typed in ({"add_bos_token": True}, {"add_bos_token": False}, {"chat_template": True}):
        assert told_of_bos(tmp_path, said, adds_bos, **typed) == ""
    assert told_of_bos(tmp_path, said, adds_bos, bos=None) == ""
    other = tmp_path / "other"
    other.mkdir()
    assert told_of_bos(tmp_path, said, adds_bos, tokenizer=str(other)) == ""


@pytest.mark.parametrize(("said", "adds_bos"), [(True, True), (False, False), (None, True), (None, False)])
def test_a_tokenizer_that_does_as_its_config_says_is_not_told(tmp_path, said, adds_bos):
    assert told_of_bos(tmp_path, said, adds_bos) == ""


def test_a_fast_tokenizer_in_place_of_another_is_told():
    fast, slow = SimpleNamespace(is_fast=True), SimpleNamespace(is_fast=False)
    asked = replace(SPEC, use_fast_tokenizer=False)
    assert "has only a fast tokenizer" in fast_note(asked, fast)
    assert fast_note(asked, slow) == fast_note(SPEC, fast) == ""
