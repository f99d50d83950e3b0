"""Token counters: the number of tokens of requests, without weights."""

from __future__ import annotations

import functools
import math
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.errors import ModelError
from pytest_kbrel.models.chat import text_of
from pytest_kbrel.records import Request, ScoreRequest

if TYPE_CHECKING:
    from pytest_kbrel.models.hf.spec import ModelSpec

# The rule of thumb for English text: a server does not tell its model's tokenizer.
CHARACTERS = 4
# Prompts; more than a chunk of MONITOR's requests has.
_REMEMBERED = 16384


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


class TokenizerCounter(TokenCounter):
    """Counter by a checkpoint's own tokenizer; raises :class:`ModelError` where that does not load."""

    exact = True

    def __init__(self, spec: ModelSpec) -> None:
        try:
            from pytest_kbrel.models.checkpoint.fingerprint import tokenizer_digest
            from pytest_kbrel.models.hf.loading import load_outline
        except ImportError as error:
            raise ModelError(
                f"loading {spec.text}: torch or transformers does not import: {error}"
            ) from None
        _, self._encoder = load_outline(spec, again=True)
        if spec.is_local:
            self.tokenizer_digest = tokenizer_digest(
                spec, Path(spec.location), self._encoder.tokenizer
            )
        self.unscorable = self._encoder.unscorable
        may_think = (
            self._encoder.marks is not None and spec.chat.enable_thinking is not False
        )
        self.thoughts = spec.chat.max_thinking_tokens if may_think else 0
        # MONITOR puts a continuation and a question to the same prompt.
        self._length = functools.lru_cache(_REMEMBERED)(
            lambda text: len(self._encoder.encoded(text))
        )

    def prompt(self, request: Request) -> int:
        """Return the number of tokens of the prompt, 0 where the model refuses it."""
        try:
            return self._length(self._encoder.text(request))
        except ValueError:
            return 0

    def digest(self, request: Request) -> str:
        """Return the digest of the prompt's token ids; raises ``ValueError`` where the model refuses it."""
        encoder = self._encoder
        if isinstance(request, ScoreRequest):
            return encoder.digest(encoder.pair(request).prompt)
        return encoder.digest(encoder.prompt(request))

    def continuation(self, request: ScoreRequest) -> int:
        """Return the number of tokens of the continuation, 0 where the model refuses it."""
        try:
            return len(self._encoder.pair(request).targets)
        except ValueError:
            return 0
