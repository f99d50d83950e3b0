"""Encoders of texts: a sentence encoder on this machine, or the embedder of a model's backend."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.batching import describe_error

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Embedder

Vectors = npt.NDArray[np.float64]
_TEXTS_A_BATCH = 32


class Encoder:
    """Turns texts into vectors and remembers them; opened at its first text.

    ``spec`` names a model whose backend has an embedder, or a folder or hub id of a sentence encoder (``hf/``
    may stand before it); a relative path begins at ``folder``. ``args`` are those of the former.
    """

    def __init__(self, spec: str, args: str = "", folder: Path | None = None) -> None:
        self.spec, self.args, self.folder = spec, args, folder or Path()
        self._embedder: Embedder | None = None
        self._vectors: dict[str, Vectors] = {}

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (texts, d); each text is encoded once.

        Raises :class:`ModelError` where the encoder cannot be had, or gives anything else than one vector of
        numbers for each text, all of one length; :class:`MissingExtraError` where its package is absent.
        """
        if self._embedder is None:
            self._embedder = self._open()
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            vectors = np.asarray(self._embedder.embed(new), dtype=float)
            lengths = {len(vector) for vector in self._vectors.values()}
            if (
                vectors.ndim != 2
                or len(vectors) != len(new)
                or not lengths <= {vectors.shape[1]}
            ):
                raise ModelError(
                    f"{self.spec}: one vector for each of {len(new)} texts expected, all of one length; "
                    f"found an array of shape {vectors.shape}"
                )
            if not np.isfinite(vectors).all():
                raise ModelError(
                    f"{self.spec}: vectors of finite numbers expected, found others"
                )
            self._vectors.update(zip(new, vectors, strict=True))
        return np.array([self._vectors[text] for text in texts])

    def close(self) -> None:
        """Close the connection to a server, where there is one."""
        if self._embedder is not None:
            self._embedder.close()

    def _open(self) -> Embedder:
        from pytest_kbrel.models.registry import backend_of, read_spec

        if embedder := backend_of(self.spec).embedder:
            return embedder(read_spec(self.spec, self.args))
        return _SentenceEncoder(self.spec, self.folder)


class _SentenceEncoder:
    """Encoder that sentence-transformers runs on this machine."""

    def __init__(self, spec: str, folder: Path) -> None:
        if find_spec("sentence_transformers") is None:
            purpose = f"choosing examples or distractors with {spec}"
            raise MissingExtraError("sentence-transformers", "embeddings", purpose)
        from sentence_transformers import SentenceTransformer

        from pytest_kbrel.models.checkpoint.integrity import record_encoder_files
        from pytest_kbrel.models.hf.loading import quiet

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
        pass
