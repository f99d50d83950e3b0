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
    if not all(of.is_floating_point() and not of.is_meta for of in matrices):
        raise ModelError(
            f"{parts.spec.path}: its weights cannot be rounded: found some that are quantised or not in memory; "
            "allowed: a whole checkpoint in float32, bfloat16 or float16, or a suite without 'also_as'"
        )
    # Not by its spec: that of a model in training names no adapter, and some adapters cannot be merged.
    merges = hasattr(model, "merge_adapter")
    with torch.no_grad():
        kept = [of.clone() for of in matrices]
        try:
            if merges:
                model.merge_adapter()
            for of in matrices:
                rows = of.float().reshape(-1, of.shape[-1])
                of.copy_(quantise(rows, bits, rows.shape[-1]).reshape(of.shape))
            yield
        finally:
            if merges:
                model.unmerge_adapter()
            for of, before in zip(matrices, kept, strict=True):
                of.copy_(before)


def _matrices(model: Any) -> Iterator[torch.Tensor]:
    """Yield the weights to round, a row an output channel."""
    outside = [*(model.get_output_embeddings() or nn.Identity()).modules()]
    for name, part in model.named_modules():
        if part in outside or isinstance(part, nn.Embedding) or ".lora_" in name:
            continue
        for weight in part.parameters(recurse=False):
            if weight.ndim > 1:
                # GPT-2 keeps its weights the other way round.
                yield weight.data.T if isinstance(part, Conv1D) else weight.data
