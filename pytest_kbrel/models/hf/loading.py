"""Loader of checkpoints: from safetensors, never running their code, with checks of what was loaded."""

from __future__ import annotations

import dataclasses
import io
import logging
import sys
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NoReturn

import torch
import transformers
from transformers.utils import logging as hf_logging
from transformers.utils.hub import cached_file

from pytest_kbrel.errors import KbrelError, ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.checkpoint.files import INDEX, WEIGHTS, tokenizer_files
from pytest_kbrel.models.checkpoint.fingerprint import fingerprint, tensor_digests
from pytest_kbrel.models.checkpoint.integrity import FileRecord, record_files
from pytest_kbrel.models.hf.adapter import check_adapter, with_adapter
from pytest_kbrel.models.hf.checks import (
    Finding,
    check_architecture,
    check_complete,
    check_endings,
    check_fit,
    check_head,
    check_kind,
    check_numbers,
    check_prompts,
    check_weights,
    notes_of,
)
from pytest_kbrel.models.hf.devices import (
    avoid_cudnn_attention,
    check_device,
    check_placement,
    device_map_options,
)
from pytest_kbrel.models.hf.hub_errors import hub_reason
from pytest_kbrel.models.hf.onednn import onednn_is_faster, use_onednn
from pytest_kbrel.models.hf.spec import ModelSpec, NoFolderError, dtype_of
from pytest_kbrel.models.hf.stopping import greedy_settings
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import Fingerprint, record

_TOKENIZER = "the tokenizer"
# To read a tokenizer out of a GGUF file takes seconds.
_OUTLINES: dict[ModelSpec, tuple[FileRecord, tuple[Any, PromptEncoder]]] = {}


@record
class LoadedCheckpoint:
    """A loaded checkpoint.

    ``max_length`` is in tokens, ``None`` where the architecture sets no limit. ``files`` is what it was read
    from. ``notes`` are what a reader of its figures should know, a sentence each.
    """

    spec: ModelSpec
    model: Any
    tokenizer: Any
    encoder: PromptEncoder
    fingerprint: Fingerprint
    files: FileRecord
    max_length: int | None
    notes: tuple[str, ...] = ()


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
        weights, formats = check_weights(spec, folder)
        findings.append(weights)
        findings += check_prompts(spec, folder, encoder)
        # Weights are hashed while they are loaded.
        with ThreadPoolExecutor(1) as thread:
            hashing = thread.submit(tensor_digests, spec, folder)
            model = _load_model(spec, config, device, formats, findings)
        findings.append(check_numbers(spec, model))
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
        )
    files.check()
    findings.append(
        Finding(
            part="digests",
            state=f"weights {described.weights_digest[:12]}, tokenizer {described.tokenizer_digest[:12]}",
        )
    )
    return LoadedCheckpoint(
        spec=spec,
        model=model,
        tokenizer=tokenizer,
        encoder=encoder,
        fingerprint=described,
        files=files,
        max_length=spec.max_length or _max_length(config),
        notes=notes_of(findings),
    )


def load_outline(spec: ModelSpec, *, again: bool = False) -> tuple[Any, PromptEncoder]:
    """Return config and prompt encoder of a checkpoint, without its weights; raises as :func:`load_checkpoint`.

    ``again``: the next call for this checkpoint returns the same ones, unless its files have changed since.
    """
    kept = _OUTLINES.pop(spec, None)
    if kept is not None and kept[0].is_current:
        return kept[1]
    files = record_files(spec) if again else None
    with quiet():
        config = _load_config(spec)
        tokenizer = load_tokenizer(spec)
        try:
            encoder = PromptEncoder(
                tokenizer,
                encoder_decoder=bool(config.is_encoder_decoder),
                chat_template=spec.chat_template,
                add_bos=spec.add_bos_token,
                chat=spec.chat,
                prefix_token_id=spec.prefix_token_id,
            )
        except ModelError as error:
            raise ModelError(f"{spec.path}: {error}") from None
    if files is not None:
        _OUTLINES[spec] = files, (config, encoder)
    return config, encoder


def _load_config(spec: ModelSpec) -> Any:
    config = _from_pretrained(spec, "config", transformers.AutoConfig, **_source(spec))
    check_architecture(spec, config)
    check_kind(spec, config)
    return config


def _source(spec: ModelSpec) -> dict[str, Any]:
    named = {"gguf_file": spec.gguf_file}
    if not spec.is_local:
        named |= {"revision": spec.revision, "subfolder": spec.subfolder}
    given = {key: value for key, value in named.items() if value}
    return {"trust_remote_code": False, "local_files_only": spec.is_local, **given}


def _from_pretrained(
    spec: ModelSpec, what: str, factory: Any, location: str = "", **options: Any
) -> Any:
    try:
        return factory.from_pretrained(location or spec.location, **options)
    except Exception as error:
        _refuse(spec, what, error)


def _refuse(spec: ModelSpec, what: str, error: Exception) -> NoReturn:
    if isinstance(error, KbrelError):
        raise error
    text = str(error)
    if (
        what == _TOKENIZER
        and spec.is_local
        and not (spec.gguf_file or tokenizer_files(Path(spec.location)))
    ):
        raise _no_tokenizer(spec) from None
    if "trust_remote_code" in text:
        reason = "it needs code from the checkpoint, which is never run; allowed is what transformers knows"
    elif "model type" in text and "recognize" in text:
        reason = (
            f"its architecture is unknown to transformers {transformers.__version__}"
        )
    elif of_hub := hub_reason(error, spec.revision):
        reason = of_hub
    elif (
        isinstance(error, OSError)
        and not spec.is_local
        and not Path(spec.path).exists()
    ):
        reason = "no such folder here, and no such checkpoint in the hub's cache or within reach"
    elif type(error).__name__ == "SafetensorError":
        reason = f"the safetensors are corrupt: {text}"
    else:
        reason = describe_error(error)
    if what == _TOKENIZER and spec.gguf_file and not spec.tokenizer:
        reason += "; model-args tokenizer=FOLDER names one that need not be made out of the GGUF file"
    kind = NoFolderError if reason.startswith("no such folder here") else ModelError
    raise kind(f"{spec.path}: {what} cannot be loaded: {reason}") from None


def _no_tokenizer(spec: ModelSpec) -> ModelError:
    return ModelError(
        f"{spec.tokenizer or spec.path}: the tokenizer is missing or empty; tokenizer.json or "
        "tokenizer.model is needed; model-args tokenizer=FOLDER names another place"
    )


def device_of(spec: ModelSpec) -> torch.device:
    """Return the device a checkpoint goes to; :class:`ModelError` where it is not there."""
    if spec.device == "auto":
        has_mps = torch.backends.mps.is_available()
        return torch.device(
            "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
        )
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
        try:
            file = cached_file(
                spec.path,
                name,
                revision=spec.revision or None,
                subfolder=spec.subfolder,
                _raise_exceptions_for_missing_entries=False,
                _raise_exceptions_for_connection_errors=False,
            )
        except Exception as error:
            _refuse(spec, "the weights", error)
        if file:
            return Path(file).parent
    raise ModelError(
        f"{spec.path}: no {' or '.join(names)} on the hub; allowed are safetensors only"
    )


def load_tokenizer(spec: ModelSpec) -> Any:
    """Return the tokenizer of a checkpoint; raises as :func:`load_checkpoint`."""
    options = {"trust_remote_code": False} if spec.tokenizer else _source(spec)
    if not spec.use_fast_tokenizer:
        options["use_fast"] = False
    if spec.fix_mistral_regex is not None:
        options["fix_mistral_regex"] = spec.fix_mistral_regex
    what = f"{_TOKENIZER} {spec.tokenizer}".strip()
    tokenizer = _from_pretrained(
        spec, what, transformers.AutoTokenizer, spec.tokenizer, **options
    )
    try:
        echo = tokenizer.decode(
            tokenizer("a b 1")["input_ids"], skip_special_tokens=True
        )
    except Exception as error:
        _refuse(spec, what, error)
    # Without its files some classes make a tokenizer that knows nothing, and say nothing.
    if not any(character.isalnum() for character in echo):
        raise _no_tokenizer(spec)
    if (
        spec.chat_template
        and spec.tokenizer
        and spec.tokenizer == spec.peft
        and not tokenizer.chat_template
    ):
        base = dataclasses.replace(spec, tokenizer="", peft="")
        tokenizer.chat_template = load_tokenizer(base).chat_template
    return tokenizer


def _load_model(
    spec: ModelSpec,
    config: Any,
    device: torch.device,
    formats: Mapping[str, str],
    findings: list[Finding],
) -> Any:
    kind = "Seq2SeqLM" if config.is_encoder_decoder else "CausalLM"
    options: dict[str, Any] = {
        **_source(spec),
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
    model, info = _from_pretrained(spec, "the model", factory, **options)
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
        try:
            model = with_adapter(spec, model)
        except Exception as error:
            _refuse(spec, f"the adapter {spec.peft}", error)
    if "device_map" not in options:
        model = model.to(device)
    return model.eval()


def _dtype(spec: ModelSpec, config: Any, device: torch.device) -> Any:
    name = dtype_of(
        spec, str(getattr(config, "dtype", "")).removeprefix("torch."), device.type
    )
    return "auto" if name == "auto" else getattr(torch, name)


def _max_length(config: Any) -> int | None:
    limit = getattr(
        config.get_text_config(decoder=True), "max_position_embeddings", None
    )
    return limit if isinstance(limit, int) and limit > 0 else None


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' advice, and the progress bars of all libraries; other lines come at the end."""
    stderr = io.StringIO(newline="")
    verbosity = hf_logging.get_verbosity()
    hf_logging.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stderr(stderr):
            warnings.simplefilter("ignore")
            yield
    finally:
        for line in stderr.getvalue().split("\n"):
            # A bar is written over and over.
            if line and "\r" not in line:
                print(line, file=sys.stderr)
        hf_logging.set_verbosity(verbosity)
