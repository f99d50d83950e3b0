from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from pytest_kbrel.errors import ModelError
from pytest_kbrel.reference.derive import GROUP, derive


@pytest.fixture
def model():
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=64,
            hidden_size=64,
            intermediate_size=96,
            num_hidden_layers=2,
            num_attention_heads=2,
            tie_word_embeddings=False,
        )
    )


@pytest.mark.parametrize("name", ["int4", "int3", "pruned"])
def test_only_hidden_matrices_change(model, name):
    before = {path: p.detach().clone() for path, p in model.named_parameters()}
    derive(model, name)
    for path, parameter in model.named_parameters():
        hidden = parameter.ndim == 2 and "embed" not in path and "lm_head" not in path
        assert torch.equal(parameter, before[path]) is not hidden, path


@pytest.mark.parametrize(("name", "levels"), [("int4", 15), ("int3", 7)])
def test_a_group_has_no_more_levels_than_its_bits_give(model, name, levels):
    before = model.model.layers[0].mlp.up_proj.weight.detach().clone()
    derive(model, name)
    after = model.model.layers[0].mlp.up_proj.weight
    for old, new in zip(
        before.reshape(-1, GROUP)[:50], after.reshape(-1, GROUP)[:50], strict=True
    ):
        assert len(new.unique()) <= levels
        step = old.abs().max() / (levels // 2)
        assert (old - new).abs().max() <= step / 2 + 1e-6


def test_pruning_leaves_the_larger_half(model):
    before = model.model.layers[0].mlp.up_proj.weight.detach().clone()
    derive(model, "pruned")
    after = model.model.layers[0].mlp.up_proj.weight
    kept = after != 0
    assert kept.float().mean().item() == pytest.approx(0.5, abs=0.01)
    assert before[kept].abs().min() > before[~kept].abs().max() - 1e-9
    assert torch.equal(after[kept], before[kept])


def test_derived_twice_is_derived_once(model):
    derive(model, "int4")
    once = model.model.layers[1].mlp.down_proj.weight.detach().clone()
    derive(model, "int4")
    assert torch.allclose(model.model.layers[1].mlp.down_proj.weight, once, atol=1e-6)


def test_half_precision_weights_stay_half_precision(model):
    derive(model.half(), "int4")
    assert {p.dtype for p in model.parameters()} == {torch.float16}


def test_an_unknown_name_is_refused(model):
    with pytest.raises(ModelError, match=r"int4, int3, pruned.*did you mean 'pruned'"):
        derive(model, "prune")
