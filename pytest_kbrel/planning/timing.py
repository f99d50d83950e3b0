"""How long a model would take: two batches of each kind of question are put to it, and the rest follows."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_kbrel.models.asking import one_each
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.counting import Counter
from pytest_kbrel.planning.asking import Call, Kind
from pytest_kbrel.records import Generated, GenerateRequest, Request, ScoreRequest, record

# Rows of a calibrating batch: enough to tell what a row costs from what a batch costs.
_MOST = 64
_MIXED = 32
# In seconds: what is this quick is measured again, since whatever else the machine does weighs on it.
_QUICK = 0.5


@record
class Pace:
    """What one kind of question costs: seconds a step of a batch, and seconds a token.

    ``written`` are the lengths, in tokens, of the answers seen; a batch takes as many steps as its longest.
    """

    a_step: float
    a_token: float
    written: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """How many tokens an answer has."""
        return sum(self.written) / len(self.written) if self.written else 0.0

    def steps(self, rows: int) -> float:
        """Return how many steps a batch of ``rows`` takes: the expected length of its longest answer."""
        if not self.written:
            return 1.0
        n, longest = len(self.written), max(self.written)
        return sum(1 - (sum(w <= k for w in self.written) / n) ** rows for k in range(longest))


@record
class Calibration:
    """The paces of a model, by kind, and on what they were measured.

    ``loading`` and ``seconds`` are how long it took to load and to measure; ``answers`` how many were asked.
    """

    paces: Mapping[Kind, Pace]
    loading: float
    seconds: float
    batches: int
    answers: int

    def seconds_for(self, calls: Iterable[Call], counter: Counter) -> float:
        """Return how long the model takes for ``calls``, without loading."""
        return sum(self._seconds(call, counter) for call in calls if call.kind in self.paces)

    def written(self, calls: Iterable[Call]) -> float:
        """Return how many tokens the model writes in all."""
        return sum(
            self.paces[call.kind].mean * len(call.requests) for call in calls if call.kind in self.paces
        )

    def _seconds(self, call: Call, counter: Counter) -> float:
        pace = self.paces[call.kind]
        batches = _batches(call.requests, counter)
        steps = [pace.steps(len(batch)) for batch in batches]
        # A row that has ended is computed until the longest of its batch has.
        rows = 0.0
        if pace.written:
            rows = sum(of * len(batch) for of, batch in zip(steps, batches, strict=True))
        return pace.a_step * sum(steps) + pace.a_token * (sum(map(counter.prompt, call.requests)) + rows)


def calibrate(open_it: Callable[[], Model], calls: Sequence[Call], counter: Counter) -> Calibration:
    """Load a model and measure its paces on requests of ``calls``, all of which are for it."""
    started = time.perf_counter()
    model = open_it()
    try:
        pools: dict[Kind, list[Request]] = {}
        for call in calls:
            pools.setdefault(call.kind, []).extend(call.requests)
        for pool in {kind[3]: pool for kind, pool in pools.items() if pool}.values():
            # What a model does at its first answer only belongs to the loading.
            _ask(model, pool[:1])
        loaded = time.perf_counter()
        paces = {}
        asked = batches = 0
        for kind, pool in pools.items():
            samples = _samples(pool, counter)
            measured = [_measure(model, sample, counter) for sample in samples]
            asked += sum(map(len, samples))
            batches += len(samples)
            if measured:
                paces[kind] = _fit(measured)
    finally:
        model.close()
    ended = time.perf_counter()
    return Calibration(
        paces=paces, loading=loaded - started, seconds=ended - loaded, batches=batches, answers=asked
    )


def _samples(pool: Sequence[Request], counter: Counter) -> list[list[Request]]:
    """Return two batches to measure: requests that go through the model together, and mixed ones."""
    if not pool:
        return []
    draws = random.Random(0)
    mixed = draws.sample(list(pool), min(_MIXED, len(pool)))
    if isinstance(pool[0], ScoreRequest):
        return [mixed[:2], draws.sample(list(pool), min(_MOST, len(pool)))]
    lengths: dict[int, list[Request]] = {}
    for request in pool:
        lengths.setdefault(counter.prompt(request), []).append(request)
    together = max(lengths.values(), key=len)
    return [mixed, draws.sample(together, min(_MOST, len(together)))]


@record
class _Measured:
    steps: float
    tokens: float
    seconds: float
    written: tuple[int, ...]


def _measure(model: Model, sample: Sequence[Request], counter: Counter) -> _Measured:
    answers, seconds = _timed(model, sample)
    if seconds < _QUICK:
        seconds = statistics.median([seconds, *(_timed(model, sample)[1] for _ in range(2))])
    written = [len(answer.token_ids) if isinstance(answer, Generated) else 0 for answer in answers]
    scored = isinstance(sample[0], ScoreRequest)
    batches = _batches(sample, counter)
    longest = [max(written[place] for place in batch) for batch in batches]
    rows = sum(of * len(batch) for of, batch in zip(longest, batches, strict=True))
    return _Measured(
        steps=1.0 if scored else float(sum(longest)),
        tokens=float(sum(map(counter.prompt, sample)) + rows),
        seconds=seconds,
        written=() if scored else tuple(written),
    )


def _timed(model: Model, sample: Sequence[Request]) -> tuple[Sequence[object], float]:
    started = time.perf_counter()
    answers = _ask(model, sample)
    return answers, time.perf_counter() - started


def _ask(model: Model, sample: Sequence[Request]) -> Sequence[object]:
    to_score = [request for request in sample if isinstance(request, ScoreRequest)]
    if to_score:
        return one_each(to_score, model.score(to_score))
    to_generate = [request for request in sample if isinstance(request, GenerateRequest)]
    return one_each(to_generate, model.generate(to_generate))


def _batches(requests: Sequence[Request], counter: Counter) -> list[list[int]]:
    """Return the places of requests that go through a model together.

    Texts are generated from prompts of equal length together; what is scored may be of any length.
    """
    found: dict[int, list[int]] = {}
    for place, request in enumerate(requests):
        length = -1 if isinstance(request, ScoreRequest) else counter.prompt(request)
        found.setdefault(length, []).append(place)
    return list(found.values())


def _fit(measured: Sequence[_Measured]) -> Pace:
    """Return the pace that explains two measurements; neither part of it is negative."""
    one, two = measured[0], measured[-1]
    written = tuple(sorted(length for of in measured for length in of.written))
    determinant = one.steps * two.tokens - two.steps * one.tokens
    if determinant:
        a_step = (one.seconds * two.tokens - two.seconds * one.tokens) / determinant
        a_token = (one.steps * two.seconds - two.steps * one.seconds) / determinant
        if a_step >= 0 and a_token >= 0:
            return Pace(a_step=a_step, a_token=a_token, written=written)
        if a_token < 0 and one.steps + two.steps:
            a_step = (one.seconds + two.seconds) / (one.steps + two.steps)
            return Pace(a_step=a_step, a_token=0.0, written=written)
    return Pace(a_step=0.0, a_token=(one.seconds + two.seconds) / (one.tokens + two.tokens), written=written)
