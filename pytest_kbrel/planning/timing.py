"""How long a model would take: two batches of each kind of question are put to it, and the rest follows."""

from __future__ import annotations

import functools
import random
import statistics
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from pytest_kbrel.models.base import Model
from pytest_kbrel.models.counting import Counter
from pytest_kbrel.models.dedup import one_each
from pytest_kbrel.planning.asking import Call, Kind
from pytest_kbrel.planning.working import Pace, Work, Works
from pytest_kbrel.records import Fingerprint, Generated, GenerateRequest, Request, ScoreRequest, record

# Questions of the calibrating batches: enough to tell what one costs from what a batch costs.
_FEW = 8
_MOST = {"score": 256, "generate": 64}
# Of so many calls, the longest of their kind, these are taken.
_LONGEST = 3
# In seconds: what is this quick is measured again, since whatever else the machine does weighs on it.
_QUICK = 0.5

# What of some requests need not be put to the model that this is.
Kept = Callable[[Fingerprint, Sequence[Request]], Collection[Request]]
Known = Callable[[Sequence[Request]], Collection[Request]]


@record
class Calibration:
    """The paces of a model, by kind, and on what they were measured.

    ``loading`` and ``seconds`` are how long it took to load and to measure; ``answers`` how many were asked.
    ``kept`` returns those of some requests whose answers the model gave in earlier runs.
    """

    paces: Mapping[Kind, Pace]
    works: Works
    loading: float
    seconds: float
    batches: int
    answers: int
    kept: Known

    def left(self, requests: Sequence[Request]) -> list[Request]:
        """Return those of ``requests`` that have no answer from earlier runs."""
        known = set(self.kept(requests))
        return [request for request in requests if request not in known]

    def seconds_for(self, kind: Kind, requests: Sequence[Request]) -> float:
        """Return how long the model takes for ``requests``, put to it at once, without loading."""
        pace = self.paces.get(kind)
        if pace is None or not requests:
            return 0.0
        return pace.seconds(self.works.of(requests, pace.written))

    def written(self, call: Call) -> float:
        """Return how many tokens the model writes."""
        return self.paces[call.kind].mean * len(call.requests) if call.kind in self.paces else 0.0


def calibrate(
    open_it: Callable[[], Model],
    calls: Iterable[Call],
    counter: Counter,
    kept: Kept | None = None,
    *,
    anew: bool = False,
) -> Calibration:
    """Load a model and measure its paces on requests of ``calls``, all of which are for it.

    No more is asked than is needed: nothing of what is ``kept``, unless it is asked ``anew``. Of ``calls`` a
    few requests of each kind are held, and no more.
    """
    started = time.perf_counter()
    model = open_it()
    try:
        known: Known = functools.partial(kept, model.describe()) if kept is not None else _nothing
        opened = time.perf_counter()
        draws = random.Random(0)
        pools: dict[Kind, list[_Sampled]] = {}
        firsts: dict[Kind, Sequence[Request]] = {}
        for call in calls:
            answered = set() if anew else set(known(call.requests))
            if some := [request for request in call.requests if request not in answered]:
                firsts.setdefault(call.kind, some[:1])
                pool = [*pools.get(call.kind, ()), _sampled(some, _MOST[call.kind[3]], draws)]
                pools[call.kind] = sorted(pool, key=lambda sampled: sampled.length)[-_LONGEST:]
        collected = time.perf_counter()
        for first in {kind[3]: first for kind, first in firsts.items()}.values():
            # What a model does at its first answer only belongs to the loading.
            _ask(model, first)
        works = Works(counter, model)
        loaded = time.perf_counter()
        paces = {}
        asked = batches = 0
        for kind, pool in pools.items():
            samples = [draws.choice(pool).few, draws.choice(pool).many]
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
        loading=opened - started + loaded - collected,
        seconds=ended - loaded,
        batches=batches,
        answers=asked,
        kept=known,
    )


def _nothing(requests: Sequence[Request]) -> Collection[Request]:
    return ()


@record
class _Sampled:
    """Two batches to measure out of the ``length`` requests of a call, a small one and a large one.

    Each is of what the call has side by side: so they share as much as the questions of a run do.
    """

    length: int
    few: tuple[Request, ...]
    many: tuple[Request, ...]


def _sampled(call: Sequence[Request], most: int, draws: random.Random) -> _Sampled:
    starts = [draws.randrange(max(1, len(call) - count + 1)) for count in (_FEW, most)]
    few, many = (tuple(call[at : at + count]) for at, count in zip(starts, (_FEW, most), strict=True))
    return _Sampled(length=len(call), few=few, many=many)


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
    # A model that refuses all of them computes no token.
    a_token = (one.seconds + two.seconds) / (a.tokens + b.tokens or 1.0)
    return Pace(a_step=0.0, a_token=a_token, written=written)
