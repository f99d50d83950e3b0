"""Texts to vectors: by a sentence encoder on this machine, or by an OpenAI-compatible server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pytest_kbrel.errors import MissingExtraError, ModelError
from pytest_kbrel.models.openai_limits import limits_for
from pytest_kbrel.models.openai_spec import OpenAISpec, is_openai, parse_openai
from pytest_kbrel.records import Failed

if TYPE_CHECKING:
    from pytest_kbrel.models.openai_client import Connection, Post

Vectors = npt.NDArray[np.float64]
HF_PREFIX = "hf/"
# Servers limit how many texts one request may hold; all we know of take as many as this.
_TEXTS_A_REQUEST = 128
_TEXTS_A_BATCH = 32
# The longest vectors that we know of have 8,192 numbers, and a number has up to 24 characters.
_VECTOR_BYTES = 256_000


class Encoder:
    """Turns texts into vectors and remembers them; opened at its first text.

    ``spec`` is ``openai/NAME``, or a folder or hub id of a sentence encoder (``hf/`` may stand before it); a
    relative path begins at ``folder``. ``args`` are those of an ``openai/`` model.
    """

    def __init__(self, spec: str, args: str = "", folder: Path | None = None) -> None:
        self.spec, self.args, self.folder = spec, args, folder or Path()
        self._embed: Callable[[Sequence[str]], npt.NDArray[Any]] | None = None
        self._known: dict[str, Vectors] = {}
        self._connection: Connection | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (texts, d); each text is encoded once.

        Raises :class:`ModelError` where the encoder cannot be had, or gives anything else than one vector of
        numbers for each text, all of one length; :class:`MissingExtraError` where its package is absent.
        """
        if self._embed is None:
            opened = _over_http if is_openai(self.spec) else _on_this_machine
            self._embed = opened(self)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            vectors = np.asarray(self._embed(new), dtype=float)
            lengths = {len(vector) for vector in self._known.values()}
            if vectors.ndim != 2 or len(vectors) != len(new) or not lengths <= {vectors.shape[1]}:
                raise ModelError(
                    f"{self.spec}: one vector for each of {len(new)} texts expected, all of one length; "
                    f"found an array of shape {vectors.shape}"
                )
            if not np.isfinite(vectors).all():
                raise ModelError(f"{self.spec}: vectors of finite numbers expected, found others")
            self._known.update(zip(new, vectors, strict=True))
        return np.array([self._known[text] for text in texts])

    def close(self) -> None:
        """Close the connection to a server, where there is one."""
        if self._connection is not None:
            self._connection.close()


def embed(spec: str, texts: Sequence[str], args: str = "") -> Vectors:
    """Return one vector a text, shape (texts, d); see :class:`Encoder`."""
    encoder = Encoder(spec, args)
    try:
        return encoder.embed(texts)
    finally:
        encoder.close()


def _over_http(encoder: Encoder) -> Callable[[Sequence[str]], npt.NDArray[Any]]:
    from pytest_kbrel.models.openai_client import Connection

    connection = encoder._connection = Connection(parse_openai(encoder.spec, encoder.args))

    def run(texts: Sequence[str]) -> npt.NDArray[Any]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _TEXTS_A_REQUEST):
            vectors += _requested(connection.spec, connection, texts[start : start + _TEXTS_A_REQUEST])
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelError(f"{encoder.spec}: vectors of one length expected, found several lengths")
        return np.array(vectors)

    return run


def _requested(spec: OpenAISpec, connection: Connection, texts: Sequence[str]) -> list[list[float]]:
    async def call(post: Post) -> bytes:
        # The protocol's other way to tell numbers is base64, which not every server knows.
        body = {"model": spec.name, "input": list(texts), "encoding_format": "float"}
        return await post("/embeddings", body)

    reply = connection.ask(call, limits_for(spec.timeout, len(texts), _VECTOR_BYTES, "text"))
    if isinstance(reply, Failed):
        raise ModelError(f"{spec.text}: {reply.error}")
    try:
        found = {item["index"]: _vector(item["embedding"]) for item in reply["data"]}
    except (LookupError, TypeError, ValueError, OverflowError):
        found = {}
    if found.keys() != set(range(len(texts))):
        raise ModelError(
            f"{spec.text}: an embedding for each of {len(texts)} texts expected, the server at "
            f"{spec.base_url} sent something else; allowed is a server with an embeddings endpoint"
        )
    return [found[place] for place in range(len(texts))]


def _vector(numbers: Any) -> list[float]:
    if not (isinstance(numbers, list) and numbers and all(type(one) in (int, float) for one in numbers)):
        raise TypeError("no list of numbers")
    return [float(number) for number in numbers]


def _on_this_machine(encoder: Encoder) -> Callable[[Sequence[str]], npt.NDArray[Any]]:
    purpose = f"choosing examples or distractors with {encoder.spec}"
    if find_spec("sentence_transformers") is None:
        raise MissingExtraError("sentence-transformers", "embeddings", purpose)
    from sentence_transformers import SentenceTransformer

    from pytest_kbrel.models.batching import describe_error
    from pytest_kbrel.models.file_record import record_of_encoder
    from pytest_kbrel.models.hf_quiet import quiet

    name = encoder.spec.removeprefix(HF_PREFIX)
    folder = encoder.folder / Path(name).expanduser()
    files = record_of_encoder(encoder.spec, folder) if folder.is_dir() else None
    try:
        with quiet():
            model = SentenceTransformer(
                str(folder) if folder.is_dir() else name,
                trust_remote_code=False,
                local_files_only=folder.is_dir(),
                model_kwargs={"use_safetensors": True},
            )
    except Exception as error:
        raise ModelError(
            f"{encoder.spec}: no sentence encoder can be loaded ({describe_error(error)}); allowed: tfidf, "
            "openai/NAME, or the folder or hub id of an encoder in safetensors"
        ) from None

    def run(texts: Sequence[str]) -> npt.NDArray[Any]:
        try:
            found: npt.NDArray[Any] = model.encode(
                list(texts), batch_size=_TEXTS_A_BATCH, show_progress_bar=False, convert_to_numpy=True
            )
        except (RuntimeError, ValueError, IndexError) as error:
            raise ModelError(f"{encoder.spec}: texts cannot be encoded: {describe_error(error)}") from None
        if files is not None:
            files.check()
        return found

    return run
