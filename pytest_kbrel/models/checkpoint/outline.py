"""Outline of a checkpoint: config, tokenizer and prompt encoder, without its weights."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import transformers

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.checkpoint.checks import check_architecture, check_kind
from pytest_kbrel.models.checkpoint.files import tokenizer_files
from pytest_kbrel.models.checkpoint.integrity import FileRecord, record_files
from pytest_kbrel.models.checkpoint.spec import ModelSpec
from pytest_kbrel.models.pretrained import loading, quiet
from pytest_kbrel.models.tokens import PromptEncoder

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
