"""How many tokens requests have, counted without weights."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.openai_spec import OpenAISpec
from pytest_kbrel.records import Request, ScoreRequest

if TYPE_CHECKING:
    from pytest_kbrel.models.hf_tokens import PromptEncoder
    from pytest_kbrel.models.opening import AnySpec

# The rule of thumb for English text; nobody tells us a served model's tokenizer.
CHARACTERS = 4


class Counter(Protocol):
    """Counts tokens; ``exact`` tells whether by the model's own tokenizer."""

    @property
    def exact(self) -> bool:
        """Whether these are the model's own tokens."""
        ...

    def prompt(self, request: Request) -> int:
        """Return the number of tokens of the prompt, as the model's responses give it."""
        ...

    def continuation(self, request: ScoreRequest) -> int:
        """Return the number of tokens that are scored."""
        ...

    def fed(self, requests: Sequence[Request]) -> int | None:
        """Return how many different tokens these hold, what they share counted once; ``None``: unknown."""
        ...


def open_counter(spec: AnySpec) -> Counter:
    """Return what counts a model's tokens: its own tokenizer, or for a server's model an estimate.

    Raises :class:`ModelError` where a checkpoint's tokenizer cannot be loaded.
    """
    if isinstance(spec, OpenAISpec):
        return Estimating()
    from pytest_kbrel.models import hf

    hf.check(spec)
    try:
        from pytest_kbrel.models.hf_loading import load_encoder
    except ImportError as error:
        raise ModelError(f"loading {spec.text}: torch or transformers does not import: {error}") from None
    return _Tokenising(load_encoder(spec))


class Estimating:
    """One token for each :data:`CHARACTERS` characters."""

    exact = False

    def prompt(self, request: Request) -> int:
        """Return the estimated number of tokens of the prompt."""
        return math.ceil(len(request.prompt) / CHARACTERS)

    def continuation(self, request: ScoreRequest) -> int:
        """Return the estimated number of tokens of the continuation."""
        return math.ceil(len(request.continuation) / CHARACTERS)

    def fed(self, requests: Sequence[Request]) -> int | None:
        """Return ``None``: what a server computes is its own business."""
        return None


class _Tokenising:
    exact = True

    def __init__(self, encoder: PromptEncoder) -> None:
        self._encoder = encoder
        # MONITOR puts a continuation and a question to the same prompt.
        self._known: dict[str, int] = {}
        self._scored: dict[ScoreRequest, int] = {}

    def prompt(self, request: Request) -> int:
        text = request.prompt
        if text not in self._known:
            self._known[text] = len(self._encoder.prompt(text))
        return self._known[text]

    def continuation(self, request: ScoreRequest) -> int:
        if request not in self._scored:
            try:
                self._scored[request] = len(self._encoder.pair(request.prompt, request.continuation).targets)
            except ValueError:
                # The model refuses it and computes nothing.
                self._scored[request] = 0
        return self._scored[request]

    def fed(self, requests: Sequence[Request]) -> int | None:
        from pytest_kbrel.models.sharing import distinct_tokens

        return distinct_tokens(ids for request in requests for ids in self._ids(request))

    def _ids(self, request: Request) -> Iterator[tuple[int, ...]]:
        if not isinstance(request, ScoreRequest):
            yield self._encoder.prompt(request.prompt)
            return
        try:
            pair = self._encoder.pair(request.prompt, request.continuation)
        except ValueError:
            return
        # The last token of an answer is never fed.
        yield (*pair.context, *pair.targets[:-1])
