"""Outline of a checkpoint without its weights, and the fingerprint of a loaded one.

The latter goes by content: never by a path or a name.
"""

from __future__ import annotations

import dataclasses
from importlib.metadata import version
from pathlib import Path
from typing import Any

import transformers

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.checks import check_architecture, check_kind
from pytest_kbrel.models.checkpoint.files import (
    ADAPTER_FILES,
    ADAPTER_WEIGHTS,
    FileRecord,
    digest_of_files,
    digest_of_tensors,
    read_config,
    record_files,
    tokenizer_files,
    tokenizer_settings,
    weight_files,
)
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.pretrained import loading, quiet
from pytest_kbrel.models.tokens import PromptEncoder
from pytest_kbrel.records import Fingerprint

# To read a tokenizer out of a GGUF file takes seconds.
_OUTLINES: dict[ModelSpec, tuple[FileRecord, tuple[Any, PromptEncoder]]] = {}


def load_outline(spec: ModelSpec, *, again: bool = False) -> tuple[Any, PromptEncoder]:
    """Return config and prompt encoder of a checkpoint, without its weights; raises :class:`ModelError`.

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
    with loading("config", spec.path, spec.revision):
        config = transformers.AutoConfig.from_pretrained(
            spec.location, **source_options(spec)
        )
    check_architecture(spec, config)
    check_kind(spec, config)
    return config


def source_options(spec: ModelSpec) -> dict[str, Any]:
    """Return what ``from_pretrained`` is told of the place a checkpoint lies at."""
    named = {"gguf_file": spec.gguf_file}
    if not spec.is_local:
        named |= {"revision": spec.revision, "subfolder": spec.subfolder}
    given = {key: value for key, value in named.items() if value}
    return {"trust_remote_code": False, "local_files_only": spec.is_local, **given}


def load_tokenizer(spec: ModelSpec) -> Any:
    """Return the tokenizer of a checkpoint; raises :class:`ModelError`."""
    options = {"trust_remote_code": False} if spec.tokenizer else source_options(spec)
    if spec.fix_mistral_regex is not None:
        options["fix_mistral_regex"] = spec.fix_mistral_regex
    what, hint = f"the tokenizer {spec.tokenizer}".strip(), ""
    if spec.gguf_file and not spec.tokenizer:
        hint = "; model-args tokenizer=FOLDER names one that need not be made out of the GGUF file"
    with loading(what, spec.path, spec.revision, hint):
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                spec.tokenizer or spec.location, **options
            )
        except Exception:
            named = spec.tokenizer or spec.gguf_file or not spec.is_local
            if named or tokenizer_files(Path(spec.location)):
                raise
            raise _no_tokenizer(spec) from None
        ids = tokenizer("a b 1")["input_ids"]
        echo = tokenizer.decode(ids, skip_special_tokens=True)
    # Without its files some classes make a tokenizer that knows nothing, and say nothing.
    if not any(character.isalnum() for character in echo):
        raise _no_tokenizer(spec)
    is_adapters = spec.tokenizer and spec.tokenizer == spec.peft
    if spec.chat_template and is_adapters and not tokenizer.chat_template:
        base = dataclasses.replace(spec, tokenizer="", peft="")
        tokenizer.chat_template = load_tokenizer(base).chat_template
    return tokenizer


def _no_tokenizer(spec: ModelSpec) -> ModelError:
    return ModelError(
        f"{spec.tokenizer or spec.path}: the tokenizer is missing or empty; tokenizer.json or "
        "tokenizer.model is needed; model-args tokenizer=FOLDER names another place"
    )


# What is derived from a checkpoint after loading and makes its numbers coarser.
_COARSER = ("int4", "int3")


def fingerprint(
    spec: ModelSpec,
    folder: Path,
    model: Any,
    tokenizer: Any,
    *,
    adds_bos: bool,
    digests: list[str] | None = None,
    device: str,
) -> Fingerprint:
    """Return the fingerprint of a loaded checkpoint whose weights lie in ``folder``.

    ``weights_digest`` covers the tensors (an adapter's too), what of the config and of the tokenizer's own
    can change an answer, and which tokens begin and end a text. ``device`` is where it is computed,
    ``digests`` what :func:`tensor_digests` returned, where it was called before. ``derived`` names all that
    was done to the weights while loading.
    """
    config = {} if spec.gguf_file else read_config(folder)
    how = ",".join(f"{name}={value}" for name, value in spec.bnb_4bit)
    changes = {
        spec.derived: spec.derived,
        "peft": spec.peft,
        f"load_in_4bit({how})" if how else "load_in_4bit": spec.load_in_4bit,
        "load_in_8bit": spec.load_in_8bit,
        f"attn={spec.attn_implementation}": spec.attn_implementation,
    }
    settings = model.generation_config
    idle = ("_name_or_path", "transformers_version", "torch_dtype", "dtype")
    # What a config says about who saved it and how it is stored changes no answer.
    effective = {key: value for key, value in config.items() if key not in idle}
    answering = [effective, settings.eos_token_id]
    if model.config.is_encoder_decoder:
        answering += [settings.decoder_start_token_id, settings.bos_token_id]
    answering += _tokenising(spec, folder)
    files = _adapter_files(spec, ADAPTER_FILES[0])
    files += [folder / spec.gguf_file] if spec.gguf_file else []
    return Fingerprint(
        spec=spec.text,
        backend="hf",
        backend_version=_versions(spec),
        architecture=type(model.get_base_model() if spec.peft else model).__name__,
        parameters=int(model.num_parameters()),
        weights_digest=digest_of_files(
            files, [*(digests or tensor_digests(spec, folder)), answering]
        ),
        tokenizer_digest=tokenizer_digest(spec, folder, tokenizer),
        dtype=str(model.dtype).removeprefix("torch."),
        device=device,
        derived="+".join(name for name, is_done in changes.items() if is_done),
        chat_template=spec.chat_template,
        adds_bos=adds_bos,
        scoring_version=SCORING_VERSION,
        quantisation=quantisation(spec, config),
        prompting=spec.chat.prompting(),
        name=spec.name if spec.name != spec.text else "",
    )


def _versions(spec: ModelSpec) -> str:
    """Return the libraries that compute the responses, with their versions."""
    used = ["transformers", "torch"]
    used += ["peft"] if spec.peft else []
    used += ["bitsandbytes"] if spec.load_in_4bit or spec.load_in_8bit else []
    return ", ".join(f"{name} {version(name)}" for name in used)


def _tokenising(spec: ModelSpec, folder: Path) -> list[Any]:
    """Return settings that change a text's tokens and are not in the vocabulary files; mostly none."""
    own = Path(spec.tokenizer).expanduser() if spec.tokenizer else folder
    settings = tokenizer_settings(own)
    # A template may have written a BOS of its own, or two.
    typed_bos = spec.chat_template and spec.add_bos_token is not None
    given = [
        {name: value}
        for name in ("prefix_token_id", "fix_mistral_regex")
        if (value := getattr(spec, name)) is not None
    ]
    bos = [spec.add_bos_token] if typed_bos else []
    return [*([settings] if settings else []), *bos, *given]


def quantisation(spec: ModelSpec, config: dict[str, Any]) -> str:
    """Return how weights are quantised, in the checkpoint (by its ``config``) or while loading."""
    methods = []
    saved = config.get("quantization_config")
    if isinstance(saved, dict):
        loaded = (n for n in (4, 8) if saved.get(f"load_in_{n}bit"))
        bits = saved.get("bits") or next(loaded, "")
        method = str(saved.get("quant_method", "quantised"))
        methods.append(f"{method} {bits} bits" if bits else method)
    if spec.gguf_file:
        methods.append("gguf")
    if spec.load_in_4bit or spec.load_in_8bit:
        methods.append(f"bitsandbytes {4 if spec.load_in_4bit else 8} bits")
    if spec.derived in _COARSER:
        methods.append(spec.derived)
    return " + ".join(methods)


def tensor_digests(spec: ModelSpec, folder: Path) -> list[str]:
    """Return the digests of a checkpoint's tensors and of its adapter's; this reads all weights."""
    weights = () if spec.gguf_file else weight_files(folder)
    adapter = _adapter_files(spec, ADAPTER_WEIGHTS)
    return [digest_of_tensors(files) for files in (weights, adapter)]


def _adapter_files(spec: ModelSpec, name: str) -> list[Path]:
    if not spec.peft:
        return []
    local = Path(spec.peft).expanduser() / name
    if local.is_file():
        return [local]
    from transformers.utils.hub import cached_file

    file = cached_file(
        spec.peft,
        name,
        local_files_only=True,
        _raise_exceptions_for_missing_entries=False,
    )
    if file is None:
        raise ModelError(
            f"adapter {spec.peft!r}: {name} was not found, so that nothing tells it from another; allowed: "
            f"an adapter with both of {ADAPTER_WEIGHTS}, adapter_config.json"
        )
    return [Path(file)]


def tokenizer_digest(spec: ModelSpec, folder: Path, tokenizer: Any) -> str:
    """Return the digest of a tokenizer; ``folder`` is the checkpoint's."""
    own = Path(spec.tokenizer).expanduser() if spec.tokenizer else folder
    special = {
        name: str(token) for name, token in sorted(tokenizer.special_tokens_map.items())
    }
    template = tokenizer.chat_template if spec.chat_template else None
    extra = [
        sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]),
        special,
        template,
    ]
    files = tokenizer_files(own) if own.is_dir() else ()
    if not files and getattr(tokenizer, "backend_tokenizer", None) is not None:
        extra.append(tokenizer.backend_tokenizer.to_str())
    return digest_of_files(files, extra)
