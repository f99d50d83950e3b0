"""Model wrapper with a response cache between runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import (
    Model,
    check_probabilities,
)
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.cache.measurements import RateMeter
from pytest_kbrel.models.cache.store import Answer, Store, digest_of, key_of
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.cache.journal import Journal

Q = TypeVar("Q", ScoreRequest, GenerateRequest)
A = TypeVar("A", Scored, Generated)
T = TypeVar("T")


class CachingModel(Model):
    """Model whose valid responses are stored as they arrive, and looked up before the model is called.

    Failures are not stored, nor is an empty text of a server, since another try may bring more. Answers of a
    checkpoint that an older version stored without their probability are asked for again. ``requested``
    counts the requests, ``reused`` those that the store answered. With a ``journal`` responses are stored for
    this run and one that goes on in its place. Without a store nothing is stored. ``on_answers`` is called
    with the number of responses that have arrived, and with whether the model gave them or the store.

    If the store fails, ``on_trouble`` is called once and the model goes on without it.
    """

    def __init__(
        self,
        model: Model,
        store: Store | None,
        *,
        on_trouble: Callable[[StoreError], None] = lambda _: None,
        journal: Journal | None = None,
    ) -> None:
        self.model = model
        self.store = store
        self.requested = 0
        self.reused = 0
        self.meter = RateMeter()
        self.on_answers: Callable[[int, bool], None] = lambda *_: None
        self._on_trouble = on_trouble
        # Once: a server may say later what it serves, and that must not change any key.
        self._fingerprint = model.describe()
        self._who = digest_of(self._fingerprint)
        self._journal = journal

    def describe(self) -> Fingerprint:
        """Return the model's fingerprint."""
        return self.model.describe()

    def score(self, requests: Sequence[ScoreRequest]) -> list[Scored | Failed]:
        """Return one response per request, in order."""
        return self._responses(requests, Scored, self.model.score_as_ready)

    def generate(self, requests: Sequence[GenerateRequest]) -> list[Generated | Failed]:
        """Return one response per request, in order."""
        return self._responses(requests, Generated, self.model.generate_as_ready)

    def close(self) -> None:
        """Close model and store."""
        self.model.close()
        self.close_store()

    def close_store(self) -> None:
        """Close the store; from here on nothing is stored."""
        if self.store is not None:
            self.store.close()
        self.store = None

    def _responses(
        self,
        requests: Sequence[Q],
        kind: type[A],
        ask: Callable[[Sequence[Q]], Batches[A]],
    ) -> list[A | Failed]:
        # Without a store nobody needs a key.
        keys: dict[Q, str] = (
            {}
            if self.store is None
            else {request: key_of(self._who, request) for request in requests}
        )
        stored: dict[str, Answer] = {}
        if self.store is not None:
            with self._storing():
                stored = self.store.get([*keys.values()], self._digest)
                if self._journal is not None:
                    self._journal.use([*stored])
        responses: dict[Q, A | Failed] = {
            request: answer
            for request, key in keys.items()
            if isinstance(answer := stored.get(key), kind)
        }
        self.requested += len(requests)
        reused = sum(request in responses for request in requests)
        self.reused += reused
        self.on_answers(reused, False)
        new = [
            request for request in dict.fromkeys(requests) if request not in responses
        ]
        method = "score" if kind is Scored else "generate"
        for batch in self.meter.timed(method, ask(new)) if new else ():
            responses |= {new[position]: response for position, response in batch}
            self.on_answers(len(batch), True)
            if self.store is None:
                continue
            valid = [
                (keys[new[position]], new[position], response)
                for position, response in batch
                if not isinstance(response, Failed) and self._is_valid(response)
            ]
            with self._storing():
                self.store.put(
                    valid,
                    self._fingerprint,
                    self._digest,
                    with_requests=self._journal is not None,
                )
                if self._journal is not None:
                    self._journal.note(sum(isinstance(of, Failed) for _, of in batch))
        return [responses[request] for request in requests]

    @property
    def _digest(self) -> str:
        """The digest of what responses belong to: the model, or the journal of a served one."""
        return self._who if self._journal is None else self._journal.digest

    @contextlib.contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self._on_trouble(error)
            self.close_store()

    def _is_valid(self, answer: Answer) -> bool:
        if isinstance(check_probabilities(answer), Failed):
            return False
        # A checkpoint here would return the same empty text again.
        is_text = isinstance(answer, Scored) or answer.text.strip()
        return bool(is_text or self._fingerprint.weights_digest)
