"""What is decided about a checkpoint from its config and some numbers: tables, and the values beside them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.hf.checks import (
    check_complete,
)
from pytest_kbrel.models.hf.sharing import (
    window_of,
)
from pytest_kbrel.models.hf.spec import ModelSpec

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
