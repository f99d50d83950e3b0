"""Linear layers on a CPU through oneDNN, where it is faster: the same float32 products of the same weights.

PyTorch multiplies float32 by MKL, which takes its slower kernels on processors of other makers than its own.
oneDNN, which comes with PyTorch as well, asks the processor what it can do: more than twice the rate on an
AMD EPYC, and a tenth less on an Intel Xeon. So both are tried. Weights are neither copied nor changed, so
workers go on sharing one mapped copy. ``benchmarks/speed.py`` measures both rates.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

# Of the largest product. Two ways of adding up the same float32 products are closer than this.
_TOLERANCE = 1e-4
# By less than that it is not worth another way than PyTorch's own, and may be chance.
_FASTER = 1.3
_TRIED_ROWS, _TRIED_WIDTH, _TRIES = 128, 1024, 4


@cache
def onednn_is_faster() -> bool:
    """Return True if oneDNN gives PyTorch's float32 products, and clearly faster here; tried once."""
    generator = torch.Generator().manual_seed(0)
    given, square = (
        torch.randn(count, _TRIED_WIDTH, generator=generator)
        for count in (_TRIED_ROWS, _TRIED_WIDTH)
    )
    ways: tuple[Callable[..., torch.Tensor], ...] = (nn.functional.linear, product)
    bias = square[0]
    seconds: dict[Callable[..., torch.Tensor], float] = {}
    try:
        with torch.inference_mode():
            # GPT-2 keeps its weights the other way round.
            for weight in (square.t(), square):
                right, ours = (way(given, weight, bias) for way in ways)
                if (ours - right).abs().max() > _TOLERANCE * right.abs().max():
                    return False
            # In turns, the best of each, and without what others had of the processor in between.
            for way in ways * _TRIES:
                started = time.thread_time()
                way(given, square, bias)
                taken = time.thread_time() - started
                seconds[way] = min(taken, seconds.get(way, taken))
    # The operation is PyTorch's own, and not among those it promises to keep; a build may lack oneDNN.
    except Exception:
        return False
    pytorch, onednn = seconds.values()
    return pytorch > _FASTER * onednn


def use_onednn(model: Any) -> int:
    """Let a model's float32 linear layers on a CPU multiply by oneDNN; return how many do now.

    Left as they are: other layers, other types of numbers and other devices. Where gradients are wanted, the
    layers work as before.
    """
    layers = [
        module
        for module in model.modules()
        if type(module) in _CLASSES
        and module.weight.dtype == torch.float32
        and module.weight.device.type == "cpu"
    ]
    for layer in layers:
        layer.__class__ = _CLASSES[type(layer)]
    return len(layers)


def product(
    given: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Return ``given @ weight.T + bias`` by oneDNN, shape (…, rows of ``weight``); float32, on a CPU."""
    rows = given.reshape(-1, given.shape[-1])
    count = len(rows)
    # For each number of rows it meets oneDNN makes code, and keeps it: some numbers stand for all.
    if more := _rounded(count) - count:
        rows = nn.functional.pad(rows, (0, 0, 0, more))
    rows_out: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
        rows, weight, bias, "none", [], ""
    )
    return rows_out[:count].view(*given.shape[:-1], len(weight))


def _rounded(count: int) -> int:
    """Return the next number that has no more than five binary digits in front of its zeros."""
    step = 1 << max(0, count.bit_length() - 5)
    return -(-count // step) * step


def _product(
    given: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> torch.Tensor | None:
    """Return :func:`product`, ``None`` where PyTorch's own product is to be taken."""
    if (
        given.dtype == torch.float32
        and given.numel() > 0
        and not torch.is_grad_enabled()
    ):
        # Short of memory, oneDNN finds no room for its code where PyTorch's own product still has some.
        with contextlib.suppress(RuntimeError):
            return product(given, weight, bias)
    return None


class _Linear(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        output = _product(input, self.weight, self.bias)
        return super().forward(input) if output is None else output


class _Conv1D(Conv1D):  # type: ignore[misc]
    """GPT-2's linear layer, which keeps its weight the other way round."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        output = _product(x, self.weight.t(), self.bias)
        return super().forward(x) if output is None else output


# Only these very classes: one derived from them may do more than multiply.
_CLASSES = {nn.Linear: _Linear, Conv1D: _Conv1D}
