"""What is decided about a checkpoint from its config and some numbers: tables, and the values beside them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.hf.checks import (
    check_complete,
)
from pytest_kbrel.models.hf.sharing import (
    agree,
    best_sharing_mode,
    check_length,
    window_of,
)
from pytest_kbrel.models.hf.spec import ModelSpec
from pytest_kbrel.models.hf.stopping import greedy_settings

SPEC = ModelSpec(text="x", path="x")
LONG = {"rope_type": "longrope", "original_max_position_embeddings": 50}


class Config(SimpleNamespace):
    """A config of a text model."""

    def get_text_config(self, decoder=False):
        return self


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        ({}, None),
        *(
            ({name: 16}, 16)
            for name in ("sliding_window", "attention_chunk_size", "keep_window_size")
        ),
        ({"index_topk": 16}, 16),
        ({"sliding_window": None}, None),
        ({"sliding_window": 0}, None),
        ({"sliding_window": 1}, 1),
        ({"sliding_window": 32, "attention_chunk_size": 16}, 16),
        # GPT-Neo's own, which counts where layers are local.
        ({"window_size": 16}, None),
        ({"window_size": 16, "attention_layers": ["global", "local"]}, 16),
        ({"window_size": 16, "attention_layers": ["global"]}, None),
        ({"rope_scaling": LONG}, 50),
        ({"rope_parameters": LONG}, 50),
        ({"rope_scaling": {**LONG, "rope_type": "dynamic"}}, 50),
        (
            {
                "rope_scaling": {
                    "type": "longrope",
                    "original_max_position_embeddings": 50,
                }
            },
            50,
        ),
        ({"rope_scaling": {**LONG, "rope_type": "linear"}}, None),
        ({"rope_scaling": {**LONG, "rope_type": "yarn"}}, None),
        ({"rope_scaling": {"rope_type": "dynamic"}, "max_position_embeddings": 60}, 60),
        (
            {
                "rope_scaling": {"rope_type": "dynamic"},
                "original_max_position_embeddings": 40,
                "max_position_embeddings": 60,
            },
            40,
        ),
        ({"rope_parameters": {"full": LONG, "sliding": {"rope_type": "default"}}}, 50),
        ({"rope_scaling": None, "rope_parameters": []}, None),
    ],
)
def test_up_to_how_many_tokens_a_sequence_may_be_packed(settings, window):
    assert window_of(Config(**settings)) == window


@pytest.mark.parametrize(
    ("prompt", "behind", "limit", "encoder_decoder", "fits"),
    [
        (6, 4, 10, False, True),
        (6, 5, 10, False, False),
        (60, 50, None, False, True),
        (10, 10, 10, True, True),
        (11, 1, 10, True, False),
        (1, 11, 10, True, False),
    ],
)
def test_how_long_a_text_may_be(prompt, behind, limit, encoder_decoder, fits):
    if fits:
        check_length(prompt, behind, limit, encoder_decoder=encoder_decoder)
        return
    with pytest.raises(
        ValueError,
        match=f"too long: {prompt} tokens of prompt and {behind} behind it; the model",
    ):
        check_length(prompt, behind, limit, encoder_decoder=encoder_decoder)


USED = {"model.layers.0.w", "model.layers.1.w", "head.w"}


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({}, None),
        ({"missing_keys": ["b", "a"]}, "weights missing: a, b; random"),
        ({"missing_keys": ["a", "b", "c"]}, "weights missing: a, b, c; random"),
        (
            {"missing_keys": ["a", "b", "c", "d"]},
            "weights missing: a, b, c and 1 more; random",
        ),
        (
            {"mismatched_keys": ["a"]},
            "weights of another shape than the config says: a; random",
        ),
        (
            {"mismatched_keys": [("a", 1, 2)]},
            "weights of another shape than the config says: a; random",
        ),
        ({"error_msgs": ["no"]}, "the weights cannot be loaded: no$"),
        ({"error_msgs": []}, None),
        ({"unexpected_keys": ["other.w", "pooler.w"]}, None),
        (
            {"unexpected_keys": ["model.layers.3.w", "model.layers.2.w"]},
            "2 tensors would be left out, the first is model",
        ),
        ({"unexpected_keys": ["model.layers.2.other"]}, None),
    ],
)
def test_which_weights_a_load_must_have_found(info, said):
    whole = {"mismatched_keys": [], "missing_keys": [], "unexpected_keys": [], **info}
    if said is None:
        check_complete(SPEC, whole, USED)
        return
    with pytest.raises(ModelError, match=said):
        check_complete(SPEC, whole, USED)


def settings_of(own=None, config=None, tokenizer=None):
    result = {
        "eos_token_id": None,
        "pad_token_id": None,
        "bos_token_id": None,
        "decoder_start_token_id": None,
    }
    model = SimpleNamespace(
        generation_config=SimpleNamespace(**(result | (own or {}))),
        config=Config(**({"eos_token_id": None} | (config or {}))),
        get_input_embeddings=lambda: SimpleNamespace(weight=torch.zeros(10, 2)),
    )
    return greedy_settings(model, SimpleNamespace(**(result | (tokenizer or {}))))


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({}, "eos_token_id", None),
        ({"own": {"eos_token_id": 3}}, "eos_token_id", [3]),
        ({"config": {"eos_token_id": [5, 4]}}, "eos_token_id", [4, 5]),
        ({"tokenizer": {"eos_token_id": 0}}, "eos_token_id", [0]),
        (
            {
                "own": {"eos_token_id": [1]},
                "config": {"eos_token_id": 2},
                "tokenizer": {"eos_token_id": 1},
            },
            "eos_token_id",
            [1, 2],
        ),
        ({}, "pad_token_id", 0),
        (
            {
                "tokenizer": {"pad_token_id": 0},
                "own": {"pad_token_id": 5, "eos_token_id": 6},
            },
            "pad_token_id",
            0,
        ),
        ({"own": {"pad_token_id": 0, "eos_token_id": 6}}, "pad_token_id", 0),
        ({"own": {"eos_token_id": [7, 6]}}, "pad_token_id", 6),
        (
            {"tokenizer": {"pad_token_id": 9}, "own": {"eos_token_id": 6}},
            "pad_token_id",
            9,
        ),
        (
            {"tokenizer": {"pad_token_id": 10}, "own": {"eos_token_id": 6}},
            "pad_token_id",
            6,
        ),
        ({"own": {"bos_token_id": 0}}, "bos_token_id", 0),
        (
            {
                "own": {"decoder_start_token_id": 0},
                "config": {"decoder_start_token_id": 5},
            },
            "decoder_start_token_id",
            0,
        ),
        ({"config": {"decoder_start_token_id": 0}}, "decoder_start_token_id", 0),
        ({}, "decoder_start_token_id", None),
        ({}, "do_sample", False),
        ({}, "num_beams", 1),
        ({}, "repetition_penalty", 1.0),
        ({}, "length_penalty", 1.0),
        ({}, "early_stopping", False),
    ],
)
def test_what_of_a_checkpoints_own_generation_settings_is_kept(given, name, value):
    assert getattr(settings_of(**given), name) == value


def model_of(dtype=torch.float32):
    return SimpleNamespace(
        dtype=dtype,
        get_input_embeddings=lambda: SimpleNamespace(weight=torch.zeros(30, 2)),
    )


@pytest.mark.parametrize(
    ("dtype", "factor", "same"),
    [
        (torch.float32, 1.0009, True),
        (torch.float32, 1.0011, False),
        (torch.float64, 1.0011, False),
        (torch.bfloat16, 1.08, True),
        (torch.bfloat16, 1.09, False),
        (torch.float16, 1.08, True),
    ],
)
def test_how_far_two_ways_may_differ(dtype, factor, same):
    assert agree(model_of(dtype), [(0.5,)], [(0.5 * factor,)]) is same
    assert agree(model_of(dtype), [(0.1, 0.5)], [(0.1, 0.5 * factor)]) is same


def ways(**changes):
    """Return ways: the plain one tells contexts apart, others are as that one but for ``changes``."""

    def plain(pairs):
        return [
            tuple(1 / (2 + pair.context[0] + at) for at in range(len(pair.targets)))
            for pair in pairs
        ]

    result = {**dict.fromkeys(("packed", "prefix", "plain"), plain), **changes}
    return {name: way for name, way in result.items() if way is not None}


def wrong(pairs):
    return [(0.9,) * len(pair.targets) for pair in pairs]


def raises(pairs):
    raise RuntimeError("no such mask")


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({}, "packed"),
        ({"packed": wrong}, "prefix"),
        ({"packed": raises}, "prefix"),
        ({"packed": None}, "prefix"),
        ({"packed": wrong, "prefix": raises}, "plain"),
        ({"packed": wrong, "prefix": None}, "plain"),
        # Where contexts do not change the numbers, nothing can be told.
        ({"plain": wrong, "packed": wrong}, "plain"),
        ({"plain": raises}, "plain"),
    ],
)
def test_the_first_way_that_gives_the_plain_numbers_is_taken(changes, mode):
    assert best_sharing_mode(model_of(), ways(**changes), None) == mode
