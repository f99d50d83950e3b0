"""A model without weights, for tests of suites, probes and plugins."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from pytest_kbrel import SCORING_VERSION
from pytest_kbrel.models.hf_tokens import prompt_digest
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
    Step,
)


class ScriptedModel:
    """Answers what you script, at once and without torch; the place for a real model in tests.

        model = ScriptedModel(
            answers=lambda prompt: "Paris" if "France" in prompt else "unsure",
            probability=lambda prompt, continuation: 0.9 if continuation == " Paris" else 0.01,
        )

    ``answers`` maps a prompt to the text that follows it; stop strings and ``max_new_tokens`` then cut it as
    they cut a real model's. ``probability`` maps a prompt and a continuation to the probability (0..1) of
    each of its tokens. Return ``float("nan")`` to play a broken model, ``""`` from ``answers`` a mute one.
    The tokens are words parted by spaces. ``fails`` maps a prompt to an error's text, or ``None``.

    ``score_calls``, ``generate_calls`` count calls and ``requests`` keeps all that was asked, in order.
    ``name`` enters the fingerprint's digests: two models of different name are different models.
    """

    def __init__(
        self,
        answers: Callable[[str], str] = lambda prompt: "unsure",
        probability: Callable[[str, str], float] = lambda prompt, continuation: 0.5,
        *,
        fails: Callable[[str], str | None] = lambda prompt: None,
        name: str = "scripted",
    ) -> None:
        self._answers = answers
        self._probability = probability
        self._fails = fails
        self._name = name
        self.score_calls = 0
        self.generate_calls = 0
        self.requests: list[ScoreRequest | GenerateRequest] = []
        self.closed = False

    def describe(self) -> Fingerprint:
        """Return a fingerprint with the backend ``scripted`` and digests made from the name."""
        digest = hashlib.sha256(self._name.encode()).hexdigest()
        return Fingerprint(
            spec=self._name,
            backend="scripted",
            backend_version="1",
            architecture="ScriptedModel",
            parameters=0,
            weights_digest=digest,
            tokenizer_digest=hashlib.sha256(b"words").hexdigest(),
            dtype="float32",
            device="cpu",
            scoring_version=SCORING_VERSION,
        )

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return the scripted probability for each word of each continuation."""
        self.score_calls += 1
        self.requests += requests
        return [self._score(request) for request in requests]

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return the scripted texts, cut at stop strings and at ``max_new_tokens`` words."""
        self.generate_calls += 1
        self.requests += requests
        return [self._generate(request) for request in requests]

    def close(self) -> None:
        """Note in ``closed`` that it happened."""
        self.closed = True

    def _score(self, request: ScoreRequest) -> Scored | Failed:
        if error := self._fails(request.prompt):
            return Failed(error=error)
        tokens = tuple(map(_token_id, request.continuation.split()))
        if not tokens:
            return Failed(error=f"the continuation {request.continuation!r} has no tokens")
        prompt = tuple(map(_token_id, request.prompt.split()))
        return Scored(
            probabilities=(float(self._probability(request.prompt, request.continuation)),) * len(tokens),
            token_ids=tokens,
            prompt_tokens=len(prompt),
            prompt_digest=prompt_digest(prompt),
        )

    def _generate(self, request: GenerateRequest) -> Generated | Failed:
        if error := self._fails(request.prompt):
            return Failed(error=error)
        text = self._answers(request.prompt)
        cut = min((text.find(stop) for stop in request.stop if stop in text), default=len(text))
        words = text[:cut].split()
        # A model ends its text by one more token, and has room for it or not.
        stopped = len(words) < request.max_new_tokens
        words = words[: request.max_new_tokens]
        prompt = tuple(map(_token_id, request.prompt.split()))
        return Generated(
            text=text[:cut].strip() if stopped else " ".join(words),
            token_ids=tuple(map(_token_id, words)),
            finish="stop" if stopped else "length",
            prompt_tokens=len(prompt),
            prompt_digest=prompt_digest(prompt),
            steps=tuple(self._step(request, k, word) for k, word in enumerate(words))
            if request.steps
            else (),
        )

    def _step(self, request: GenerateRequest, index: int, word: str) -> Step:
        token, probability = _token_id(word), float(self._probability(request.prompt, word))
        watched = None
        if index < len(request.watch):
            watched = probability if request.watch[index] == token else 0.0
        return Step(token_id=token, token=word, probability=probability, watched=watched)


def _token_id(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
