"""A model whose answers are kept: what was asked in an earlier run is not asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from pytest_kbrel.models.asking import numbers_only, one_each
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.store import Store, key_of
from pytest_kbrel.records import Failed, Fingerprint, Generated, GenerateRequest, Scored, ScoreRequest

Q = TypeVar("Q", ScoreRequest, GenerateRequest)
A = TypeVar("A", Scored, Generated)

# How many answers of a model that gives them all at once may be lost when the process is killed.
_AT_ONCE = 32


@runtime_checkable
class AnswersAsReady(Protocol):
    """A model that can hand out each text the moment it is there."""

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[tuple[int, Generated | Failed]]:
        """Yield each answer with its request's place, in any order."""
        ...


class RememberingModel:
    """Wraps a model and a store. Each sound answer is kept the moment it exists; failures never are.

    An empty text is not kept either: another try may bring more. ``asked`` counts the requests that came in,
    ``reused`` those that the store answered.
    """

    def __init__(self, model: Model, store: Store) -> None:
        self.model = model
        self.store = store
        self.asked = 0
        self.reused = 0
        # Once: what a server says it serves may come to be known later, and must not change any key.
        self._who = model.describe()

    def describe(self) -> Fingerprint:
        """Say what the model is."""
        return self.model.describe()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return one answer per request, in order."""
        return self._answers(requests, Scored, lambda new: self._in_pieces(new, self.model.score))

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return one answer per request, in order."""
        model = self.model
        if isinstance(model, AnswersAsReady):
            return self._answers(requests, Generated, model.generate_as_ready)
        return self._answers(requests, Generated, lambda new: self._in_pieces(new, model.generate))

    def close(self) -> None:
        """Close model and store."""
        self.model.close()
        self.store.close()

    def _answers(
        self,
        requests: Sequence[Q],
        kind: type[A],
        ask: Callable[[Sequence[Q]], Iterator[tuple[int, A | Failed]]],
    ) -> list[A | Failed]:
        keys = [key_of(self._who, request) for request in requests]
        found: dict[str, A | Failed] = {
            key: answer for key, answer in self.store.get(keys).items() if isinstance(answer, kind)
        }
        self.asked += len(keys)
        self.reused += sum(key in found for key in keys)
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in found}
        new_keys = list(new)
        for place, answer in ask(list(new.values())) if new else ():
            found[new_keys[place]] = answer
            if not isinstance(answer, Failed) and _is_sound(answer):
                self.store.put([(new_keys[place], answer)])
        return [found[key] for key in keys]

    def _in_pieces(
        self, requests: Sequence[Q], ask: Callable[[Sequence[Q]], list[A | Failed]]
    ) -> Iterator[tuple[int, A | Failed]]:
        for start in range(0, len(requests), _AT_ONCE):
            piece = requests[start : start + _AT_ONCE]
            yield from enumerate(one_each(piece, ask(piece)), start)


def _is_sound(answer: Scored | Generated) -> bool:
    if isinstance(answer, Generated) and not answer.text.strip():
        return False
    return not isinstance(numbers_only(answer), Failed)
