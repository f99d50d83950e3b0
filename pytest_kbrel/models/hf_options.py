"""Options that change how a checkpoint computes, and not what: each is tried on it before it is used.

``compile=True`` is lighteval's word for ``torch.compile``, ``attn_implementation`` is transformers' own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.hf_ladder import agree, sample_pairs
from pytest_kbrel.models.hf_scoring import Probabilities, score_batch
from pytest_kbrel.models.hf_tokens import Pair
from pytest_kbrel.models.spec import FLEX, ModelSpec


def check_device(spec: ModelSpec, device: torch.device) -> None:
    """Refuse what is known to break a process instead of failing: nothing inside it could try that."""
    if spec.attn_implementation == FLEX and device.type == "cpu":
        # https://github.com/pytorch/pytorch/issues/153145, seen with torch 2.13 and masks of packed rows.
        raise ModelError(
            f"{spec.text}: attn_implementation={FLEX}: on a CPU PyTorch's kernel for it writes beyond its "
            "memory; allowed there: sdpa, eager"
        )


def apply_options(spec: ModelSpec, model: Any, longest: int | None) -> None:
    """Compile the model where that is asked for, and try on it what it was loaded with.

    ``longest`` is the number of tokens the model takes. Raises :class:`ModelError` where an option does not
    work here, or gives other numbers.
    """
    if not (spec.compile or spec.attn_implementation == FLEX):
        return
    pairs, _ = sample_pairs(model, longest)
    if spec.attn_implementation == FLEX:
        found = _scored(spec, model, f"attn_implementation={FLEX}", pairs)
        model.set_attn_implementation("eager")
        right = _scored(spec, model, "attn_implementation=eager", pairs)
        model.set_attn_implementation(FLEX)
        _hold(spec, model, f"attn_implementation={FLEX}", right, found)
    if spec.compile:
        right = _scored(spec, model, "compile=False", pairs)
        for part in _parts(spec, model):
            part.compile(dynamic=True)
        _hold(spec, model, "compile=True", right, _scored(spec, model, "compile=True", pairs))


def _parts(spec: ModelSpec, model: Any) -> Sequence[Any]:
    """Return what is compiled: all but the head, which sees other positions in every batch."""
    bare = model.get_base_model() if spec.peft else model
    if bare.config.is_encoder_decoder:
        return [bare.get_encoder(), bare.get_decoder()]
    if bare.base_model is bare:
        raise ModelError(
            f"{spec.text}: compile=True: {type(bare).__name__} has no part without its head; allowed is "
            "compile=False"
        )
    return [bare.base_model]


def _scored(spec: ModelSpec, model: Any, option: str, pairs: Sequence[Pair]) -> list[Probabilities]:
    try:
        return score_batch(model, pairs, int(model.generation_config.pad_token_id))
    except Exception as error:
        compiler = "a C++ compiler" if model.device.type == "cpu" else "Triton"
        raise ModelError(
            f"{spec.text}: {option} does not work here: {describe_error(error)}; PyTorch compiles with "
            f"{compiler}; allowed: without this option"
        ) from None


def _hold(
    spec: ModelSpec, model: Any, option: str, right: list[Probabilities], found: list[Probabilities]
) -> None:
    if not agree(model, right, found):
        raise ModelError(
            f"{spec.text}: {option} gives other numbers than PyTorch without it; allowed: without this option"
        )
