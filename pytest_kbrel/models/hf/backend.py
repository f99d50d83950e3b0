"""Backend for checkpoints that transformers runs; nothing heavy is imported before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.arguments import LM_EVAL
from pytest_kbrel.models.base import Backend
from pytest_kbrel.models.batching import describe_error
from pytest_kbrel.models.checkpoint.counter import TokenizerCounter
from pytest_kbrel.models.checkpoint.files import check_availability
from pytest_kbrel.models.checkpoint.spec import (
    FLASH,
    MODEL_ARGS,
    ModelSpec,
    announce,
    check_path,
    importing,
    parse_spec,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.checkpoint.checks import Finding
    from pytest_kbrel.models.hf.model import HfModel


class SentenceEncoder:
    """Sentence encoder ``spec``: a hub id, or a path that begins at ``folder``; ``hf/`` may stand before it."""

    def __init__(self, spec: str, folder: Path) -> None:
        if find_spec("sentence_transformers") is None:
            purpose = f"choosing examples or distractors with {spec}"
            raise MissingExtraError("sentence-transformers", "embeddings", purpose)
        from sentence_transformers import SentenceTransformer

        from pytest_kbrel.models.checkpoint.files import record_encoder_files
        from pytest_kbrel.models.pretrained import quiet

        self._spec = spec
        name = spec.removeprefix("hf/")
        path = folder / Path(name).expanduser()
        self._files = record_encoder_files(spec, path) if path.is_dir() else None
        try:
            with quiet():
                self._model = SentenceTransformer(
                    str(path) if path.is_dir() else name,
                    trust_remote_code=False,
                    local_files_only=path.is_dir(),
                    model_kwargs={"use_safetensors": True},
                )
        except Exception as error:
            raise ModelError(
                f"{spec}: no sentence encoder can be loaded ({describe_error(error)}); allowed: tfidf, "
                "openai/NAME, or the folder or hub id of an encoder in safetensors"
            ) from None

    def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector a text; raises :class:`ModelError`."""
        try:
            vectors = self._model.encode(list(texts), show_progress_bar=False)
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(
                f"{self._spec}: texts cannot be encoded: {describe_error(error)}"
            ) from None
        if self._files is not None:
            self._files.check()
        return vectors

    def close(self) -> None:
        """Do nothing: there is no connection."""


def check_packages(spec: ModelSpec) -> None:
    """Check the path of ``spec``, and that the packages it needs are installed; raises as :func:`load`."""
    check_path(spec)
    for package in ("torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "hf", f"loading {spec.text}")
    # Without flash_attn transformers may fetch a kernel from the hub: code from outside.
    flash = spec.attn_implementation if spec.attn_implementation == FLASH else ""
    bits = "4" if spec.load_in_4bit else "8" if spec.load_in_8bit else ""
    spread = "" if spec.placement is None else spec.placement.device_map
    for value, option, packages in (
        (spec.peft, "peft={}", "peft"),
        (spec.gguf_file, "gguf_file={}", "gguf accelerate"),
        (bits, "load_in_{}bit=True", "bitsandbytes accelerate"),
        (spread, "device_map={}", "accelerate"),
        (flash, "attn_implementation={}", "flash_attn"),
    ):
        for package in packages.split() if value else ():
            if find_spec(package) is None:
                named = package.replace("_", "-")
                raise ModelError(
                    f"model-args: {option.format(value)} needs the package {package}: pip install {named}"
                )


def _check(spec: ModelSpec) -> None:
    check_packages(spec)
    check_availability(spec)
    # Torch is imported for another device than the CPU only.
    if spec.device not in ("auto", "cpu"):
        with importing(spec):
            from pytest_kbrel.models.hf.devices import check_device
        check_device(spec.device)


def load(
    spec: ModelSpec,
    *,
    threads: int | None = None,
    findings: list[Finding] | None = None,
) -> HfModel:
    """Load a causal or encoder-decoder checkpoint and check that it can be trusted.

    ``threads`` is the number of CPU threads for torch, ``None`` for torch's own choice. What is found is
    appended to ``findings``, up to the first error.

    Raises :class:`~pytest_kbrel.errors.ModelError` for anything wrong with weights, tokenizer, config or
    device, and :class:`~pytest_kbrel.errors.MissingExtraError` without torch, transformers or safetensors.
    """
    check_packages(spec)
    with importing(spec):
        import torch

        from pytest_kbrel.models.hf.devices import measure_budget
        from pytest_kbrel.models.hf.loading import load_checkpoint
        from pytest_kbrel.models.hf.model import HfModel
    if threads is not None:
        torch.set_num_threads(threads)
    parts = load_checkpoint(spec, findings)
    return HfModel(parts, budget=measure_budget(parts.model, spec))


HF = Backend(
    name="hf",
    forms=("hf/PATH", "a checkpoint's folder", "a hub id org/name"),
    args=(*MODEL_ARGS, *LM_EVAL["hf"]),
    parse=parse_spec,
    check=_check,
    open=load,
    counter=TokenizerCounter,
    computes_here=True,
    gpus=lambda spec: 0 if spec.placement is None else None,
    announcement=announce,
    embedder=lambda text, args, folder: SentenceEncoder(text, folder),
    gives_top_tokens=True,
)
