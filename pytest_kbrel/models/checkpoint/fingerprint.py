"""Fingerprint of a loaded checkpoint, by content: never by a path or a name."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.files import (
    ADAPTER_FILES,
    ADAPTER_WEIGHTS,
    digest_of_files,
    digest_of_tensors,
    effective_config,
    read_config,
    tokenizer_files,
    tokenizer_settings,
    weight_files,
)
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.records import Fingerprint

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
    answering = [effective_config(config), settings.eos_token_id]
    if model.config.is_encoder_decoder:
        answering += [settings.decoder_start_token_id, settings.bos_token_id]
    return Fingerprint(
        spec=spec.text,
        backend="hf",
        backend_version=_versions(spec),
        architecture=type(model.get_base_model() if spec.peft else model).__name__,
        parameters=int(model.num_parameters()),
        weights_digest=_weights_digest(
            spec,
            folder,
            digests or tensor_digests(spec, folder),
            [*answering, *_tokenising(spec, folder)],
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


def _weights_digest(
    spec: ModelSpec, folder: Path, digests: list[str], extra: list[Any]
) -> str:
    files = _adapter_files(spec, ADAPTER_FILES[0])
    files += [folder / spec.gguf_file] if spec.gguf_file else []
    return digest_of_files(files, [*digests, extra])


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
