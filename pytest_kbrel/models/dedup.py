"""Asks a model each thing once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pytest_kbrel.errors import ResponseError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.keys import key_of
from pytest_kbrel.models.session_cache import Told
from pytest_kbrel.records import Failed, Generated, GenerateRequest, Request, Response, Scored, ScoreRequest

A = TypeVar("A")
# The longest tokens there are have some hundred characters.
_A_TOKEN, _ENVELOPE = 1_000, 10_000


class Asker:
    """Wraps a model for one session: the same request is put to it once, whoever repeats it.

    What was said lies in a temporary file, so that memory does not grow with the session. ``asked`` counts
    the requests that came in, ``answered`` those the model was really given. A failed request is not
    remembered: who asks again gets another try.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.asked = 0
        self.answered = 0
        self._told = Told()

    def ask(self, requests: Sequence[Request]) -> list[Response]:
        """Return one response per request, in order.

        Raises :class:`ResponseError` when the model returns more or fewer answers than it was asked for.
        """
        keys = {request: key_of("", request) for request in dict.fromkeys(requests)}
        told = self._told.find(list(keys.values()))
        known = {request: told[key] for request, key in keys.items() if key in told}
        new = [request for request in keys if request not in known]
        to_score = [request for request in new if isinstance(request, ScoreRequest)]
        to_generate = [request for request in new if isinstance(request, GenerateRequest)]
        answers: dict[Request, Response] = {}
        if to_score:
            scored = one_each(to_score, self.model.score(to_score))
            answers.update(zip(to_score, map(numbers_only, scored), strict=True))
        if to_generate:
            generated = one_each(to_generate, self.model.generate(to_generate))
            sound = (
                within_size(request, numbers_only(said))
                for request, said in zip(to_generate, generated, strict=True)
            )
            answers.update(zip(to_generate, sound, strict=True))
        self.asked += len(requests)
        self.answered += len(new)
        self._told.keep(
            {keys[request]: said for request, said in answers.items() if not isinstance(said, Failed)}
        )
        answers |= known
        return [answers[request] for request in requests]


def one_each(requests: Sequence[Request], answers: list[A]) -> list[A]:
    """Return ``answers``; raise :class:`ResponseError` where they are more or fewer than ``requests``."""
    if len(answers) != len(requests):
        raise ResponseError(f"the model gave {len(answers)} answers to {len(requests)} requests")
    return answers


def in_order(batches: Iterable[list[tuple[int, A]]]) -> list[A]:
    """Return the answers of all batches in the order of their places."""
    found = {place: answer for batch in batches for place, answer in batch}
    return [found[place] for place in range(len(found))]


def within_size(request: Request, response: Response) -> Response:
    """Turn an answer far longer than its tokens can be into a failure: it is no answer to this request."""
    if isinstance(request, GenerateRequest) and isinstance(response, Generated):
        most = _A_TOKEN * request.max_new_tokens + _ENVELOPE
        if len(response.text) > most:
            return Failed(
                error=f"an answer of {len(response.text):,} characters to a question for "
                f"{request.max_new_tokens:,} tokens; allowed: at most {most:,}"
            )
    return response


def numbers_only(response: Response) -> Response:
    """Turn probabilities that are no numbers into a failure: they must never become a score."""
    values: Iterable[float] = ()
    if isinstance(response, Scored):
        values = response.probabilities
    elif isinstance(response, Generated) and response.steps:
        values = [p for step in response.steps for p in (step.probability, step.watched) if p is not None]
    for value in values:
        # Of NaN neither is true.
        if not 0.0 <= value <= 1.0:
            return Failed(error=f"not a probability: {value}")
    return response
