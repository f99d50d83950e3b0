"""Protocols of models, specs and encoders, the record of a backend, counters of tokens, and checks of requests and responses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.chat import text_of
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
    from pytest_kbrel.models.openai.replies import Usage


A = TypeVar("A")
Q = TypeVar("Q", bound=Request)
# Responses that may be lost when the process is killed, of a model that returns them all at once.
_CHUNK = 32
# The longest tokens have some hundred characters.
_CHARACTERS_PER_TOKEN, _EXTRA_CHARACTERS = 1_000, 10_000


class Model:
    """Language model that scores and generates; batching and prefix sharing are its own.

    There is one response per request, in order; a request that cannot be answered gets a
    :class:`~pytest_kbrel.records.Failed`, not an exception. A model defines ``score`` or ``score_as_ready``,
    and ``generate`` or ``generate_as_ready``: the latter yield batches of responses with their requests'
    positions, in any order.

    ``pools_cases`` is True where it answers several cases faster in one call than in a call each.
    ``usage`` counts the tokens of a server. ``is_storable`` is False where its responses are on this machine
    already, and are not put into a store. ``rounds``: it answers requests with a ``rounding``.
    """

    usage: Usage | None = None
    pools_cases = False
    is_storable = True
    rounds = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for readers of its figures."""
        return ()

    @property
    def unscorable(self) -> str:
        """Why it can score no answer; empty if it can."""
        return ""

    @property
    def engine(self) -> str:
        """How it computes, in words."""
        return ""

    def describe(self) -> Fingerprint:
        """Return the model's fingerprint, by content."""
        raise NotImplementedError

    def rendered(self, request: Request) -> str:
        """Return the prompt as the model reads it."""
        return text_of(request)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities of given continuations' tokens."""
        return in_order(self.score_as_ready(requests))

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Batches[Scored]:
        """Yield the responses of :meth:`score`, some at a time."""
        return _in_chunks(self.score, requests)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return generated continuations."""
        return in_order(self.generate_as_ready(requests))

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Batches[Generated]:
        """Yield the responses of :meth:`generate`, some at a time."""
        return _in_chunks(self.generate, requests)

    def check_files(self) -> None:
        """Raise :class:`~pytest_kbrel.errors.ModelError` where a file that it was read from has changed."""

    def close(self) -> None:
        """Free the model's resources."""


class ServedModel(Model):
    """Model behind a server; ``served`` are the names of served models in its replies so far."""

    served: set[str]

    def about(self) -> str:
        """Return the server's entry for the model, in a text that is the same for each call."""
        raise NotImplementedError


def _in_chunks(
    ask: Callable[[Sequence[Q]], list[A]], requests: Sequence[Q]
) -> Iterator[list[tuple[int, A]]]:
    for start in range(0, len(requests), _CHUNK):
        chunk = requests[start : start + _CHUNK]
        yield list(enumerate(check_count(chunk, ask(chunk)), start))


@record
class Spec:
    """Parsed and checked spec of a model; each backend has a record of its own.

    ``text`` is the spec as the user wrote it. ``notes`` say what was typed and has no effect, a sentence each.
    """

    text: str
    backend: str
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What reports call the model: its text, with the files and the version that are loaded."""
        return self.text

    @property
    def chats(self) -> bool:
        """True if prompts are put into a chat template."""
        return False

    @property
    def decoding(self) -> str:
        """How each token of an answer is chosen."""
        return "greedy"


class Embedder(Protocol):
    """Opened encoder of texts."""

    def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector a text, as lists or an array; raises ``ModelError``."""
        ...

    def close(self) -> None:
        """Free the encoder's resources."""
        ...


@record
class Backend:
    """Kind of model: functions that parse, check and open a spec, and its properties.

    ``name`` is the word before the slash of a spec, ``forms`` are the ways to write one (for messages), and
    ``args`` the keys of the arguments that ``parse`` reads.

    ``parse(text, args, device=, dtype=, batch_size=, chat_template=)`` loads nothing; ``check(spec)`` finds
    errors before a model is opened; ``open(spec, threads=)`` is as ``open_model`` of
    :mod:`pytest_kbrel.models.registry`; ``counter(spec)`` counts tokens without weights. All raise
    :class:`~pytest_kbrel.errors.ModelError`. ``gpus(spec)`` is the number of GPUs a process needs for itself,
    0 if it can share one, ``None`` if it uses all that it sees. ``embedder(text, args, folder)`` opens an
    encoder of texts, whose path begins at ``folder``; ``None``: there is none. ``unscorable(spec)`` is why a
    model gives no probabilities of given texts, empty if it gives them, and may ask a server.
    ``computes_here``: whether the test process computes them, and so uses the GPUs of its machine.
    ``announcement(spec)`` says what opening it will load or ask, before anything is, or is empty.
    """

    name: str
    forms: tuple[str, ...]
    args: tuple[str, ...]
    parse: Callable[..., Spec]
    check: Callable[[Any], object]
    open: Callable[..., Model]
    counter: Callable[[Any], TokenCounter]
    gpus: Callable[[Any], int | None] = lambda spec: 0
    embedder: Callable[[str, str, Path], Embedder] | None = None
    is_served: bool = False
    computes_here: bool = False
    unscorable: Callable[[Any], str] = lambda spec: ""
    announcement: Callable[[Any], str] = lambda spec: ""
    gives_top_tokens: bool = False


def check_count(requests: Sequence[Request], responses: list[A]) -> list[A]:
    """Return ``responses``; raise :class:`ResponseError` if they are more or fewer than ``requests``."""
    if len(responses) != len(requests):
        raise ResponseError(
            f"the model gave {len(responses)} answers to {len(requests)} requests"
        )
    return responses


def responses_of(model: Model, requests: Sequence[Request]) -> dict[Request, Response]:
    """Return the response to each of several different requests, asked in one call a kind.

    Raises :class:`ResponseError` if the model returns more or fewer responses than requests.
    """
    asked: tuple[tuple[type, Callable[[Any], list[Any]]], ...] = (
        (ScoreRequest, model.score),
        (GenerateRequest, model.generate),
    )
    responses: dict[Request, Response] = {}
    for kind, ask in asked:
        if some := [request for request in requests if isinstance(request, kind)]:
            responses |= zip(some, check_count(some, ask(some)), strict=True)
    return responses


def in_order(batches: Iterable[list[tuple[int, A]]]) -> list[A]:
    """Return the responses of all batches, which come with their positions, as one list in that order."""
    by_position = {
        position: response for batch in batches for position, response in batch
    }
    return [by_position[position] for position in range(len(by_position))]


def check_size(request: Request, response: Response) -> Response:
    """Return the response, or a failure if it is far longer than its tokens can be."""
    if isinstance(request, GenerateRequest) and isinstance(response, Generated):
        most = _CHARACTERS_PER_TOKEN * request.max_new_tokens + _EXTRA_CHARACTERS
        if len(response.text) > most:
            return Failed(
                error=f"an answer of {len(response.text):,} characters to a question for "
                f"{request.max_new_tokens:,} tokens; allowed: at most {most:,}"
            )
    return response


def check_probabilities(response: Response) -> Response:
    """Return the response, or a failure if one of its probabilities is not a number from 0 to 1."""
    values: list[float | None] = []
    if isinstance(response, Scored):
        values += response.probabilities
    elif isinstance(response, Generated):
        values += [response.probability, response.first_probability]
        for step in response.steps:
            values += [step.probability, step.watched]
        for tokens in response.top:
            values += [math.exp(min(nats, 1.0)) for _, nats in tokens]
    for value in values:
        # Both comparisons are false for NaN.
        if value is not None and not 0.0 <= value <= 1.0:
            return Failed(error=f"not a probability: {value}")
    return response


# The rule of thumb for English text: a server does not tell its model's tokenizer.
CHARACTERS = 4


class TokenCounter:
    """Counter of the tokens of requests; this one takes one token for each :data:`CHARACTERS` characters.

    ``exact`` says that tokens are those of the model's own tokenizer, ``unscorable`` why the model can score
    no continuation. ``tokenizer_digest`` is as in a fingerprint, empty where it is not known. ``thoughts`` are the most tokens of a thought before an answer, which are not counted.
    """

    exact = False
    unscorable = ""
    tokenizer_digest = ""

    def __init__(self, instruction: str = "", thoughts: int = 0) -> None:
        self._instruction, self.thoughts = instruction, thoughts

    def prompt(self, request: Request) -> int:
        """Return the number of tokens of the prompt, as the model's responses state it."""
        return self._tokens(text_of(request, self._instruction))

    def continuation(self, request: ScoreRequest) -> int:
        """Return the number of tokens of the continuation."""
        return self._tokens(request.continuation)

    def digest(self, request: Request) -> str:
        """Return the digest of the prompt, as the model's responses state it; empty where it is not known.

        Raises ``ValueError`` where the model refuses the request.
        """
        return ""

    def _tokens(self, text: str) -> int:
        return math.ceil(len(text) / CHARACTERS)


class WordCounter(TokenCounter):
    """Counter of words, which are the tokens of a scripted model."""

    exact = True

    def _tokens(self, text: str) -> int:
        return len(text.split())
