"""Token counters: the number of tokens of requests, without weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pytest_kbrel.models.chat import text_of
from pytest_kbrel.records import Request, ScoreRequest

if TYPE_CHECKING:
    pass

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
