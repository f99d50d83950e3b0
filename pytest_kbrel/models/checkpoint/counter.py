"""Counter of the tokens of requests by a checkpoint's own tokenizer."""

from __future__ import annotations

import functools
from pathlib import Path

from pytest_kbrel.models.base import TokenCounter
from pytest_kbrel.models.checkpoint.spec import ModelSpec, importing
from pytest_kbrel.records import Request, ScoreRequest

# Prompts; more than a chunk of MONITOR's requests has.
_REMEMBERED = 16384


class TokenizerCounter(TokenCounter):
    """Counter by a checkpoint's own tokenizer; raises :class:`ModelError` where that does not load."""

    exact = True

    def __init__(self, spec: ModelSpec) -> None:
        with importing(spec):
            from pytest_kbrel.models.checkpoint.fingerprint import (
                load_outline,
                tokenizer_digest,
            )
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
