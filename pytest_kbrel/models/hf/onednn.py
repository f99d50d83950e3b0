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
    """Return True if oneDNN multiplies float32 clearly faster here than PyTorch's own way; tried once."""
    if not _is_right():
        return False
    given, weight = (
        torch.ones(_TRIED_ROWS, _TRIED_WIDTH),
        torch.ones(_TRIED_WIDTH, _TRIED_WIDTH),
    )
    ways: tuple[Callable[..., torch.Tensor], ...] = (nn.functional.linear, product)
    seconds: list[list[float]] = [[], []]
    with torch.inference_mode():
        for way in ways:
            way(given, weight)
        # In turns, the best of each, and without what others had of the processor in between.
        for _ in range(_TRIES):
            for way, times in zip(ways, seconds, strict=True):
                started = time.thread_time()
                way(given, weight)
                times.append(time.thread_time() - started)
    pytorch, onednn = map(min, seconds)
    return pytorch > _FASTER * onednn


def use_onednn(model: Any) -> int:
    """Let a model's float32 linear layers on a CPU multiply by oneDNN; return how many do now.

    Left as they are: other layers, other types of numbers, other devices, and everything where oneDNN is
    missing or does not give the numbers of :func:`torch.nn.functional.linear`. Where gradients are wanted,
    the layers work as before.
    """
    if not _is_right():
        return 0
    count = 0
    for module in model.modules():
        new = _CLASSES.get(type(module))
        if (
            new is not None
            and module.weight.dtype == torch.float32
            and module.weight.device.type == "cpu"
        ):
            module.__class__ = new
            count += 1
    return count


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


def _is_right() -> bool:
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    generator = torch.Generator().manual_seed(0)
    given = torch.randn(2, 3, 8, generator=generator)
    weight, bias = (
        torch.randn(5, 8, generator=generator),
        torch.randn(5, generator=generator),
    )
    try:
        with torch.inference_mode():
            products = [
                product(given, w, bias) for w in (weight, weight.t().contiguous().t())
            ]
    # The operation is PyTorch's own, and not among those it promises to keep.
    except Exception:
        return False
    right = nn.functional.linear(given, weight, bias)
    return all(
        one.shape == right.shape
        and bool((one - right).abs().max() <= _TOLERANCE * right.abs().max())
        for one in products
    )


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
_CLASSES: dict[type, type[nn.Module]] = {nn.Linear: _Linear, Conv1D: _Conv1D}
