"""Checks of a loaded checkpoint, which raise ModelError, and notes for the reader of its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import bos_setting
from pytest_kbrel.models.hf.devices import is_offloaded
from pytest_kbrel.models.hf.lm_head import vocabulary_of
from pytest_kbrel.models.hf.spec import ModelSpec
from pytest_kbrel.models.tokens import PromptEncoder

_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")


def check_architecture(spec: ModelSpec, config: Any) -> None:
    """Refuse classifiers and masked models: some load as causal ones and write nonsense."""
    named = config.architectures or []
    if any("MaskedLM" in name or name.endswith("Classification") for name in named):
        raise ModelError(
            f"{spec.path}: {named[0]} does not write text; allowed are causal and encoder-decoder models"
        )


def check_kind(spec: ModelSpec, config: Any) -> None:
    """Refuse a checkpoint of another kind than the user says: another class would read other weights."""
    own_kind = "seq2seq" if config.is_encoder_decoder else "causal"
    if spec.kind not in ("", own_kind):
        raise ModelError(
            f"{spec.path}: model-args backend={spec.kind}, but config.json says {own_kind}"
        )


def check_complete(spec: ModelSpec, info: dict[str, Any], used: set[str]) -> None:
    """Refuse weights that are missing, misshapen or left out, by transformers' own report of the load."""
    mismatched = sorted(
        str(entry[0] if isinstance(entry, tuple) else entry)
        for entry in info["mismatched_keys"]
    )
    for what, names in (
        ("of another shape than the config says", mismatched),
        ("missing", sorted(info["missing_keys"])),
    ):
        if names:
            listed = ", ".join(names[:3]) + (
                f" and {len(names) - 3} more" if len(names) > 3 else ""
            )
            raise ModelError(
                f"{spec.path}: weights {what}: {listed}; random numbers would stand in their place, and a "
                "checkpoint must hold every weight of its architecture"
            )
    if info.get("error_msgs"):
        raise ModelError(
            f"{spec.path}: the weights cannot be loaded: {info['error_msgs'][0]}"
        )
    # A head of its own changes no answer; a layer like those in use, but left out, does.
    kinds = {_LAYER.sub("*", name) for name in used}
    if left_out := sorted(
        name for name in info["unexpected_keys"] if _LAYER.sub("*", name) in kinds
    ):
        raise ModelError(
            f"{spec.path}: config.json has fewer layers than the weights: {len(left_out)} tensors would be "
            f"left out, the first is {left_out[0]}"
        )


def check_numbers(spec: ModelSpec, model: Any) -> None:
    """Refuse weights that are not all finite, naming the tensor."""
    for name, tensor in _weights(model):
        if not tensor.is_floating_point() or tensor.numel() == 0:
            continue
        # One pass without a mask of the tensor's size: both ends are NaN as soon as one value is.
        if not all(torch.isfinite(end) for end in torch.aminmax(tensor.detach())):
            raise ModelError(
                f"{spec.path}: the weights hold NaN or infinity in {name}; allowed are finite numbers"
            )


def _weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all weights by their names, those that are offloaded brought back one part at a time."""
    if not (isinstance(model, torch.nn.Module) and is_offloaded(model)):
        yield from model.named_parameters()
        return
    from accelerate.utils import align_module_device

    for name, part in model.named_modules():
        with align_module_device(part):
            yield from part.named_parameters(name, recurse=False)


def check_fit(spec: ModelSpec, model: Any, tokenizer: Any) -> None:
    """Refuse a tokenizer with ids beyond the rows of the embedding that a plain text may get.

    Added special tokens may lie there, but for those that begin and end texts: a text has them only where
    it spells them out, and such a question is an error of its fact.
    """
    rows = vocabulary_of(model)
    added, used = (
        tokenizer.added_tokens_decoder,
        (tokenizer.bos_token_id, tokenizer.eos_token_id),
    )
    beyond = [
        (token, number)
        for token, number in tokenizer.get_vocab().items()
        if number >= rows
        and (number in used or number not in added or not added[number].special)
    ]
    if beyond:
        token, highest = max(beyond, key=lambda item: item[1])
        raise ModelError(
            f"{spec.path}: the tokenizer does not fit: token {token!r} has id {highest}, but the model knows "
            f"the ids 0 to {rows - 1} only; model-args tokenizer=FOLDER names another tokenizer"
        )
    if spec.prefix_token_id is not None and spec.prefix_token_id >= rows:
        raise ModelError(
            f"{spec.path}: prefix_token_id={spec.prefix_token_id}, but the model knows the ids 0 to "
            f"{rows - 1} only"
        )


def bos_note(spec: ModelSpec, folder: Path, encoder: PromptEncoder) -> str:
    """Return a note if a tokenizer does not add BOS as its config says; empty if it does, or BOS was typed.

    ``folder`` is the checkpoint's; a tokenizer of another place has its config there.
    """
    setting = bos_setting(Path(spec.tokenizer) if spec.tokenizer else folder)
    if (
        spec.add_bos_token is not None
        or spec.chat_template
        or encoder.tokenizer.bos_token_id is None
    ):
        return ""
    if setting in (None, encoder.adds_bos):
        return ""
    does = (
        "puts BOS in front of prompts"
        if encoder.adds_bos
        else "puts no BOS in front of prompts"
    )
    return (
        f"warning: tokenizer_config.json says add_bos_token={setting}, and the tokenizer that transformers "
        f"made of it {does}: so they were asked; model-args add_bos_token=True or False says which is meant"
    )


def end_note(eos_ids: Sequence[int], encoder: PromptEncoder) -> str:
    """Return a note if a model does not stop where its chat template ends an answer; empty if it does."""
    end = encoder.template.end if encoder.template is not None else None
    if end is None or end in eos_ids:
        return ""
    return (
        f"warning: the chat template ends an answer with {encoder.tokenizer.convert_ids_to_tokens(end)}, and "
        "this checkpoint does not stop there: what it writes behind it is judged with the answer; "
        "eos_token_id in generation_config.json names the tokens that end a text"
    )


def fast_note(spec: ModelSpec, tokenizer: Any) -> str:
    """Return a note if a tokenizer is a fast one though another was asked for; empty otherwise."""
    if spec.use_fast_tokenizer or not tokenizer.is_fast:
        return ""
    return (
        "model-args: use_fast_tokenizer=False is not used: transformers "
        f"{transformers.__version__} has only a fast tokenizer for this checkpoint"
    )


# What PEFT calls an adapter that was given no name.
_NAME = "default"
_LORA_A = re.compile(r"\.lora_(embedding_)?A\b")
# Shared by all layers, and saved once or not at all.
_SHARED = ("vblora_vector_bank", "prompt_encoder", "tinylora_v", "unilora_theta_d")


def with_adapter(spec: ModelSpec, model: Any) -> Any:
    """Return ``model`` with the adapter that ``spec.peft`` names.

    Raises :class:`ModelError` for an adapter of which the model has no place for some weights, or has places
    that the adapter has no weights for, for one that adds tokens to the prompt, and for a LoRA that was never
    trained; whatever PEFT and safetensors raise is left as it is.
    """
    peft = import_module("peft")
    try:
        adapted = peft.PeftModel.from_pretrained(model, spec.peft, use_safetensors=True)
    except (RuntimeError, KeyError) as error:
        # Of weights of another shape torch tells in lines behind the first.
        raise ModelError(
            f"{spec.path}: the adapter {spec.peft} does not fit: {' '.join(str(error).split())[:400]}; allowed: "
            "an adapter of this checkpoint"
        ) from None
    if adapted.active_peft_config.is_prompt_learning:
        raise ModelError(
            f"{spec.text}: the adapter {spec.peft} puts tokens of its own in front of the prompt, which "
            "moves all places; allowed: adapters that change weights, such as LoRA"
        )
    # PEFT only warns of what is missing, and says nothing of what is left over. Setting the same weights once
    # more, it tells both.
    weights = peft.load_peft_weights(spec.peft, device="cpu", use_safetensors=True)
    result = peft.set_peft_model_state_dict(adapted, weights, adapter_name=_NAME)
    prefix = str(getattr(adapted.base_model, "prefix", ""))
    missing = [
        key for key in result.missing_keys if _NAME in key.split(".") and prefix in key
    ]
    missing = [key for key in missing if not any(name in key for name in _SHARED)]
    for keys, what in (
        (result.unexpected_keys, "weights that the model has no place for"),
        (missing, "no weights for some of the places that its config names"),
    ):
        if keys:
            more = f" and {len(keys) - 1} more" if len(keys) > 1 else ""
            raise ModelError(
                f"{spec.path}: the adapter {spec.peft} does not fit: it has {what}: {sorted(keys)[0]}{more}; "
                "the model would answer without them; allowed: an adapter of this checkpoint"
            )
    # LoRA adds the product of two matrices, of which training begins with the second at zero.
    behind = [weight for name, weight in weights.items() if not _LORA_A.search(name)]
    if prefix == "lora_" and not any(bool(weight.any()) for weight in behind):
        raise ModelError(
            f"{spec.path}: the adapter {spec.peft} changes nothing: all its lora_B are zero, as before training; "
            "allowed: an adapter that was trained, or the checkpoint without it"
        )
    return adapted


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
