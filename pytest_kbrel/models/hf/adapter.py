"""Puts an adapter (PEFT) on a loaded checkpoint, and refuses one that does not fit it as a whole."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.spec import ModelSpec

# What PEFT calls an adapter that was given no name.
_NAME = "default"
# Shared by all layers, and saved once or not at all.
_SHARED = ("vblora_vector_bank", "prompt_encoder", "tinylora_v", "unilora_theta_d")


def with_adapter(spec: ModelSpec, model: Any) -> Any:
    """Return ``model`` with the adapter that ``spec.peft`` names.

    Raises :class:`ModelError` for an adapter of which the model has no place for some weights, or has places
    that the adapter has no weights for, and for one that adds tokens to the prompt; whatever PEFT and
    safetensors raise is left as it is.
    """
    peft = import_module("peft")
    try:
        adapted = peft.PeftModel.from_pretrained(model, spec.peft, use_safetensors=True)
    except (RuntimeError, KeyError) as error:
        # Of weights of another shape torch tells in lines behind the first, of a layer that PEFT was to
        # replace as a whole and has no weights for, PEFT tells the key.
        check_keys(spec, misshapen=re.findall(r"size mismatch for ([^\s:]+)", str(error)))
        check_keys(spec, missing=error.args[:1] if isinstance(error, KeyError) else ())
        raise
    if getattr(getattr(adapted, "active_peft_config", None), "is_prompt_learning", False):
        raise ModelError(
            f"{spec.text}: the adapter {spec.peft} puts tokens of its own in front of the prompt, which "
            "moves all places; allowed: adapters that change weights, such as LoRA"
        )
    # PEFT only warns of what is missing, and says nothing of what is left over. Setting the same weights once
    # more, it tells both.
    weights = peft.load_peft_weights(spec.peft, device="cpu", use_safetensors=True)
    result = peft.set_peft_model_state_dict(adapted, weights, adapter_name=_NAME)
    prefix = str(getattr(adapted.base_model, "prefix", ""))
    missing = [key for key in result.missing_keys if _NAME in key.split(".") and prefix in key]
    check_keys(spec, missing=missing, left_over=result.unexpected_keys)
    return adapted


def check_keys(
    spec: ModelSpec,
    *,
    missing: Sequence[str] = (),
    left_over: Sequence[str] = (),
    misshapen: Sequence[str] = (),
) -> None:
    """Refuse an adapter that does not fit, by the keys that PEFT says are missing, left over or misshapen."""
    missing = [key for key in missing if not any(name in key for name in _SHARED)]
    for keys, what in (
        (misshapen, "weights of another shape than the model's"),
        (left_over, "weights that the model has no place for"),
        (missing, "no weights for some of the places that its config names"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise ModelError(
                f"{spec.path}: the adapter {spec.peft} does not fit: it has {what}: {sorted(keys)[0]}{more}; "
                "the model would answer without them; allowed: an adapter of this checkpoint"
            )


def base_note(spec: ModelSpec, config: Any) -> str:
    """Say that an adapter was made for another base model; empty where it names this one, or none.

    ``config`` is PEFT's, of the adapter. A folder and a hub id are the same where their last parts are.
    """
    base = str(getattr(config, "base_model_name_or_path", None) or "")
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
