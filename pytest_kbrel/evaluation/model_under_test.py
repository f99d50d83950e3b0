"""The model under test as tests in Python ask it: text by text, through what the session keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.evaluation.model_pool import ModelPool
from pytest_kbrel.models.base import Model
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Response,
    Scored,
    ScoreRequest,
)

_LONGEST = 200


class ModelUnderTest(Model):
    """The model under test. Its answers come from the cache where they are known.

    The chat template is applied where the run applies one. ``to`` is who is asked, as
    :class:`pytest_kbrel.records.Ask` has it, ``case`` the node id that asks; ``asked`` fills up with what was
    asked and answered.
    """

    def __init__(self, pool: ModelPool) -> None:
        self.to = self.case = ""
        self.asked: list[tuple[Request, Response]] = []
        self._pool = pool

    @property
    def unscorable(self) -> str:
        """Why it can score no answer; empty if it can."""
        return self._pool.unscorable()

    def describe(self) -> Fingerprint:
        """Return the model's fingerprint, by content."""
        return self._pool.fingerprint()

    def rendered(self, request: Request) -> str:
        """Return the prompt as the model reads it, empty where it cannot be rendered."""
        return self._pool.rendered(request, self.case)

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the probabilities of given continuations' tokens."""
        return self._responses(requests)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return generated continuations."""
        return self._responses(requests)

    def ask(
        self,
        question: str,
        *,
        system: str = "",
        lead: str = "",
        max_new_tokens: int = 32,
        stop: Sequence[str] = ("\n",),
    ) -> str:
        """Return the greedy answer to a question, which is put as it is, up to one of the ``stop`` strings.

        ``lead`` is the given beginning of the answer.
        Raises ``ResponseError`` where there is none.
        """
        __tracebackhide__ = True
        request = GenerateRequest(
            prompt=question,
            max_new_tokens=max_new_tokens,
            stop=tuple(stop),
            system=system,
            lead=lead,
        )
        (response,) = self.generate([request])
        if isinstance(response, Failed):
            raise _no_answer("ask", question, response)
        return response.text.strip()

    def probability(
        self, prompt: str, continuation: str, *, system: str = "", lead: str = ""
    ) -> float:
        """Return how probable a continuation is behind a prompt, 0..1: the product over its tokens.

        Under a chat template the prompt is the user's turn, and the continuation begins the answer, or
        follows its ``lead``.
        Raises ``ResponseError`` where the model does not say.
        """
        __tracebackhide__ = True
        request = ScoreRequest(
            prompt=prompt, continuation=continuation, system=system, lead=lead
        )
        (response,) = self.score([request])
        if isinstance(response, Failed):
            raise _no_answer("probability", f"{prompt}{continuation}", response)
        return math.prod(response.probabilities)

    def _responses(self, requests: Sequence[Request]) -> list[Any]:
        # What a test asks is kept when it ends, and until then not asked again.
        known: dict[Request, Response] = {
            request: response
            for request, response in self.asked
            if not isinstance(response, Failed)
        }
        new = [request for request in dict.fromkeys(requests) if request not in known]
        known |= zip(new, self._pool.ask(new, self.to, self.case), strict=True)
        self.asked += [(request, known[request]) for request in requests]
        return [known[request] for request in requests]


def _no_answer(method: str, text: str, response: Failed) -> ResponseError:
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return ResponseError(
        f"kb_model.{method}({shown!r}) got no answer: {response.error}"
    )
