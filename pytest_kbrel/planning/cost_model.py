"""Cost model of a checkpoint: the tokens of its requests, by the rate of its last run or of a short batch."""

from __future__ import annotations

import time
from collections import Counter as Multiset
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kbrel.errors import StoreError
from pytest_kbrel.models.base import Model, check_count
from pytest_kbrel.models.cache.store import FILE, Store, digest_of, key_of
from pytest_kbrel.models.measurements import stored_rate, tokens_of
from pytest_kbrel.models.token_counting import TokenCounter
from pytest_kbrel.planning.requests import Call, Kind
from pytest_kbrel.records import (
    Fingerprint,
    Generated,
    GenerateRequest,
    Request,
    ScoreRequest,
    record,
)

if TYPE_CHECKING:
    from pytest_kbrel.models.hf.sharing import SharingMode

# Questions of the short batch: the answers of a few seconds.
_BATCH = 64

Cached = Callable[[Sequence[Request]], Collection[Request]]


@record
class CostModel:
    """Cost of a loaded model in seconds: ``loading``, and requests by their tokens.

    ``rates`` are tokens a second by method (``score``, ``generate``): of prompts and scored answers; the time
    to write is in them. ``answers`` and ``seconds`` are of the short batch they were measured in, 0 where the
    store knew all of them. ``written`` is how many tokens an answer of each kind had in that batch.
    ``sharing_modes`` are ``None`` where nobody knows. ``cached`` returns those of some requests that
    the model answered in earlier runs.
    """

    rates: Mapping[str, float]
    written: Mapping[Kind, float]
    sharing_modes: tuple[SharingMode, SharingMode] | None
    loading: float
    answers: int
    seconds: float
    cached: Cached

    def uncached(self, requests: Sequence[Request]) -> list[Request]:
        """Return those of ``requests`` that have no answer from earlier runs."""
        answered = set(self.cached(requests))
        return [request for request in requests if request not in answered]

    def seconds_for(self, requests: Sequence[Request], counter: TokenCounter) -> float:
        """Return how long the model takes for ``requests``, without loading; 0 of a method without a rate."""
        return sum(
            read_by(request, counter) / self.rates[method_of(request)]
            for request in requests
            if method_of(request) in self.rates
        )

    def written_for(self, call: Call) -> float:
        """Return how many tokens the model writes, 0 of a kind that was not in the short batch."""
        return self.written.get(call.kind, 0.0) * len(call.requests)


def method_of(request: Request) -> str:
    """Return ``score`` or ``generate``."""
    return "score" if isinstance(request, ScoreRequest) else "generate"


def read_by(request: Request, counter: TokenCounter) -> int:
    """Return how many tokens of prompt and scored answer a request has."""
    scored = counter.continuation(request) if isinstance(request, ScoreRequest) else 0
    return counter.prompt(request) + scored


def measure_costs(
    open_it: Callable[[], Model],
    calls: Iterable[Call],
    folder: Path | None,
) -> CostModel:
    """Load a model and return its cost, by the store in ``folder`` or a short batch of ``calls``.

    All calls are for this model. The batch has each kind of question by its share, and none that the store
    has an answer to.
    """
    started = time.perf_counter()
    model = open_it()
    try:
        cached = _cached_in(folder, model.describe())
        loading = time.perf_counter() - started
        counts: Multiset[Kind] = Multiset()
        largest: dict[Kind, list[Request]] = {}
        for call in calls:
            answered = set(cached(call.requests))
            requests = [request for request in call.requests if request not in answered]
            counts[call.kind] += len(requests)
            if len(requests) > len(largest.get(call.kind, ())):
                # As they stand side by side in a run, so that they share as much.
                largest[call.kind] = requests[:_BATCH]
        rates: dict[str, float] = {}
        for method in {kind[3] for kind in largest}:
            if (
                folder is not None
                and (rate := stored_rate(folder, model.describe(), method)) is not None
            ):
                rates[method] = rate
        samples = {
            kind: requests for kind, requests in largest.items() if kind[3] not in rates
        }
        started = time.perf_counter()
        for first in {
            kind[3]: requests[:1] for kind, requests in samples.items()
        }.values():
            # What a model does at its first answer only belongs to the loading.
            _answers(model, first)
        sharing_modes = getattr(model, "sharing_modes", None)
        loading += time.perf_counter() - started
        total = sum(counts[kind] for kind in samples)
        tokens: dict[str, int] = {}
        times: dict[str, float] = {}
        written: dict[Kind, float] = {}
        answers = 0
        for method in dict.fromkeys(kind[3] for kind in samples):
            chosen = {
                kind: requests[: max(1, round(_BATCH * counts[kind] / total))]
                for kind, requests in samples.items()
                if kind[3] == method
            }
            started = time.perf_counter()
            responses = _answers(
                model, [request for some in chosen.values() for request in some]
            )
            times[method] = time.perf_counter() - started
            tokens[method] = sum(tokens_of(responses))
            answers += len(responses)
            remaining = iter(responses)
            for kind, some in chosen.items():
                lengths = [
                    len(one.token_ids)
                    for one in islice(remaining, len(some))
                    if isinstance(one, Generated)
                ]
                written[kind] = sum(lengths) / len(lengths) if lengths else 0.0
    finally:
        model.close()
    rates |= {
        method: tokens[method] / times[method]
        for method in tokens
        if tokens[method] and times[method]
    }
    return CostModel(
        rates=rates,
        written=written,
        sharing_modes=sharing_modes,
        loading=loading,
        answers=answers,
        seconds=sum(times.values()),
        cached=cached,
    )


def _answers(model: Model, requests: Sequence[Request]) -> Sequence[object]:
    to_score = [request for request in requests if isinstance(request, ScoreRequest)]
    to_generate = [
        request for request in requests if isinstance(request, GenerateRequest)
    ]
    return [
        *(check_count(to_score, model.score(to_score)) if to_score else ()),
        *(check_count(to_generate, model.generate(to_generate)) if to_generate else ()),
    ]


def _cached_in(folder: Path | None, model: Fingerprint) -> Cached:
    """Return what looks for answers of ``model`` in a store; there are none where it is missing or broken."""
    digest, broken = digest_of(model), False

    def cached(requests: Sequence[Request]) -> list[Request]:
        nonlocal broken
        if folder is None or broken or not (folder / FILE).is_file():
            return []
        keys = {key_of(digest, request): request for request in requests}
        try:
            with closing(Store(folder)) as store:
                return [keys[key] for key in store.get(list(keys))]
        except StoreError:
            # Looking again would take seconds each time.
            broken = True
            return []

    return cached
