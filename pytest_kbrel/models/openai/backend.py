"""Backend for models behind an OpenAI-compatible server, and their embeddings endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models import lm_eval_args as lm_eval
from pytest_kbrel.models.base import Backend, Model
from pytest_kbrel.models.openai.spec import OPENAI_ARGS, OpenAISpec, parse_openai
from pytest_kbrel.models.token_counting import Estimating
from pytest_kbrel.records import Failed

if TYPE_CHECKING:
    from pytest_kbrel.models.openai.client import Connection, Post

# Servers limit how many texts one request may hold; all we know of take as many as this.
_TEXTS_A_REQUEST = 128
# The longest vectors that we know of have 8,192 numbers, and a number has up to 24 characters.
_VECTOR_BYTES = 256_000


class OpenAIEmbedder:
    """Encoder of texts behind a server."""

    def __init__(self, spec: OpenAISpec) -> None:
        from pytest_kbrel.models.openai.client import Connection

        self._connection = Connection(spec)

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, all of one length; raises :class:`ModelError`."""
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _TEXTS_A_REQUEST):
            vectors += _requested(self._connection, texts[start : start + _TEXTS_A_REQUEST])
        if len({len(vector) for vector in vectors}) > 1:
            raise ModelError(
                f"{self._connection.spec.text}: vectors of one length expected, found several lengths"
            )
        return vectors

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _requested(connection: Connection, texts: Sequence[str]) -> list[list[float]]:
    from pytest_kbrel.models.openai.limits import limits_for

    spec = connection.spec

    async def call(post: Post) -> bytes:
        # The protocol's other way to tell numbers is base64, which not every server knows.
        body = {"model": spec.name, "input": list(texts), "encoding_format": "float"}
        return await post("/embeddings", body)

    reply = connection.ask(call, limits_for(spec.timeout, len(texts), _VECTOR_BYTES, "text"))
    if isinstance(reply, Failed):
        raise ModelError(f"{spec.text}: {reply.error}")
    try:
        vectors = {item["index"]: _vector(item["embedding"]) for item in reply["data"]}
    except (LookupError, TypeError, ValueError, OverflowError):
        vectors = {}
    if vectors.keys() != set(range(len(texts))):
        raise ModelError(
            f"{spec.text}: an embedding for each of {len(texts)} texts expected, the server at "
            f"{spec.base_url} sent something else; allowed is a server with an embeddings endpoint"
        )
    return [vectors[index] for index in range(len(texts))]


def _vector(numbers: Any) -> list[float]:
    if not (isinstance(numbers, list) and numbers and all(type(one) in (int, float) for one in numbers)):
        raise TypeError("no list of numbers")
    return [float(number) for number in numbers]


def _check(spec: OpenAISpec) -> None:
    from pytest_kbrel.models.openai.client import check

    check(spec)


def _open(spec: OpenAISpec, **_: object) -> Model:
    from pytest_kbrel.models.openai.model import OpenAIModel

    return OpenAIModel(spec)


def _counter(spec: OpenAISpec) -> Estimating:
    may_think = spec.chat.enable_thinking is not False and (spec.endpoint == "chat" or spec.chat.thinks)
    return Estimating(spec.chat.system_instruction, spec.chat.max_thinking_tokens if may_think else 0)


OPENAI = Backend(
    name="openai",
    forms=("openai/NAME",),
    args=(*OPENAI_ARGS, *lm_eval.OPENAI),
    parse=parse_openai,
    check=_check,
    open=_open,
    counter=_counter,
    embedder=OpenAIEmbedder,
    is_served=True,
    gives_probabilities=False,
)
