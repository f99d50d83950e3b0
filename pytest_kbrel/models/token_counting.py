"""How many tokens requests have, counted without weights."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Protocol

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.records import Request, ScoreRequest

if TYPE_CHECKING:
    from pytest_kbrel.models.hf.batch_plan import Feeder
    from pytest_kbrel.models.hf.spec import ModelSpec

# The rule of thumb for English text; nobody tells us a served model's tokenizer.
CHARACTERS = 4
# Prompts; more than a round of MONITOR has in a stretch.
_REMEMBERED = 16384


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

    @property
    def feeder(self) -> Feeder | None:
        """What counts the tokens that go through the model; ``None`` where nobody knows."""
        ...

    @property
    def thoughts(self) -> int:
        """How many tokens, which are not counted, the model may think before an answer; 0 if it does not."""
        ...


def open_feeder(spec: ModelSpec) -> Feeder:
    """Return what counts the tokens that go through a checkpoint: its config and tokenizer are read.

    Raises :class:`ModelError` where the tokenizer cannot be loaded.
    """
    try:
        from pytest_kbrel.models.hf.batch_plan import Feeder
        from pytest_kbrel.models.hf.loading import device_of, load_outline
        from pytest_kbrel.models.memory import token_budget
    except ImportError as error:
        raise ModelError(f"loading {spec.text}: torch or transformers does not import: {error}") from None
    found = load_outline(spec)
    return Feeder(
        found.config,
        found.encoder,
        longest=found.max_length,
        budget=token_budget(spec, device_of(spec).type),
    )


class Estimating:
    """One token for each :data:`CHARACTERS` characters."""

    exact = False
    # What a server computes is its own business.
    feeder = None

    def __init__(self, instruction: str = "", thoughts: int = 0) -> None:
        self._instruction, self.thoughts = instruction, thoughts

    def prompt(self, request: Request) -> int:
        """Return the estimated number of tokens of the prompt, with the model's own system message."""
        return math.ceil(len(text_of(request, self._instruction)) / CHARACTERS)

    def continuation(self, request: ScoreRequest) -> int:
        """Return the estimated number of tokens of the continuation."""
        return math.ceil(len(request.continuation) / CHARACTERS)


class Words:
    """Words, which are the tokens of a scripted model; it computes nothing."""

    exact = True
    feeder = None
    thoughts = 0

    def prompt(self, request: Request) -> int:
        """Return the number of words of the prompt."""
        return len(text_of(request).split())

    def continuation(self, request: ScoreRequest) -> int:
        """Return the number of words of the continuation."""
        return len(request.continuation.split())


class Tokenising:
    """Tokens of a checkpoint's own tokenizer; raises as :func:`open_feeder`."""

    exact = True

    def __init__(self, spec: ModelSpec) -> None:
        self.feeder = open_feeder(spec)
        self._encoder = self.feeder.encoder
        may_think = self._encoder.marks is not None and spec.chat.enable_thinking is not False
        self.thoughts = spec.chat.max_thinking_tokens if may_think else 0
        # MONITOR puts a continuation and a question to the same prompt.
        self._tokens = functools.lru_cache(_REMEMBERED)(lambda text: len(self._encoder.encoded(text)))

    def prompt(self, request: Request) -> int:
        """Return the number of tokens of the prompt, 0 where the model refuses it."""
        try:
            return self._tokens(self._encoder.text(request))
        except ValueError:
            return 0

    def continuation(self, request: ScoreRequest) -> int:
        """Return the number of tokens of the continuation, 0 where the model refuses it."""
        try:
            return len(self._encoder.pair(request).targets)
        except ValueError:
            return 0
