"""A model whose answers are kept: what was asked in an earlier run is not asked again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.cache.keys import digest_of, key_of
from pytest_kbrel.models.cache.store import Sound, Store
from pytest_kbrel.models.dedup import numbers_only, one_each
from pytest_kbrel.models.rates import RateMeter
from pytest_kbrel.models.resume.journal import Journal
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    Scored,
    ScoreRequest,
)

Q = TypeVar("Q", ScoreRequest, GenerateRequest)
A = TypeVar("A", Scored, Generated)
T = TypeVar("T")

# How many answers of a model that gives them all at once may be lost when the process is killed.
_AT_ONCE = 32


@runtime_checkable
class AnswersAsReady(Protocol):
    """A model that can hand out each text the moment it is there."""

    def generate_as_ready(
        self, requests: Sequence[GenerateRequest]
    ) -> Iterator[list[tuple[int, Generated | Failed]]]:
        """Yield answers with their requests' places, in any order, those together that came together."""
        ...


@runtime_checkable
class ScoresAsReady(Protocol):
    """A model that can hand out probabilities batch by batch."""

    def score_as_ready(self, requests: Sequence[ScoreRequest]) -> Iterator[list[tuple[int, Scored | Failed]]]:
        """Yield answers with their requests' places, in any order, those together that came together."""
        ...


class RememberingModel:
    """Wraps a model and a store. Each sound answer is kept the moment it exists; failures never are.

    An empty text of a server is not kept either: another try may bring more. ``asked`` counts the requests
    that came in, ``reused`` those that the store answered. Without a store nothing is kept.

    With a ``journal`` answers are kept for this run and one that goes on in its place.

    Where the store fails, ``on_trouble`` is told, and the model goes on without it; without ``on_trouble``
    the :class:`StoreError` is raised.
    """

    def __init__(
        self,
        model: Model,
        store: Store | None,
        *,
        on_trouble: Callable[[StoreError], None] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.model = model
        self.store = store
        self.asked = 0
        self.reused = 0
        self.meter = RateMeter()
        self._on_trouble = on_trouble
        # Once: what a server says it serves may come to be known later, and must not change any key.
        self._who = model.describe()
        self._digest = digest_of(self._who) if journal is None else journal.digest
        self._journal = journal

    def describe(self) -> Fingerprint:
        """Say what the model is."""
        return self.model.describe()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return one answer per request, in order."""
        model = self.model
        if isinstance(model, ScoresAsReady):
            return self._answers(requests, Scored, model.score_as_ready)
        return self._answers(requests, Scored, lambda new: self._in_pieces(new, model.score))

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return one answer per request, in order."""
        model = self.model
        if isinstance(model, AnswersAsReady):
            return self._answers(requests, Generated, model.generate_as_ready)
        return self._answers(requests, Generated, lambda new: self._in_pieces(new, model.generate))

    def close(self) -> None:
        """Close model and store."""
        self.model.close()
        self.close_store()

    def close_store(self) -> None:
        """Close the store; from here on nothing is kept."""
        if self.store is not None:
            self.store.close()
        self.store = None

    def _answers(
        self,
        requests: Sequence[Q],
        kind: type[A],
        ask: Callable[[Sequence[Q]], Iterator[list[tuple[int, A | Failed]]]],
    ) -> list[A | Failed]:
        # Without a store nobody asks for a key.
        keys = {} if self.store is None else {one: key_of(self._digest, one) for one in requests}
        by_key: dict[str, Q] = {key: request for request, key in keys.items()}
        known: dict[str, Sound] = self._with_store(lambda store: self._get(by_key, store), {})
        found: dict[Q, A | Failed] = {
            by_key[key]: answer for key, answer in known.items() if isinstance(answer, kind)
        }
        self.asked += len(requests)
        self.reused += sum(request in found for request in requests)
        new = [request for request in dict.fromkeys(requests) if request not in found]
        method = "score" if kind is Scored else "generate"
        for batch in self.meter.timed(method, ask(new)) if new else ():
            found |= {new[place]: answer for place, answer in batch}
            if self.store is None:
                continue
            sound = [
                (keys[new[place]], answer)
                for place, answer in batch
                if not isinstance(answer, Failed) and self._is_sound(answer)
            ]
            failed = sum(isinstance(answer, Failed) for _, answer in batch)
            self._with_store(functools.partial(self._put, sound, by_key, failed), None)
        return [found[request] for request in requests]

    def _get(self, asked: Mapping[str, Request], store: Store) -> dict[str, Sound]:
        return store.get(list(asked)) if self._journal is None else self._journal.get(store, asked)

    def _put(
        self, answers: Sequence[tuple[str, Sound]], asked: Mapping[str, Request], failed: int, store: Store
    ) -> None:
        if self._journal is None:
            store.put(answers, self._who)
        else:
            self._journal.put(store, self.model, answers, asked)
            self._journal.note_failures(store, failed)

    def _with_store(self, action: Callable[[Store], T], otherwise: T) -> T:
        if self.store is None:
            return otherwise
        try:
            return action(self.store)
        except StoreError as error:
            if self._on_trouble is None:
                raise
            self._on_trouble(error)
            self.close_store()
            return otherwise

    def _in_pieces(
        self, requests: Sequence[Q], ask: Callable[[Sequence[Q]], list[A | Failed]]
    ) -> Iterator[list[tuple[int, A | Failed]]]:
        for start in range(0, len(requests), _AT_ONCE):
            piece = requests[start : start + _AT_ONCE]
            yield list(enumerate(one_each(piece, ask(piece)), start))

    def _is_sound(self, answer: Scored | Generated) -> bool:
        # A checkpoint here would say nothing again.
        at_server = not self._who.weights_digest
        if at_server and isinstance(answer, Generated) and not answer.text.strip():
            return False
        return not isinstance(numbers_only(answer), Failed)
