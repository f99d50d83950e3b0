"""How many tokens requests have, counted without weights."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Protocol

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.messages import text_of
from pytest_kbrel.models.openai_spec import OpenAISpec
from pytest_kbrel.models.script import ScriptedSpec
from pytest_kbrel.models.vllm_spec import VllmSpec
from pytest_kbrel.records import Request, ScoreRequest

if TYPE_CHECKING:
    from pytest_kbrel.models.hf_feeding import Feeder
    from pytest_kbrel.models.registry import AnySpec
    from pytest_kbrel.models.spec import ModelSpec

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


def open_counter(spec: AnySpec) -> Counter:
    """Return what counts a model's tokens: its own tokenizer, words for a script, an estimate for a server.

    Raises :class:`ModelError` where a checkpoint's tokenizer cannot be loaded.
    """
    if isinstance(spec, OpenAISpec):
        return Estimating(spec.chat.system_instruction)
    if isinstance(spec, ScriptedSpec):
        return _Words()
    return _Tokenising(open_feeder(spec.checkpoint if isinstance(spec, VllmSpec) else spec))


def open_feeder(spec: ModelSpec) -> Feeder:
    """Return what counts the tokens that go through a checkpoint: its config and tokenizer are read.

    Raises as :func:`open_counter`.
    """
    from pytest_kbrel.models import hf

    hf.check(spec)
    try:
        from pytest_kbrel.models.budget import token_budget
        from pytest_kbrel.models.hf_feeding import Feeder
        from pytest_kbrel.models.hf_loading import device_of, load_outline
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

    def __init__(self, instruction: str = "") -> None:
        self._instruction = instruction

    def prompt(self, request: Request) -> int:
        """Return the estimated number of tokens of the prompt, with the model's own system message."""
        return math.ceil(len(text_of(request, self._instruction)) / CHARACTERS)

    def continuation(self, request: ScoreRequest) -> int:
        """Return the estimated number of tokens of the continuation."""
        return math.ceil(len(request.continuation) / CHARACTERS)


class _Words:
    """The tokens of a scripted model, which computes nothing."""

    exact = True
    feeder = None

    def prompt(self, request: Request) -> int:
        return len(text_of(request).split())

    def continuation(self, request: ScoreRequest) -> int:
        return len(request.continuation.split())


class _Tokenising:
    exact = True

    def __init__(self, feeder: Feeder) -> None:
        self.feeder = feeder
        self._encoder = feeder.encoder
        # MONITOR puts a continuation and a question to the same prompt.
        self._tokens = functools.lru_cache(_REMEMBERED)(lambda text: len(self._encoder.encoded(text)))

    def prompt(self, request: Request) -> int:
        try:
            return self._tokens(self._encoder.text(request))
        except ValueError:
            return 0

    def continuation(self, request: ScoreRequest) -> int:
        try:
            return len(self._encoder.pair(request).targets)
        except ValueError:
            # The model refuses it and computes nothing.
            return 0
