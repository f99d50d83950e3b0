"""Encoders of texts, each opened at its first text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pytest_kbrel.errors import ModelError

if TYPE_CHECKING:
    from pytest_kbrel.models.base import Embedder

Vectors = npt.NDArray[np.float64]


class Encoder:
    """Turns texts into vectors and remembers them; opened at its first text.

    ``spec`` names it in messages; ``open_embedder`` opens it.
    """

    def __init__(self, spec: str, open_embedder: Callable[[], Embedder]) -> None:
        self.spec, self._open = spec, open_embedder
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
