"""Encoder of texts that sentence-transformers runs on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy.typing as npt

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.batching import describe_error

_TEXTS_A_BATCH = 32


class SentenceEncoder:
    """Sentence encoder ``spec``: a hub id, or a path that begins at ``folder``; ``hf/`` may stand before it."""

    def __init__(self, spec: str, folder: Path) -> None:
        if find_spec("sentence_transformers") is None:
            purpose = f"choosing examples or distractors with {spec}"
            raise MissingExtraError("sentence-transformers", "embeddings", purpose)
        from sentence_transformers import SentenceTransformer

        from pytest_kbrel.models.checkpoint.integrity import record_encoder_files
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

    def embed(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        """Return one vector a text; raises :class:`ModelError`."""
        try:
            vectors: npt.NDArray[Any] = self._model.encode(
                list(texts),
                batch_size=_TEXTS_A_BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(
                f"{self._spec}: texts cannot be encoded: {describe_error(error)}"
            ) from None
        if self._files is not None:
            self._files.check()
        return vectors

    def close(self) -> None:
        """Do nothing: there is no connection."""
