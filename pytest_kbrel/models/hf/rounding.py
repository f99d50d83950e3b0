"""Rounding of a loaded model's weights in place, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.model import LoadedCheckpoint
from pytest_kbrel.reference.derive import quantise


@contextmanager
def rounded(parts: LoadedCheckpoint, bits: int) -> Iterator[None]:
    """Round the matrices of a model to so many bits, symmetrically, with a scale for each output channel.

    Embeddings, output layer and vectors stay. An adapter is merged first, as who rounds a model merges it.
    Afterwards all weights are what they were. Raises :class:`ModelError` where they are no plain numbers in
    the memory of a device.
    """
    model = parts.model
    matrices = [*_matrices(model)]
    broken = [of for of, _ in matrices if not of.is_floating_point() or of.is_meta]
    if broken or not matrices:
        found = broken[0].dtype if broken else "no matrix"
        raise ModelError(
            f"{parts.spec.path}: its weights cannot be rounded: found {found}; allowed: weights in float32, "
            "bfloat16 or float16 that are in memory as a whole, or a suite without 'also_as'"
        )
    with torch.no_grad():
        kept = [of.detach().clone() for of, _ in matrices]
        try:
            if parts.spec.peft:
                model.merge_adapter()
            for of, is_turned in matrices:
                matrix = of.float().movedim(-2, -1) if is_turned else of.float()
                rows = matrix.reshape(-1, matrix.shape[-1])
                whole = quantise(rows, bits, rows.shape[-1]).reshape(matrix.shape)
                of.copy_(whole.movedim(-2, -1) if is_turned else whole)
            with torch.enable_grad():
                yield
        finally:
            if parts.spec.peft:
                model.unmerge_adapter()
            for (of, _), before in zip(matrices, kept, strict=True):
                of.copy_(before)


def _matrices(model: Any) -> Iterator[tuple[torch.Tensor, bool]]:
    """Yield the weights to round, and whether their output channels are the columns."""
    outside = {
        id(part.weight)
        for part in (model.get_input_embeddings(), model.get_output_embeddings())
        if part is not None
    }
    for name, part in model.named_modules():
        if isinstance(part, nn.Embedding) or ".lora_" in name:
            continue
        for weight in part.parameters(recurse=False):
            if weight.ndim > 1 and id(weight) not in outside:
                yield weight, isinstance(part, Conv1D)
