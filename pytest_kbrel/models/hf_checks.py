"""What must hold before a loaded checkpoint is believed. Each check raises ModelError or does nothing."""

from __future__ import annotations

import re
from typing import Any

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.spec import ModelSpec

_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")


def check_architecture(spec: ModelSpec, config: Any) -> None:
    """Refuse classifiers and masked models: some load as causal ones and write nonsense."""
    named = list(getattr(config, "architectures", None) or [])
    if any("MaskedLM" in name or name.endswith("Classification") for name in named):
        raise ModelError(
            f"{spec.path}: {named[0]} does not write text; allowed are causal and encoder-decoder models"
        )


def check_complete(spec: ModelSpec, info: dict[str, Any], used: set[str]) -> None:
    """Refuse weights that are missing, misshapen or left out, by transformers' own report of the load."""
    mismatched = sorted(
        str(entry[0] if isinstance(entry, tuple) else entry) for entry in info["mismatched_keys"]
    )
    for what, names in (
        ("of another shape than the config says", mismatched),
        ("missing", sorted(info["missing_keys"])),
    ):
        if names:
            listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            raise ModelError(
                f"{spec.path}: weights {what}: {listed}; random numbers would stand in their place, and a "
                "checkpoint must hold every weight of its architecture"
            )
    if info.get("error_msgs"):
        raise ModelError(f"{spec.path}: the weights cannot be loaded: {info['error_msgs'][0]}")
    # A head of its own changes no answer; a layer like those in use, but left out, does.
    kinds = {_LAYER.sub("*", name) for name in used}
    if left_out := sorted(name for name in info["unexpected_keys"] if _LAYER.sub("*", name) in kinds):
        raise ModelError(
            f"{spec.path}: config.json has fewer layers than the weights: {len(left_out)} tensors would be "
            f"left out, the first is {left_out[0]}"
        )


def check_numbers(spec: ModelSpec, model: Any) -> None:
    """Refuse weights that are not all finite, naming the tensor."""
    for name, tensor in model.named_parameters():
        if not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        # One pass without a mask of the tensor's size: both ends are NaN as soon as one value is.
        if not all(torch.isfinite(end) for end in torch.aminmax(tensor.detach())):
            raise ModelError(
                f"{spec.path}: the weights hold NaN or infinity in {name}; allowed are finite numbers"
            )


def check_fit(spec: ModelSpec, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer with ids beyond the rows of the embedding."""
    rows = model.get_input_embeddings().weight.shape[0]
    token, highest = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    if highest >= rows:
        raise ModelError(
            f"{spec.path}: the tokenizer does not fit: token {token!r} has id {highest}, but the model knows "
            f"the ids 0 to {rows - 1} only"
        )
