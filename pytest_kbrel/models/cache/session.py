"""Response cache of one run: its models, and a session in each process.

In a small file beside it the rates of models are stored, for a later plan.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from operator import add
from pathlib import Path
from typing import Any, TypeVar

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import Model, ServedModel, check_probabilities
from pytest_kbrel.models.batching import Batches
from pytest_kbrel.models.cache.journal import Journal, begin
from pytest_kbrel.models.cache.store import (
    Answer,
    Store,
    digest_of,
    key_of,
    make_folder,
)
from pytest_kbrel.records import (
    Failed,
    Fingerprint,
    Generated,
    GenerateRequest,
    Scored,
    ScoreRequest,
)
from pytest_kbrel.untrusted import read_json

Q = TypeVar("Q", ScoreRequest, GenerateRequest)
A = TypeVar("A", Scored, Generated)
# With fewer answers than this a rate says little.
LEAST = 64
_FILE, _FIELD = "kbrel-rates.json", "rates_by_spec"
# Specs in the file, the latest ones.
_MOST = 200
# No model reads so many tokens a second.
_NONSENSE = 1e12


class RateMeter:
    """Meter of a model's tokens a second, by method: tokens of prompts and of scored answers.

    Generated tokens take time and are not counted. The first batch of a method warms the model up and is left
    out.
    """

    def __init__(self) -> None:
        # By method: responses, tokens, seconds.
        self._sums: dict[str, tuple[float, ...]] = {}

    def timed(self, method: str, batches: Batches[A]) -> Batches[A]:
        """Yield ``batches`` and time each. ``method``: ``score`` or ``generate``."""
        started = time.perf_counter()
        for batch in batches:
            seconds = time.perf_counter() - started
            new = len(batch), sum(_tokens_of(one) for _, one in batch), seconds
            sums = self._sums.get(method)
            self._sums[method] = (
                (0, 0, 0.0) if sums is None else tuple(map(add, sums, new))
            )
            yield batch
            started = time.perf_counter()

    def rates(self) -> dict[str, float]:
        """Return the tokens a second by method, for methods with at least :data:`LEAST` responses."""
        return {
            method: tokens / seconds
            for method, (responses, tokens, seconds) in self._sums.items()
            if responses >= LEAST and seconds > 0
        }


def _tokens_of(response: object) -> int:
    """Return the number of tokens read for a response, 0 for a failure."""
    if isinstance(response, Scored):
        return response.prompt_tokens + len(response.token_ids)
    return response.prompt_tokens if isinstance(response, Generated) else 0


def store_rates(folder: Path, model: Fingerprint, rates: dict[str, float]) -> None:
    """Store the rates of a run in one process; those of workers, which share a machine, are not stored.

    A failure to write is ignored. The file is replaced in one step.
    """
    if not (rates and model.weights_digest) or "PYTEST_XDIST_WORKER" in os.environ:
        return
    stored = _stored(folder)
    stored.pop(model.spec, None)
    latest = dict([*stored.items(), (model.spec, rates)][-_MOST:])
    written = folder / f"{_FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        make_folder(folder)
        written.write_text(json.dumps({_FIELD: latest}, indent=1), encoding="utf-8")
        written.replace(folder / _FILE)


def last_rates(folder: Path, text: str) -> dict[str, float]:
    """Return the rates, by method, of the checkpoint that was last run as ``text``, if any is stored.

    Only its name is looked at, so that nothing is loaded: the checkpoint may have changed since.
    """
    rates = _stored(folder).get(text)
    return {
        method: float(rate)
        for method, rate in (rates.items() if isinstance(rates, dict) else ())
        if isinstance(rate, int | float) and 0 < rate < _NONSENSE
    }


def _stored(folder: Path) -> dict[str, Any]:
    try:
        rates = read_json(folder / _FILE)[_FIELD]
    except (OSError, ValueError, LookupError, TypeError):
        return {}
    return rates if isinstance(rates, dict) else {}


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
        keys: dict[Q, str] = {}
        stored: dict[str, Answer] = {}
        if self.store is not None:
            keys = {request: key_of(self._who, request) for request in requests}
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
        new = [of for of in dict.fromkeys(requests) if of not in responses]
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


class CacheSession:
    """One process's use of the store in ``folder``; a run goes on without it if it fails.

    A ``folder`` of None stores nothing; ``run`` is the run's id. Responses of a served model are stored as
    long as the run is unfinished (see ``journal.py``), and without a ``run`` for all others. ``models`` are
    those wrapped so far, ``trouble`` is the first reason why responses are not stored, else empty.
    """

    def __init__(self, folder: Path | None, run: str = "") -> None:
        self._folder = folder
        self._run = run
        self.models: list[CachingModel] = []
        self.trouble = ""

    def wrap(self, model: Model) -> CachingModel:
        """Return the model with its responses stored, if they can be.

        Raises :class:`ModelError` if a server gives no answer to what tells its model from another.
        """
        store, own_journal = None, None
        if self._folder is not None and model.is_storable:
            with contextlib.ExitStack() as stack:
                try:
                    store = Store(self._folder)
                    stack.callback(store.close)
                    if self._run and not model.describe().weights_digest:
                        assert isinstance(model, ServedModel)
                        own_journal = begin(store, self._run, model)
                    stack.pop_all()
                except StoreError as error:
                    self._note(error)
                    store = None
        wrapped = CachingModel(model, store, on_trouble=self._note, journal=own_journal)
        self.models.append(wrapped)
        return wrapped

    def new_counts(self) -> tuple[int, int]:
        """Return the numbers of requests and of those that the store answered since the last call."""
        requested = reused = 0
        for model in self.models:
            requested, reused = requested + model.requested, reused + model.reused
            model.requested = model.reused = 0
        return requested, reused

    def close(self) -> None:
        """Store the models' rates and close the store; the models belong to the caller."""
        for model in self.models:
            if self._folder is not None and model.store is not None:
                store_rates(self._folder, model.describe(), model.meter.rates())
            model.close_store()

    def _note(self, error: StoreError) -> None:
        self.trouble = self.trouble or str(error)
