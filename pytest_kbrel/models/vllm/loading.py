"""Loading of a checkpoint for vLLM: checks of its files, its fingerprint, and the start of an engine."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from safetensors import safe_open

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.checkpoint.files import check_folder, weight_files
from pytest_kbrel.models.checkpoint.fingerprint import fingerprint
from pytest_kbrel.models.checkpoint.integrity import record_files
from pytest_kbrel.models.hf.checks import bos_note, check_fit, check_numbers, end_note
from pytest_kbrel.models.hf.loading import load_outline, quiet
from pytest_kbrel.models.hf.spec import ModelSpec
from pytest_kbrel.models.hf.stopping import Endings, greedy_settings
from pytest_kbrel.models.vllm.engine import start
from pytest_kbrel.models.vllm.model import VllmModel, VllmParts
from pytest_kbrel.records import Fingerprint

if TYPE_CHECKING:
    from pytest_kbrel.models.vllm import VllmSpec

# What a load needs of a repository on the hub: no pickles, and nothing of its subfolders.
_FILES = ["*.json", "*.safetensors", "*.model", "*.txt", "*.tiktoken", "*.jinja"]
_FOLDERS = ["*/*"]
_CHECKED = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def load_model(spec: VllmSpec) -> VllmModel:
    """Load as :func:`pytest_kbrel.models.vllm.load`, whose checks have passed."""
    # vLLM is given the folder whose files are digested here, and finds nothing else under a name.
    folder = _folder(spec.checkpoint)
    check_folder(folder)
    files = record_files(spec.checkpoint)
    checkpoint = dataclasses.replace(spec.checkpoint, path=str(folder), revision="")
    outline = load_outline(checkpoint)
    if outline.config.is_encoder_decoder:
        raise ModelError(
            f"{spec.text}: an encoder-decoder model; allowed with vllm are causal models, "
            f"or hf/{spec.checkpoint.path}"
        )
    tokenizer = outline.encoder.tokenizer
    with quiet():
        empty = _without_weights(spec, folder, outline.config)
        check_fit(checkpoint, empty, tokenizer)
        check_numbers(checkpoint, _Stored(folder))
        empty.generation_config = greedy_settings(empty, tokenizer)
        described = fingerprint(checkpoint, folder, empty, tokenizer, adds_bos=outline.encoder.adds_bos)
    engine, version = start(spec, str(folder))
    try:
        files.check()
    except ModelError:
        engine.close()
        raise
    rows = int(empty.get_input_embeddings().weight.shape[0])
    return VllmModel(
        VllmParts(
            engine=engine,
            encoder=outline.encoder,
            endings=Endings(tokenizer, vocabulary=rows, eos_ids=empty.generation_config.eos_token_id or ()),
            fingerprint=_run_by_vllm(spec, described, engine.dtype, engine.device, version),
            files=files,
            vocabulary=rows,
            max_thinking_tokens=checkpoint.chat.max_thinking_tokens,
            notes=tuple(
                filter(
                    None,
                    [
                        *spec.notes,
                        *outline.encoder.notes,
                        bos_note(checkpoint, folder, outline.encoder),
                        end_note(empty.generation_config.eos_token_id or (), outline.encoder),
                    ],
                )
            ),
        )
    )


def _run_by_vllm(
    spec: VllmSpec, described: Fingerprint, dtype: str, device: str, version: str
) -> Fingerprint:
    """Return the fingerprint of the checkpoint as the engine runs it: same contents, other arithmetic."""
    gpus = spec.tensor_parallel_size
    added = f"vllm {spec.quantization}" if spec.quantization else ""
    return dataclasses.replace(
        described,
        spec=spec.text,
        backend=spec.backend,
        backend_version=f"{version}, torch {torch.__version__}",
        dtype=dtype,
        device=f"{device} x {gpus}" if gpus > 1 else device,
        derived=f"quantization={spec.quantization}" if spec.quantization else "",
        quantisation=" + ".join(part for part in (described.quantisation, added) if part),
    )


def _folder(spec: ModelSpec) -> Path:
    """Return the folder of a checkpoint's files, downloaded from the hub if needed."""
    if spec.is_local:
        return Path(spec.location)
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(
                spec.path,
                revision=spec.revision or None,
                allow_patterns=_FILES,
                ignore_patterns=_FOLDERS,
            )
        )
    except Exception as error:
        raise ModelError(
            f"{spec.path}: no such folder here, and not to be had from the hub: {describe_error(error)}"
        ) from None


def _without_weights(spec: VllmSpec, folder: Path, config: Any) -> Any:
    """Return the model of a config as shapes only, with the checkpoint's own generation settings."""
    try:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
    except Exception as error:
        raise ModelError(f"{spec.text}: no causal model for transformers: {describe_error(error)}") from None
    if (folder / "generation_config.json").is_file():
        model.generation_config = transformers.GenerationConfig.from_pretrained(str(folder))
    return model


class _Stored:
    """Weights of a folder's files, one tensor in memory at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield names and tensors of the formats that can hold NaN or infinity."""
        for file in weight_files(self._folder):
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118
                    tensor = opened.get_tensor(name)
                    if tensor.dtype in _CHECKED:
                        yield name, tensor
