"""Linear layers through oneDNN give PyTorch's own numbers, and step aside where they cannot."""

from __future__ import annotations

import copy
from functools import cache

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from pytest_kbrel.models.checkpoint.spec import parse_spec
from pytest_kbrel.models.hf import loading, onednn
from pytest_kbrel.models.hf.onednn import onednn_is_faster, use_onednn

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(), reason="this PyTorch has no oneDNN"
)


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.inference_mode():
        yield


def layers():
    torch.manual_seed(0)
    with torch.inference_mode(mode=False):
        return nn.Sequential(
            nn.Linear(12, 20), nn.Linear(20, 7, bias=False), Conv1D(9, 7)
        )


@pytest.mark.parametrize("shape", [(1, 12), (5, 12), (2, 3, 12), (0, 12), (12,)])
def test_the_numbers_are_those_of_pytorch_by_the_same_weights(shape):
    plain = layers()
    fast = copy.deepcopy(plain)
    places = {name: one.data_ptr() for name, one in fast.state_dict().items()}
    assert use_onednn(fast) == 3
    given = torch.randn(shape)
    torch.testing.assert_close(fast(given), plain(given), rtol=1e-5, atol=1e-5)
    for name, values in fast.state_dict().items():
        assert values.data_ptr() == places[name]
        assert torch.equal(values, plain.state_dict()[name])


def test_gradients_are_pytorchs_own():
    fast = layers()
    use_onednn(fast)
    with torch.inference_mode(mode=False):
        given = torch.randn(3, 12, requires_grad=True)
        fast(given).sum().backward()
    assert given.grad is not None


@pytest.mark.parametrize("faster", [True, False])
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_checkpoint_that_is_loaded_uses_it_where_it_is_faster(
    kind, faster, checkpoint_of, monkeypatch
):
    monkeypatch.setattr(loading, "onednn_is_faster", lambda: faster)
    model = loading.load_checkpoint(
        parse_spec(str(checkpoint_of(kind)), device="cpu")
    ).model
    kinds = {type(module) for module in model.modules()}
    assert bool(kinds & {onednn._Linear, onednn._Conv1D}) is faster
    assert bool(kinds & {nn.Linear, Conv1D}) is not faster


def missing(*_):
    raise RuntimeError("no such operation")


def slow(*given):
    return [nn.functional.linear(*given) for _ in range(3)].pop()


def wrong(*given):
    return quick(*given) * 1.01


@cache
def quick(*given):
    return nn.functional.linear(*given)


@pytest.mark.parametrize("way", [missing, slow, wrong, quick])
def test_it_is_taken_where_it_is_clearly_faster_and_right(way, monkeypatch):
    monkeypatch.setattr(onednn, "product", way)
    onednn_is_faster.cache_clear()
    try:
        assert onednn_is_faster() is (way is quick)
    finally:
        onednn_is_faster.cache_clear()


def test_few_numbers_of_rows_are_met(monkeypatch):
    """oneDNN makes and keeps code for each number of rows: memory would grow with every new batch."""
    seen = set()
    real = torch.ops.mkldnn._linear_pointwise

    class Noting:
        @staticmethod
        def _linear_pointwise(rows, *others):
            seen.add(len(rows))
            return real(rows, *others)

    monkeypatch.setattr(torch.ops, "mkldnn", Noting)
    weight = torch.randn(3, 4)
    for count in range(1, 2049):
        assert onednn.product(torch.randn(count, 4), weight).shape == (count, 3)
    assert len(seen) <= 31 + 16 * 7
    assert all(
        rounded <= count * 17 / 16
        for count in range(1, 4097)
        if (rounded := onednn._rounded(count))
    )
