"""How long a model would take: two batches of each kind of question are put to it, and the rest follows."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pytest_kbrel.models.asking import one_each
from pytest_kbrel.models.base import Model
from pytest_kbrel.models.counting import Counter
from pytest_kbrel.planning.asking import Call, Kind
from pytest_kbrel.planning.working import Pace, Work, Works
from pytest_kbrel.records import Fingerprint, Generated, GenerateRequest, Request, ScoreRequest, record

# Questions of the calibrating batches: enough to tell what one costs from what a batch costs.
_FEW = 8
_MOST = {"score": 256, "generate": 64}
# In seconds: what is this quick is measured again, since whatever else the machine does weighs on it.
_QUICK = 0.5

# What of some requests need not be put to the model that this is.
Kept = Callable[[Fingerprint, Sequence[Request]], Collection[Request]]


@record
class Calibration:
    """The paces of a model, by kind, and on what they were measured.

    ``loading`` and ``seconds`` are how long it took to load and to measure; ``answers`` how many were asked.
    ``kept`` are the requests whose answers are known from earlier runs, and ``rungs`` which way of sharing
    holds when the model scores and when it writes, where it says so.
    """

    paces: Mapping[Kind, Pace]
    works: Works
    loading: float
    seconds: float
    batches: int
    answers: int
    kept: frozenset[Request] = frozenset()

    def seconds_for(self, calls: Iterable[Call], *, anew: bool = False) -> float:
        """Return how long the model takes for ``calls``, without loading; ``anew``: for kept ones as well."""
        total = 0.0
        for call in calls:
            requests = [one for one in call.requests if anew or one not in self.kept]
            pace = self.paces.get(call.kind)
            if pace is not None and requests:
                total += pace.seconds(self.works.of(requests, pace.written))
        return total

    def written(self, calls: Iterable[Call]) -> float:
        """Return how many tokens the model writes in all."""
        return sum(
            self.paces[call.kind].mean * len(call.requests) for call in calls if call.kind in self.paces
        )


def calibrate(
    open_it: Callable[[], Model],
    calls: Sequence[Call],
    counter: Counter,
    kept: Kept | None = None,
    *,
    anew: bool = False,
) -> Calibration:
    """Load a model and measure its paces on requests of ``calls``, all of which are for it.

    No more is asked than is needed: nothing of what is ``kept``, unless it is asked ``anew``.
    """
    started = time.perf_counter()
    model = open_it()
    try:
        every = [request for call in calls for request in call.requests]
        known = frozenset(kept(model.describe(), every) if kept is not None else ())
        left = known if not anew else frozenset()
        pools: dict[Kind, list[list[Request]]] = {}
        for call in calls:
            some = [request for request in call.requests if request not in left]
            if some:
                pools.setdefault(call.kind, []).append(some)
        for first in {kind[3]: pool[0] for kind, pool in pools.items()}.values():
            # What a model does at its first answer only belongs to the loading.
            _ask(model, first[:1])
        works = Works(counter, model)
        loaded = time.perf_counter()
        paces = {}
        asked = batches = 0
        for kind, pool in pools.items():
            samples = _samples(pool, _MOST[kind[3]])
            measured = [_measure(model, sample, works) for sample in samples]
            asked += sum(map(len, samples))
            batches += len(samples)
            paces[kind] = _fit(measured)
    finally:
        model.close()
    ended = time.perf_counter()
    return Calibration(
        paces=paces,
        works=works,
        loading=loaded - started,
        seconds=ended - loaded,
        batches=batches,
        answers=asked,
        kept=known,
    )


def _samples(pool: Sequence[Sequence[Request]], most: int) -> list[list[Request]]:
    """Return two batches to measure, a small one and a large one, each of what one call has side by side.

    So they share as much as the questions of a run do.
    """
    draws = random.Random(0)
    longest = sorted(pool, key=len)[-3:]
    found = []
    for count in (_FEW, most):
        call = draws.choice(longest)
        start = draws.randrange(max(1, len(call) - count + 1))
        found.append(list(call[start : start + count]))
    return found


@record
class _Measured:
    work: Work
    seconds: float
    written: tuple[int, ...]


def _measure(model: Model, sample: Sequence[Request], works: Works) -> _Measured:
    answers, seconds = _timed(model, sample)
    if seconds < _QUICK:
        seconds = statistics.median([seconds, *(_timed(model, sample)[1] for _ in range(2))])
    written = tuple(sorted(len(one.token_ids) for one in answers if isinstance(one, Generated)))
    return _Measured(work=works.of(sample, written), seconds=seconds, written=written)


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


def _fit(measured: Sequence[_Measured]) -> Pace:
    """Return the pace that explains two measurements; neither part of it is negative."""
    one, two = measured[0], measured[-1]
    a, b = one.work, two.work
    written = tuple(sorted(length for of in measured for length in of.written))
    determinant = a.steps * b.tokens - b.steps * a.tokens
    if determinant:
        a_step = (one.seconds * b.tokens - two.seconds * a.tokens) / determinant
        a_token = (a.steps * two.seconds - b.steps * one.seconds) / determinant
        if a_step >= 0 and a_token >= 0:
            return Pace(a_step=a_step, a_token=a_token, written=written)
        if a_token < 0 and a.steps + b.steps:
            a_step = (one.seconds + two.seconds) / (a.steps + b.steps)
            return Pace(a_step=a_step, a_token=0.0, written=written)
    return Pace(a_step=0.0, a_token=(one.seconds + two.seconds) / (a.tokens + b.tokens), written=written)
