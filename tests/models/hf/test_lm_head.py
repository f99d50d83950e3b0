"""The output layer sees only the places that are needed, in pieces where its logits are the last word."""

from __future__ import annotations

import pytest
import torch

from pytest_kbrel.models.hf import lm_head
from pytest_kbrel.models.hf.lm_head import head_is_last, logits_at, probabilities_at
from tests.models.tiny_checkpoints import CAUSAL

CELLS = [(1, 3), (0, 2), (1, 0), (0, 2), (1, 3)]
WANTED = list(zip(CELLS, (20, 30, 40, 50, 60), strict=True))
TOKENS = torch.tensor([[5, 6, 7, 8], [9, 10, 11, 12]])


@pytest.fixture
def llama(model_of):
    return model_of("llama").parts.model


@pytest.mark.parametrize("kind", CAUSAL)
def test_probabilities_are_those_of_all_logits(kind, model_of):
    model = model_of(kind).parts.model
    with torch.inference_mode():
        everything = model(input_ids=TOKENS).logits.float().softmax(-1)
    result = probabilities_at(model, WANTED, {"input_ids": TOKENS})
    expected = [float(everything[*cell, token]) for cell, token in WANTED]
    assert result == pytest.approx(expected, rel=1e-4)


def test_the_pieces_add_up(llama, monkeypatch):
    whole = probabilities_at(llama, WANTED, {"input_ids": TOKENS})
    sizes = []
    handle = llama.get_output_embeddings().register_forward_hook(
        lambda _module, _given, result: sizes.append(result.shape[-2])
    )
    monkeypatch.setattr(lm_head, "_rows_at_once", lambda _head, _hidden: 2)
    try:
        pieces = probabilities_at(llama, WANTED, {"input_ids": TOKENS})
    finally:
        handle.remove()
    # None for the model itself, which is asked for its hidden states alone.
    assert sizes == [0, 2, 1]
    assert pieces == pytest.approx(whole, rel=1e-5)


def test_nothing_stays_hooked_when_the_model_fails(llama):
    with pytest.raises(ValueError, match="input_ids"):
        logits_at(llama, CELLS, {"no_such_input": TOKENS})
    assert not llama.get_output_embeddings()._forward_pre_hooks


def test_a_model_without_an_output_layer_of_its_own(llama, monkeypatch):
    expected = probabilities_at(llama, WANTED, {"input_ids": TOKENS})
    monkeypatch.setattr(type(llama), "get_output_embeddings", lambda _self: None)
    monkeypatch.setattr(lm_head, "_last", {})
    assert not head_is_last(llama)
    result = probabilities_at(llama, WANTED, {"input_ids": TOKENS})
    assert result == pytest.approx(expected, rel=1e-4)
