"""Protocols of a model and its spec, the record of a backend, and checks of any model's responses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Scored,
    ScoreRequest,
    record,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.token_counting import Counter

A = TypeVar("A")
# The longest tokens have some hundred characters.
_CHARACTERS_PER_TOKEN, _EXTRA_CHARACTERS = 1_000, 10_000


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


def check_count(requests: Sequence[Request], responses: list[A]) -> list[A]:
    """Return ``responses``; raise :class:`ResponseError` if they are more or fewer than ``requests``."""
    if len(responses) != len(requests):
        raise ResponseError(f"the model gave {len(responses)} answers to {len(requests)} requests")
    return responses


def in_order(batches: Iterable[list[tuple[int, A]]]) -> list[A]:
    """Return the responses of all batches, which come with their positions, as one list in that order."""
    by_position = {position: response for batch in batches for position, response in batch}
    return [by_position[position] for position in range(len(by_position))]


def within_size(request: Request, response: Response) -> Response:
    """Return the response, or a failure if it is far longer than its tokens can be."""
    if isinstance(request, GenerateRequest) and isinstance(response, Generated):
        most = _CHARACTERS_PER_TOKEN * request.max_new_tokens + _EXTRA_CHARACTERS
        if len(response.text) > most:
            return Failed(
                error=f"an answer of {len(response.text):,} characters to a question for "
                f"{request.max_new_tokens:,} tokens; allowed: at most {most:,}"
            )
    return response


def numbers_only(response: Response) -> Response:
    """Return the response, or a failure if one of its probabilities is not a number from 0 to 1."""
    values: Iterable[float] = ()
    if isinstance(response, Scored):
        values = response.probabilities
    elif isinstance(response, Generated) and response.steps:
        values = [p for step in response.steps for p in (step.probability, step.watched) if p is not None]
    for value in values:
        # Both comparisons are false for NaN.
        if not 0.0 <= value <= 1.0:
            return Failed(error=f"not a probability: {value}")
    return response
