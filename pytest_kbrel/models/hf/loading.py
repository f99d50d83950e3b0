"""Loader of checkpoints and of adapters on them: never running their code, with checks of what was loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import PreTrainedModel
from transformers.utils.hub import cached_file

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.checkpoint.checks import (
    Finding,
    check_endings,
    check_fit,
    check_numbers,
    check_prompts,
    check_weights,
    notes_of,
)
from pytest_kbrel.models.checkpoint.endings import greedy_settings, vocabulary_of
from pytest_kbrel.models.checkpoint.files import INDEX, WEIGHTS, record_files
from pytest_kbrel.models.checkpoint.fingerprint import (
    fingerprint,
    load_outline,
    source_options,
    tensor_digests,
)
from pytest_kbrel.models.checkpoint.model import LoadedCheckpoint
from pytest_kbrel.models.checkpoint.spec import ModelSpec, dtype_of
from pytest_kbrel.models.hf.devices import (
    avoid_cudnn_attention,
    check_device,
    check_placement,
    describe_devices,
    device_map_options,
    is_offloaded,
)
from pytest_kbrel.models.hf.onednn import onednn_is_faster, use_onednn
from pytest_kbrel.models.pretrained import loading, quiet
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


_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")
# Of an adapter that was not merged, and of quantised weights.
_ADAPTER = re.compile(r"(^|[._])(lora|ia3|hada|lokr|oft|boft|vera)_")
_SCALE = re.compile(r"[.](SCB|(\w+_)?scales?(_\w+)?|absmax|zero_point)$")


def load_checkpoint(
    spec: ModelSpec, findings: list[Finding] | None = None
) -> LoadedCheckpoint:
    """Load config, tokenizer and weights, check them, derive, and take the fingerprint.

    What is found is appended to ``findings``, up to the first error. Raises :class:`ModelError` naming the
    checkpoint, what was found and what is allowed.
    """
    findings = [] if findings is None else findings
    findings += [
        Finding(part="options", state=spec.text, note=note) for note in spec.notes
    ]
    device = device_of(spec)
    files = record_files(spec)
    config, encoder = load_outline(spec)
    tokenizer = encoder.tokenizer
    with quiet():
        folder = _folder(spec)
        finding, formats = check_weights(spec, folder)
        findings.append(finding)
        findings += check_prompts(spec, folder, encoder)
        # Weights are hashed while they are loaded.
        with ThreadPoolExecutor(1) as thread:
            hashing = thread.submit(tensor_digests, spec, folder)
            model = _load_model(spec, config, device, formats, findings)
        findings.append(check_numbers(spec, _weights(model)))
        findings.append(check_fit(spec, model, tokenizer))
        own = model.generation_config
        bare = model.get_base_model() if spec.peft else model
        bare.generation_config = model.generation_config = greedy_settings(
            model, tokenizer
        )
        if spec.peft:
            findings.append(check_adapter(spec, model, encoder))
        findings.append(check_endings(model.generation_config, own, encoder))
        if spec.derived:
            from pytest_kbrel.reference.derive import derive

            derive(model, spec.derived)
        avoid_cudnn_attention(model)
        if onednn_is_faster():
            use_onednn(model)
        described = fingerprint(
            spec,
            folder,
            model,
            tokenizer,
            adds_bos=encoder.adds_bos,
            digests=hashing.result(),
            device=describe_devices(model),
        )
    files.check()
    weights, words = described.weights_digest, described.tokenizer_digest
    state = f"weights {weights[:12]}, tokenizer {words[:12]}"
    findings.append(Finding(part="digests", state=state))
    return LoadedCheckpoint(
        spec=spec,
        model=model,
        tokenizer=tokenizer,
        encoder=encoder,
        fingerprint=described,
        files=files,
        max_length=spec.max_length or max_length_of(config),
        notes=notes_of(findings),
    )


def device_of(spec: ModelSpec) -> torch.device:
    """Return the device a checkpoint goes to; :class:`ModelError` where it is not there."""
    if spec.device == "auto":
        there = {"cuda": torch.cuda, "mps": torch.backends.mps}
        kinds = (kind for kind, module in there.items() if module.is_available())
        return torch.device(next(kinds, "cpu"))
    check_device(spec.device)
    try:
        torch.empty(0, device=spec.device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"device {spec.device!r} is not available: {describe_error(error)}"
        ) from None
    return torch.device(spec.device)


def _folder(spec: ModelSpec) -> Path:
    """Return the folder that holds the weights; for hub ids the snapshot in the cache."""
    if spec.is_local:
        return Path(spec.location)
    names = [spec.gguf_file] if spec.gguf_file else [WEIGHTS, INDEX]
    for name in names:
        with loading("the weights", spec.path, spec.revision):
            file = cached_file(
                spec.path,
                name,
                revision=spec.revision or None,
                subfolder=spec.subfolder,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )
        if file:
            return Path(file).parent
    raise ModelError(
        f"{spec.path}: no {' or '.join(names)} on the hub; allowed are safetensors only"
    )


def _load_model(
    spec: ModelSpec,
    config: Any,
    device: torch.device,
    formats: Mapping[str, str],
    findings: list[Finding],
) -> PreTrainedModel:
    kind = "Seq2SeqLM" if config.is_encoder_decoder else "CausalLM"
    options: dict[str, Any] = {
        **source_options(spec),
        "config": config,
        "dtype": _dtype(spec, config, device),
        "use_safetensors": True,
        "output_loading_info": True,
        "ignore_mismatched_sizes": True,
    }
    if spec.attn_implementation:
        options["attn_implementation"] = spec.attn_implementation
    if spec.load_in_4bit or spec.load_in_8bit:
        options["device_map"] = {"": device}
        bnb_4bit: dict[str, Any] = {
            f"bnb_4bit_{name}": value for name, value in spec.bnb_4bit
        }
        options["quantization_config"] = transformers.BitsAndBytesConfig(
            load_in_4bit=spec.load_in_4bit, load_in_8bit=spec.load_in_8bit, **bnb_4bit
        )
    if spec.placement is not None:
        options |= device_map_options(spec.placement)
    factory = getattr(transformers, f"AutoModelFor{kind}")
    with loading("the model", spec.path, spec.revision):
        model, info = factory.from_pretrained(spec.location, **options)
    findings.append(check_complete(spec, model, info, formats))
    findings.append(check_head(model, formats))
    check_placement(spec, model)
    # transformers puts it on unasked where PEFT is installed.
    if getattr(model, "_hf_peft_config_loaded", False):
        raise ModelError(
            f"{spec.path}: an adapter (adapter_config.json) lies beside the checkpoint and would change its "
            "answers unnamed; allowed: the adapter in a folder of its own, named by model-args peft=FOLDER "
            "where it is meant"
        )
    if spec.peft:
        with loading(f"the adapter {spec.peft}", spec.path, spec.revision):
            model = with_adapter(spec, model)
    if "device_map" not in options:
        model = model.to(device)
    return model.eval()


def _dtype(spec: ModelSpec, config: Any, device: torch.device) -> Any:
    name = dtype_of(
        spec, str(getattr(config, "dtype", "")).removeprefix("torch."), device.type
    )
    return "auto" if name == "auto" else getattr(torch, name)


def max_length_of(config: Any) -> int | None:
    """Return how many tokens an architecture takes, ``None`` where it sets no limit."""
    limit = getattr(
        config.get_text_config(decoder=True), "max_position_embeddings", None
    )
    return limit if isinstance(limit, int) and limit > 0 else None


def _weights(model: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield all weights by their names, those that are offloaded brought back one part at a time."""
    if not (isinstance(model, torch.nn.Module) and is_offloaded(model)):
        yield from model.named_parameters()
        return
    from accelerate.utils import align_module_device

    for name, part in model.named_modules():
        with align_module_device(part):
            yield from part.named_parameters(name, recurse=False)


def check_complete(
    spec: ModelSpec, model: Any, info: dict[str, Any], formats: Mapping[str, str]
) -> Finding:
    """Refuse weights that are missing, misshapen or left out, by transformers' own report of the load.

    ``formats`` are those of the tensors in the files. What has no place in the architecture and no part in it,
    such as a second head, is left out with a note.
    """
    used = {name for name, _ in model.named_parameters()}
    kinds = {_LAYER.sub("*", name) for name in used}
    left_out = sorted(info["unexpected_keys"])
    misread = [
        *_scales(left_out, used),
        *(n for n, kind in formats.items() if n.endswith("weight") and kind[0] in "IU"),
    ]
    if getattr(model.config, "quantization_config", None):
        misread = []
    whole = "a checkpoint with every weight of its architecture; random numbers would stand in their place"
    for names, what, allowed in (
        (
            # Some versions tell the shapes beside the name.
            [e[0] if isinstance(e, tuple) else e for e in info["mismatched_keys"]],
            "weights of another shape than the config says",
            whole,
        ),
        (info["missing_keys"], "weights missing", whole),
        (
            info.get("error_msgs"),
            "the weights cannot be loaded",
            "weights of this architecture",
        ),
        (
            [name for name in left_out if _LAYER.sub("*", name) in kinds],
            "config.json has fewer layers than the weights",
            "a config.json of these weights",
        ),
        (
            [name for name in left_out if _ADAPTER.search(name)],
            "the weights hold an adapter that is not merged",
            "the adapter in a folder of its own (peft=FOLDER), or merged (merge_and_unload)",
        ),
        (
            misread,
            "the weights are quantised, and config.json has no quantization_config",
            "a config.json that says how, or weights that are not quantised",
        ),
    ):
        if names:
            first, *others = sorted(names)
            more = f" and {len(others)} more" if others else ""
            raise ModelError(f"{spec.path}: {what}: {first}{more}; allowed: {allowed}")
    note = (
        f"warning: {len(left_out)} tensors of the weights have no place in {type(model).__name__} and were left "
        f"out, the first is {left_out[0]}"
        if left_out
        else ""
    )
    state = f"{type(model).__name__}, {model.num_parameters():,} parameters, all of them in the weights"
    return Finding(part="architecture", state=state, note=note)


def _scales(left_out: Iterable[str], used: Iterable[str]) -> Iterator[str]:
    """Yield those of ``left_out`` that scale one of the weights in use; other parts may be scaled too."""
    scaled = {tuple(name.split(".")[-3:-1]) for name in used}
    for name in left_out:
        if _SCALE.search(name) and tuple(name.split(".")[-3:-1]) in scaled:
            yield name


def check_head(model: Any, formats: Mapping[str, str]) -> Finding:
    """Return whether the head is the embedding, with a note where config.json says so and the weights do not.

    ``formats`` are those of the tensors in the files.
    """
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    is_tied = head is not None and head.weight is embedding.weight
    config = model.config.get_text_config(decoder=True)
    names = {f"{name}.weight" for name, part in model.named_modules() if part is head}
    is_another = not is_tied and bool(names & formats.keys())
    note = (
        "warning: config.json ties the head to the embedding, and the weights hold another one, which was "
        "loaded; other programs and versions take the embedding"
        if is_another and getattr(config, "tie_word_embeddings", False)
        else ""
    )
    state = "the embedding" if is_tied else "its own"
    return Finding(part="head", state=state, note=note)
