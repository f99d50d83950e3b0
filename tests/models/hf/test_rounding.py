"""Weights that are rounded while requests are answered, and are then what they were."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from transformers.pytorch_utils import Conv1D

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.hf.rounding import rounded
from pytest_kbrel.records import GenerateRequest, ScoreRequest

ASK = GenerateRequest(prompt="Paris is the capital", max_new_tokens=8)


def by_hand(matrix: torch.Tensor, bits: int) -> torch.Tensor:
    """Round each row to so many bits by its largest number."""
    steps = 2 ** (bits - 1) - 1
    scale = matrix.abs().amax(dim=-1, keepdim=True) / steps
    return (matrix / scale).round() * scale


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_matrices_are_rounded_by_output_channel_and_come_back(kind, model_of):
    parts = model_of(kind).parts
    model = parts.model
    before = {name: of.clone() for name, of in model.state_dict().items()}
    with rounded(parts, 4):
        within = {name: of.clone() for name, of in model.state_dict().items()}
    changed = {name for name, of in before.items() if not torch.equal(of, within[name])}
    turned = {
        f"{name}.weight" for name, of in model.named_modules() if isinstance(of, Conv1D)
    }
    for name in changed:
        matrix = before[name].T if name in turned else before[name]
        wanted = by_hand(matrix, 4)
        rows = within[name].T if name in turned else within[name]
        assert torch.allclose(rows, wanted, atol=1e-6)
    # Two layers of attention and of a feed-forward net; embeddings, head and vectors stay.
    assert len(changed) == {"llama": 14, "gpt2": 8}[kind]
    assert not any("emb" in name or "wte" in name or "head" in name for name in changed)
    assert all(torch.equal(of, before[name]) for name, of in model.state_dict().items())


def test_an_answer_is_that_of_a_model_with_rounded_weights(model_of):
    model = model_of("llama")
    other = replace(model.parts, model=copy.deepcopy(model.parts.model))
    with rounded(other, 4):
        (wanted,) = type(model)(other).generate([ASK])
    requests = [replace(ASK, rounding=of) for of in ("", "int4", "int8", "")]
    first, int4, _, last = model.generate(requests)
    assert int4 == wanted
    assert int4.token_ids != first.token_ids
    assert last == first == model.generate([ASK])[0]

    score = ScoreRequest(prompt=ASK.prompt, continuation=" of France")
    with rounded(other, 4):
        (wanted,) = type(model)(other).score([score])
    requests = [replace(score, rounding=of) for of in ("", "int4")]
    first, int4 = model.score(requests)
    assert int4.probabilities == pytest.approx(wanted.probabilities, rel=1e-3)
    assert int4.probabilities != pytest.approx(first.probabilities, rel=1e-2)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing")
def test_an_adapter_in_training_is_merged_before_weights_are_rounded(model_of):
    peft = pytest.importorskip("peft")
    parts = model_of("llama").parts
    config = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    model = peft.get_peft_model(copy.deepcopy(parts.model), config)
    (layer,) = (
        of for name, of in model.named_modules() if name.endswith("1.self_attn.q_proj")
    )
    before = layer.base_layer.weight.clone()
    merged = before + layer.get_delta_weight("default")
    with rounded(replace(parts, model=model), 4):
        assert torch.allclose(layer.base_layer.weight, by_hand(merged, 4), atol=1e-6)
    assert torch.equal(layer.base_layer.weight, before)


def test_weights_that_are_no_plain_numbers_are_refused(model_of):
    parts = model_of("llama").parts
    other = replace(parts, model=copy.deepcopy(parts.model))
    other.model.to("meta")
    with pytest.raises(ModelError, match=r"cannot be rounded.*allowed: a whole"):
        rounded(other, 4).__enter__()
