"""Adapters of PEFT: put on a checkpoint, checked whole and at work."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from transformers.utils.hub import cached_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.checks import Finding
from pytest_kbrel.models.checkpoint.endings import vocabulary_of
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import GenerateRequest

# What PEFT calls an adapter that was given no name.
_NAME = "default"
_SAMPLES = ("The capital of Peru is", "Question: Who wrote Hamlet?\nAnswer:")
# Of float32, as a share of the largest logit.
_ROUNDING = 2e-6
# Shared by all layers, and saved once or not at all.
_SHARED = ("vblora_vector_bank", "prompt_encoder", "tinylora_v", "unilora_theta_d")


def with_adapter(spec: ModelSpec, model: Any) -> Any:
    """Return ``model`` with the adapter that ``spec.peft`` names.

    Raises :class:`ModelError` for an adapter of which the model has no place for some weights, or has places
    that the adapter has no weights for, and for one that adds tokens to the prompt or waits for some; whatever
    PEFT and safetensors raise is left as it is.
    """
    peft = import_module("peft")
    weights = peft.load_peft_weights(spec.peft, device="cpu", use_safetensors=True)
    _resize(model, weights)
    try:
        adapted = peft.PeftModel.from_pretrained(model, spec.peft, use_safetensors=True)
    except (RuntimeError, LookupError) as error:
        # Of weights of another shape torch tells in lines behind the first.
        raise ModelError(
            f"{spec.path}: the adapter {spec.peft} does not fit: {' '.join(str(error).split())[:400]}; allowed: "
            "an adapter of this checkpoint"
        ) from None
    config, named = adapted.active_peft_config, f"{spec.text}: the adapter {spec.peft}"
    if config.is_prompt_learning:
        raise ModelError(
            f"{named} puts tokens of its own in front of the prompt, which "
            "moves all places; allowed: adapters that change weights, such as LoRA"
        )
    if getattr(config, "alora_invocation_tokens", None):
        raise ModelError(
            f"{named} is an activated LoRA, which works behind its invocation tokens "
            "only, and prompts are computed together here; allowed: adapters that change weights for all tokens"
        )
    # PEFT only warns of what is missing, and says nothing of what is left over. Setting the same weights once
    # more, it tells both.
    result = peft.set_peft_model_state_dict(adapted, weights, adapter_name=_NAME)
    prefix = str(getattr(adapted.base_model, "prefix", ""))
    missing = [
        key
        for key in result.missing_keys
        if _NAME in key.split(".") and prefix in key
        if not any(name in key for name in _SHARED)
    ]
    # With an embedding that grew PEFT saves what it trained a second time.
    twins = {
        key: key.replace(".modules_to_save.", ".") for key in result.unexpected_keys
    }
    unexpected = [
        key
        for key, twin in twins.items()
        if twin == key
        or not {key, twin} <= weights.keys()
        or not torch.equal(weights[key], weights[twin])
    ]
    for keys, what in (
        (unexpected, "weights that the model has no place for"),
        (missing, "no weights for some of the places that its config names"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise ModelError(
                f"{spec.path}: the adapter {spec.peft} does not fit: it has {what}: {min(keys)}{more}; "
                "the model would answer without them; allowed: an adapter of this checkpoint"
            )
    return adapted


def _resize(model: Any, weights: dict[str, torch.Tensor]) -> None:
    """Give an embedding as many rows as an adapter's that adds tokens."""
    embedding = model.get_input_embeddings()
    name = next(name for name, part in model.named_modules() if part is embedding)
    names = (f"{name}.weight", f"{name}.base_layer.weight")
    rows = [len(w) for key, w in weights.items() if key.endswith(names)]
    if rows and rows[0] > vocabulary_of(model):
        model.resize_token_embeddings(rows[0], mean_resizing=False)


def check_adapter(spec: ModelSpec, model: Any, encoder: PromptEncoder) -> Finding:
    """Refuse an adapter that changes no logit of two prompts; return what it is."""
    config, more = model.active_peft_config, {}
    if model.config.is_encoder_decoder:
        start = model.generation_config.decoder_start_token_id or 0
        more = {"decoder_input_ids": torch.tensor([[start]], device=model.device)}
    changes = []
    for text in _SAMPLES:
        prompt = encoder.text(GenerateRequest(prompt=text, max_new_tokens=1))
        ids = torch.tensor([encoder.encoded(prompt)], device=model.device)
        with torch.inference_mode():
            with model.disable_adapter():
                before = model(input_ids=ids, **more).logits
            after = model(input_ids=ids, **more).logits
        # An identity that is multiplied out is one but for rounding.
        change = float((after - before).abs().max())
        changes.append(change if change > _ROUNDING * before.abs().max() else 0.0)
    if not any(changes):
        raise ModelError(
            f"{spec.path}: the adapter {spec.peft} changes nothing: all logits of {len(changes)} prompts are those "
            "without it, as before training or with a factor of 0; allowed: an adapter that was trained, or the "
            "checkpoint without it"
        )
    state = f"{config.peft_type.value} {spec.peft}, logits change by up to {max(changes):.3g}"
    note = base_note(spec, config)
    if not (spec.tokenizer or Path(spec.peft).is_dir()) and cached_file(
        spec.peft,
        "tokenizer_config.json",
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    ):
        note = (
            f"warning: {spec.peft} has a tokenizer of its own, and the base model's is used; model-args "
            f"tokenizer={spec.peft} uses it"
        )
    return Finding(part="adapter", state=state, note=note)


def base_note(spec: ModelSpec, config: Any) -> str:
    """Return a note if an adapter was made for another base model; empty if it names this one, or none.

    ``config`` is PEFT's, of the adapter. A folder and a hub id are the same where their last parts are.
    """
    base = str(config.base_model_name_or_path or "")
    if not base or _last(base) == _last(spec.path):
        return ""
    here = Path(base).expanduser()
    if here.exists() and spec.is_local and here.samefile(spec.location):
        return ""
    return (
        f"warning: the adapter {spec.peft} names another base model, {base}, and was put on {spec.path}: "
        "its weights fit, and nothing tells whether they were trained on it"
    )


def _last(path: str) -> str:
    return path.rstrip("/\\").replace("\\", "/").rpartition("/")[2].lower()
