"""What is decided about a checkpoint from its config and some numbers: tables, and the values beside them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.hf.loading import check_complete
from pytest_kbrel.models.hf.sharing import (
    window_of,
)

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
        ({"sliding_window": 0}, None),
        ({"sliding_window": 32, "attention_chunk_size": 16}, 16),
        # GPT-Neo's own, which counts where layers are local.
        ({"window_size": 16, "attention_layers": ["global", "local"]}, 16),
        ({"window_size": 16, "attention_layers": ["global"]}, None),
        ({"rope_scaling": LONG}, 50),
        ({"rope_parameters": {**LONG, "rope_type": "dynamic"}}, 50),
        ({"rope_scaling": {**LONG, "rope_type": "yarn"}}, None),
        ({"rope_scaling": {"rope_type": "dynamic"}, "max_position_embeddings": 60}, 60),
        ({"rope_parameters": {"full": LONG, "sliding": {"rope_type": "default"}}}, 50),
        ({"rope_scaling": None, "rope_parameters": []}, None),
    ],
)
def test_up_to_how_many_tokens_a_sequence_may_be_packed(settings, window):
    assert window_of(Config(**settings)) == window


class Loaded:
    """A loaded model of two layers and a head."""

    def __init__(self, **config):
        self.config = Config(**config)

    def named_parameters(self):
        names = ("layers.0.weight", "layers.1.weight", "head.weight")
        return [(f"model.{name}", None) for name in names]

    def num_parameters(self):
        return 3


def completeness(info, config=None, formats=None):
    whole = {"mismatched_keys": [], "missing_keys": [], "unexpected_keys": [], **info}
    return check_complete(SPEC, Loaded(**config or {}), whole, formats or {}).note


def left_out(*names):
    return {"unexpected_keys": names}


QUANTISED = {"quantization_config": {"quant_method": "x"}}
NOT_QUANTISED = "quantised, and config.json has no quantization_config: "


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"missing_keys": ["b", "a"]}, "weights missing: a and 1 more; .* random"),
        (
            {"mismatched_keys": [("a", 1, 2)]},
            "weights of another shape than the config says: a; .* random",
        ),
        ({"error_msgs": ["no"]}, "the weights cannot be loaded: no; allowed"),
        (
            left_out("model.layers.3.weight", "model.layers.2.weight"),
            "fewer layers .*: model.layers.2.weight and 1 more;",
        ),
        (left_out("model.layers.0.lora_A.weight"), "an adapter that is not merged: m"),
        (left_out("base.ia3_l"), "an adapter that is not merged: base"),
        (left_out("model.layers.1.weight_scale"), NOT_QUANTISED),
        (left_out("layers.1.SCB"), NOT_QUANTISED),
    ],
)
def test_which_weights_a_load_must_have_found(info, said):
    with pytest.raises(ModelError, match=said):
        completeness(info)
    if said is NOT_QUANTISED:
        assert "1 tensors" in completeness(info, QUANTISED)


@pytest.mark.parametrize(
    "names", [["other.w", "pooler.w"], ["layers.2.other"], ["vision.logit_scale"]]
)
def test_weights_without_a_place_are_counted(names):
    words = (
        f"{len(names)} tensors of the weights have no place in Loaded and were left out"
    )
    assert words in completeness(left_out(*names))
    assert f"the first is {names[0]}" in completeness(left_out(*names))


def test_whole_numbers_are_weights_where_the_config_says_how():
    numbers = {"model.layers.0.weight": "I8", "model.layers.0.mask": "U8", "x": "F16"}
    with pytest.raises(ModelError, match=NOT_QUANTISED):
        completeness({}, formats=numbers)
    assert completeness({}, QUANTISED, numbers) == ""
    assert completeness({"error_msgs": []}, formats={"x": "BF16"}) == ""
