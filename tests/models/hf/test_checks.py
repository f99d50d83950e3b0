"""Checks of a tokenizer and a config against a model, and the notes on them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.checks import bos_note, check_kind, regex_note
from pytest_kbrel.models.checkpoint.fingerprint import load_tokenizer
from pytest_kbrel.models.checkpoint.spec import (
    ModelSpec,
    parse_spec,
)

SPEC = ModelSpec(text="x", path="x")


@pytest.mark.parametrize(
    ("kind", "other", "encoder_decoder"),
    [("causal", "seq2seq", False), ("seq2seq", "causal", True)],
)
def test_a_kind_that_is_typed_is_what_the_config_says(kind, other, encoder_decoder):
    config = SimpleNamespace(is_encoder_decoder=encoder_decoder)
    check_kind(SPEC, config)
    check_kind(replace(SPEC, kind=kind), config)
    with pytest.raises(
        ModelError, match=f"backend={other}, but config.json says {kind}"
    ):
        check_kind(replace(SPEC, kind=other), config)


def note_on_bos(folder, setting, adds_bos, *, bos=1, **typed):
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"add_bos_token": setting})
    )
    encoder = SimpleNamespace(
        adds_bos=adds_bos, tokenizer=SimpleNamespace(bos_token_id=bos)
    )
    return bos_note(replace(SPEC, **typed), folder, encoder)


@pytest.mark.parametrize(
    ("setting", "adds_bos", "typed", "words"),
    [
        (True, False, {}, "add_bos_token=True, and .* puts no BOS in front"),
        (False, True, {}, "add_bos_token=False, and .* puts BOS in front"),
        # What was typed holds, and a chat template has its own.
        (False, True, {"add_bos_token": True}, "^$"),
        (False, True, {"chat_template": True}, "^$"),
        (False, True, {"bos": None}, "^$"),
        (False, True, {"tokenizer": "elsewhere"}, "^$"),
        (True, True, {}, "^$"),
        (None, False, {}, "^$"),
    ],
)
def test_a_tokenizer_that_does_not_add_bos_as_its_config_says_is_told(
    tmp_path, setting, adds_bos, typed, words
):
    assert re.search(words, note_on_bos(tmp_path, setting, adds_bos, **typed))


def test_the_old_pattern_of_mistrals_tokenizer_is_told_and_mended(tmp_path):
    letters = pre_tokenizers.ByteLevel.alphabet()
    # transformers looks at large vocabularies only.
    names = [*letters, *(f"<{n}>" for n in range(100_001))]
    tokenizer = Tokenizer(models.BPE({name: n for n, name in enumerate(names)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(
        tmp_path
    )
    config = {"model_type": "mistral", "transformers_version": "4.50.0"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    patterns = []
    for args in ("", "fix_mistral_regex=False", "fix_mistral_regex=True"):
        spec = parse_spec(str(tmp_path), args)
        loaded = load_tokenizer(spec)
        assert bool(regex_note(spec, loaded)) == (not args)
        patterns.append(str(loaded.backend_tokenizer.pre_tokenizer))
    assert patterns[0] == patterns[1] != patterns[2]
