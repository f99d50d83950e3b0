"""Candidates that are made from the base checkpoint after loading: quantised and pruned ones."""

from __future__ import annotations

import torch

from pytest_kbrel.errors import ModelError, nearest

GROUP = 32
_BITS = {"int4": 4, "int3": 3}
_NAMES = (*_BITS, "pruned")


def derive(model: torch.nn.Module, name: str) -> None:
    """Change the hidden matrices of ``model`` in place; embeddings, output layer and norms stay.

    ``int4`` and ``int3`` round to nearest, symmetrically, in groups of 32 inputs; ``pruned`` sets the half of
    each matrix with the smallest magnitudes to zero. Raises ``ModelError`` for any other name.
    """
    if name not in _NAMES:
        raise ModelError(
            f"no derivation {name!r}; there are {', '.join(_NAMES)}{nearest(name, _NAMES)}"
        )
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embed" not in path and "lm_head" not in path:
                matrix = parameter.float()
                changed = (
                    prune(matrix) if name == "pruned" else quantise(matrix, _BITS[name])
                )
                parameter.copy_(changed)


def quantise(matrix: torch.Tensor, bits: int, group: int = GROUP) -> torch.Tensor:
    """Return ``matrix`` as ``bits``-bit integers would represent it, one scale for each group of a row."""
    rows, columns = matrix.shape
    size = group if columns % group == 0 else columns
    groups = matrix.reshape(rows, columns // size, size)
    top = 2 ** (bits - 1) - 1
    scale = groups.abs().amax(dim=-1, keepdim=True) / top
    scale = torch.where(scale == 0, torch.ones_like(scale), scale)
    return ((groups / scale).round().clamp(-top, top) * scale).reshape(rows, columns)


def prune(matrix: torch.Tensor) -> torch.Tensor:
    """Return ``matrix`` with the half of its entries that are smallest in magnitude set to zero."""
    threshold = matrix.abs().flatten().kthvalue(matrix.numel() // 2).values
    return torch.where(matrix.abs() <= threshold, torch.zeros_like(matrix), matrix)
