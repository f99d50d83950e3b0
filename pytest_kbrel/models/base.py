"""Protocols of a model and its spec, and the record that describes a backend."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
    record,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.token_counting import Counter


class Model(Protocol):
    """A checkpoint that answers. Batching, order and sharing of prefixes are its own business.

    Answers come back one for each request, in the order of the requests; an answer that could not be had is a
    :class:`~pytest_kbrel.records.Failed`, not an exception.
    """

    def describe(self) -> Fingerprint:
        """Say what this model is, by content."""
        ...

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities of given continuations' tokens."""
        ...

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return continuations the model makes itself."""
        ...

    def close(self) -> None:
        """Free what the model holds."""
        ...


@runtime_checkable
class Renders(Protocol):
    """A model that shows a prompt as it reads it; others read a request's text as it is."""

    def rendered(self, request: Request) -> str:
        """Return the prompt of a request as the model reads it; nothing is computed and no server asked."""
        ...


class Spec(Protocol):
    """What the user typed for a model, read and checked: each backend has a record of its own."""

    @property
    def text(self) -> str:
        """How the user named the model."""
        ...

    @property
    def backend(self) -> str:
        """The name of the backend that runs it."""
        ...


class Embedder(Protocol):
    """An opened encoder of texts."""

    def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector a text, as lists or an array; raises ``ModelError`` where that fails."""
        ...

    def close(self) -> None:
        """Free what the encoder holds."""
        ...


@record
class Backend:
    """A kind of model: how a spec of it is read, checked and opened, and what is known of it before that.

    ``name`` is the word before the slash of a spec, and ``backend`` of its specs and fingerprints. ``forms``
    are the ways to write a spec, for messages. ``args`` are the keys of the arguments that ``parse`` reads.

    ``parse(text, args, device=, dtype=, batch_size=, chat_template=)`` loads nothing; ``check(spec)`` finds
    what can be found before a model is opened; ``open(spec, threads=, folder=)`` is as ``open_model`` of
    :mod:`pytest_kbrel.models.registry`; ``counter(spec)`` counts tokens without weights. All raise
    :class:`~pytest_kbrel.errors.ModelError`. ``gpus(spec)`` is how many GPUs a process needs for itself, 0
    where it can share one, ``None`` where it uses all that it sees. ``embedder(spec)`` opens an encoder of
    texts; without one a spec names a sentence encoder on this machine.
    """

    name: str
    forms: tuple[str, ...]
    args: tuple[str, ...]
    parse: Callable[..., Spec]
    check: Callable[[Any], None]
    open: Callable[..., Model]
    counter: Callable[[Any], Counter]
    gpus: Callable[[Any], int | None] = lambda spec: 0
    embedder: Callable[[Any], Embedder] | None = None
    is_served: bool = False
    gives_probabilities: bool = True
    gives_gradients: bool = False
