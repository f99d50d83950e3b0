"""Scripted model whose answers are functions, and which counts what it is asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from pytest_kbrel.models.base import check_probabilities, check_size, responses_of
from pytest_kbrel.models.scripted import (
    Probabilities,
    ScriptedModel,
    ScriptRule,
)


class FunctionModel(ScriptedModel):
    """Answers what the functions return, at once and without torch; the place for a real model in tests.

        model = FunctionModel(
            answers=lambda prompt: "Paris" if "France" in prompt else "unsure",
            probability=lambda prompt, continuation: 0.9 if continuation == " Paris" else 0.01,
        )

    Return ``float("nan")`` from ``probability`` to play a broken model, ``""`` from ``answers`` a mute one.
    ``fails`` maps a prompt to an error's text, or ``None``. ``score_calls``, ``generate_calls`` count calls
    and ``requests`` keeps all that was asked, in order. Two models of one ``name`` are one model.
    """

    def __init__(
        self,
        answers: Callable[[str], str] = lambda prompt: "unsure",
        probability: Callable[
            [str, str], Probabilities
        ] = lambda prompt, continuation: 0.5,
        *,
        fails: Callable[[str], str | None] = lambda prompt: None,
        name: str = "scripted",
    ) -> None:
        super().__init__(
            _Functions(answers, probability, fails),
            spec=name,
            digest=hashlib.sha256(name.encode()).hexdigest(),
        )
        self.score_calls = 0
        self.generate_calls = 0
        self.requests = []
        self.closed = False

    def score(self, requests):
        self.score_calls += 1
        self.requests += requests
        return super().score(requests)

    def generate(self, requests):
        self.generate_calls += 1
        self.requests += requests
        return super().generate(requests)

    def close(self):
        self.closed = True


def answers_of(model):
    """Return what answers a probe's requests as a session does: checked, and equal ones asked once."""

    def answer(requests, to=""):
        responses = responses_of(model, list(dict.fromkeys(requests)))
        return [
            check_size(request, check_probabilities(responses[request]))
            for request in requests
        ]

    return answer


class Forgetful(FunctionModel):
    """Answers as FunctionModel and keeps no requests, for tests that measure the memory of others."""

    def score(self, requests):
        answers = super().score(requests)
        self.requests.clear()
        return answers

    def generate(self, requests):
        answers = super().generate(requests)
        self.requests.clear()
        return answers


class _Functions:
    def __init__(self, answers, probability, fails):
        self._text, self.probability, self._fails = answers, probability, fails

    def text(self, prompt):
        return self._text(prompt), ()

    def faults(self, prompt):
        error = self._fails(prompt)
        return (ScriptRule(error=error),) if error else ()
